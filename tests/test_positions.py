"""Test the columns, distances, ids and allowed keys of one forward pass."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
import torch

from fairseq_posenc.positions import Positions

TABLE: dict[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
CPU = torch.device("cpu")


def positions_of(row: dict[str, Any]) -> Positions:
    """Make the positions of a row of the table."""
    given = {
        name: torch.tensor(value) if isinstance(value, list) and name != "boundaries" else value
        for name, value in row.items()
    }
    return Positions.of_tokens(**{"pad": 1, **given}) if "tokens" in row else Positions(device=CPU, **given)


def positions_and(row: dict[str, Any], *names: str) -> list[Any]:
    """Make the positions of a row that also holds results, and return them with the results of these names, or None."""
    return [positions_of({name: value for name, value in row.items() if name not in names}), *map(row.get, names)]


# -- columns and distances


@pytest.mark.parametrize(("queries", "keys"), [(1, 1), (4, 4), (1, 7), (3, 7)])
def test_queries_are_the_last_columns_and_every_distance_is_listed_once(queries: int, keys: int) -> None:
    where = Positions(queries, keys, CPU)
    assert where.offset == keys - queries
    assert where.query_columns.tolist() == list(range(keys - queries, keys))
    assert where.delta.tolist() == [[j - i for j in range(keys)] for i in range(keys - queries, keys)]
    assert where.distances.tolist() == list(range(1 - keys, queries))
    row, column = torch.meshgrid(torch.arange(queries), torch.arange(keys), indexing="ij")
    assert torch.equal(where.distances[column - row + queries - 1], where.delta)


@pytest.mark.parametrize(("ids", "rows", "largest"), [([0, 4, 9, 5], 1, 5), ([[0, 4, 9, 5], [7, 7, 8, 2]], 2, 6)])
def test_pairs_lead_to_the_distances_of_own_positions(ids: list[Any], rows: int, largest: int) -> None:
    where = Positions(3, 4, CPU, ids=torch.tensor(ids, dtype=torch.int16), causal=True)
    assert where.pairs is not None
    assert where.pairs.shape == (rows, 3, 4)
    assert torch.equal(where.distances[where.pairs], where.delta.reshape(rows, 3, 4))
    assert where.delta.flatten()[:4].tolist() == [-4, 0, 5, 1]
    assert (where.extent, where.ends, where.reach) == (10, (-9, largest), 10)
    ordinary = Positions(3, 4, CPU, causal=True)
    assert torch.equal(where.allowed, ordinary.allowed)
    assert (ordinary.pairs, ordinary.extent, ordinary.ends, ordinary.reach) == (None, 4, (-3, 2), 4)


# -- what follows by hand


@pytest.mark.parametrize("row", TABLE["padding"])
def test_padding_and_whether_it_is_left_of_a_token(row: dict[str, Any]) -> None:
    where, padding, left = positions_and(row, "padding", "left")
    assert (where.padding if where.padding is None else where.padding.int().tolist()) == padding
    assert where.left_padded is left


@pytest.mark.parametrize("row", TABLE["ids"])
def test_ids_of_the_queries(row: dict[str, Any]) -> None:
    where, ids = positions_and(row, "ids")
    assert where.query_ids.tolist() == ids


@pytest.mark.parametrize("row", TABLE["restart"])
def test_ids_within_sentences(row: dict[str, Any]) -> None:
    where, ids = positions_and(row, "restart")
    assert (where.restart_ids if where.restart_ids is None else where.restart_ids.tolist()) == ids


@pytest.mark.parametrize("row", TABLE["seen"])
def test_keys_that_are_seen_and_queries_that_see_none(row: dict[str, Any]) -> None:
    """`forbidden` is the opposite in the shape of logits, except for queries that see no key."""
    where, seen, empty = positions_and(row, "seen", "empty")
    rows = where.empty_rows
    assert (rows if rows is None else rows[:, 0, :, 0].int().tolist()) == empty
    # Without a mask of queries and keys, compressed attention stays linear.
    assert where.causal or where.documents is not None or "allowed" not in vars(where)
    if seen is None:
        assert where.allowed is where.forbidden is None
    else:
        assert where.allowed.int().tolist() == seen
        assert torch.equal(where.forbidden[:, 0], ~where.allowed & where.allowed.any(-1, keepdim=True))


def test_the_number_of_samples_is_that_of_every_tensor() -> None:
    assert Positions(4, 4, CPU, segments=torch.zeros(3, 4, dtype=torch.long)).batch == 3
    assert Positions(4, 4, CPU, cls_column=torch.tensor([0, 1])).batch == 2
    assert Positions(4, 4, CPU, cls_column=torch.tensor([0])).batch is None


# -- what is refused


@pytest.mark.parametrize(("words", "row"), TABLE["refused"].items(), ids=TABLE["refused"])
def test_positions_that_cannot_be_are_refused(words: str, row: dict[str, Any]) -> None:
    with pytest.raises((ValueError, TypeError)) as error:
        positions_of(row)
    assert words in str(error.value)


def test_a_cls_on_an_accelerator_is_checked_when_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checking the range earlier would wait for the device in every forward pass."""
    with monkeypatch.context() as patch:
        patch.setattr(Positions, "_check_cls_range", None)  # must not be called before the column is read
        Positions(3, 3, CPU, cls_column=torch.zeros(2, dtype=torch.long, device="meta"))
        patch.setattr(Positions, "_check_cls_range", lambda self, columns: None)
        where = Positions(3, 3, CPU, cls_column=torch.tensor([3, 3]))
    with pytest.raises(ValueError, match="cls_column contains 3"):
        assert where.common_cls_column
