"""Test the columns, distances, ids and allowed keys of one forward pass."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from fairseq_posenc.positions import Positions

BOS, PAD, EOS = 0, 1, 2
CPU = torch.device("cpu")


def of(rows: list[list[int]], **kwargs: object) -> Positions:
    return Positions.of_tokens(torch.tensor(rows), pad=PAD, **kwargs)


# -- columns and distances -----------------------------------------------------------------------------


@pytest.mark.parametrize(("queries", "keys"), [(1, 1), (4, 4), (1, 7), (3, 7)])
def test_queries_are_the_last_columns(queries: int, keys: int) -> None:
    where = Positions(queries, keys, CPU)
    assert where.offset == keys - queries
    assert where.query_columns.tolist() == list(range(keys - queries, keys))
    assert where.delta.tolist() == [[j - i for j in range(keys)] for i in range(keys - queries, keys)]


@pytest.mark.parametrize(("queries", "keys"), [(1, 1), (4, 4), (1, 7), (3, 7)])
def test_every_distance_occurs_once_in_the_vector(queries: int, keys: int) -> None:
    where = Positions(queries, keys, CPU)
    assert where.distances.tolist() == list(range(1 - keys, queries))
    row, column = torch.meshgrid(torch.arange(queries), torch.arange(keys), indexing="ij")
    assert torch.equal(where.distances[column - row + queries - 1], where.delta)


@pytest.mark.parametrize(("queries", "keys"), [(0, 3), (4, 3), (-1, 3)])
def test_more_queries_than_keys_are_refused(queries: int, keys: int) -> None:
    with pytest.raises(ValueError, match=rf"query_length is {queries} and key_length is {keys}"):
        Positions(queries, keys, CPU)


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (torch.tensor([[0]]), r"one integer per sample.*\[1, 1\]"),
        (torch.tensor(0), r"one integer per sample"),
        (torch.tensor([0.0]), r"one integer per sample.*float32"),
        (torch.tensor([True]), r"one integer per sample.*bool"),
        (torch.tensor([0, 3]), "cls_column contains 3, but the columns are 0 to 2"),
        (torch.tensor([-1, 0]), "cls_column contains -1"),
        (torch.tensor([0, 0, 0]), "cls_column has 3 samples, but padding has 2"),
        (torch.zeros(1, 2, dtype=torch.long, device="meta"), "one integer per sample"),
    ],
)
def test_a_cls_outside_of_all_columns_is_refused(column: torch.Tensor, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Positions(3, 3, CPU, padding=torch.zeros(2, 3, dtype=torch.bool), cls_column=column)


def test_a_cls_on_an_accelerator_is_checked_when_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checking the range earlier would wait for the device in every forward pass."""
    with monkeypatch.context() as patch:
        patch.setattr(Positions, "_check_cls_range", None)  # must not be called before the column is read
        Positions(3, 3, CPU, cls_column=torch.zeros(2, dtype=torch.long, device="meta"))
        patch.setattr(Positions, "_check_cls_range", lambda self, columns: None)
        where = Positions(3, 3, CPU, cls_column=torch.tensor([3, 3]))
    with pytest.raises(ValueError, match="cls_column contains 3"):
        assert where.common_cls_column


def test_a_cls_in_any_column_is_accepted() -> None:
    for column in (0, 2):
        assert Positions(1, 3, CPU, cls_column=torch.tensor([column, column])).common_cls_column == column


def test_padding_must_cover_all_columns() -> None:
    with pytest.raises(ValueError, match="2 of 3"):
        Positions(2, 3, CPU, padding=torch.zeros(1, 2, dtype=torch.bool))


# -- from tokens ---------------------------------------------------------------------------------------


def test_pads_in_memory_are_masked() -> None:
    tokens, pads = torch.tensor([[5, 6], [5, 1]]), torch.tensor([[True, False], [False, False]])
    where = Positions.of_tokens(tokens, pad=1, causal=True, memory=2, memory_padding=pads, span=3)
    assert where.padding.tolist() == [[True, False, False, False], [False, False, False, True]]
    assert (where.left_padded, where.span, where.key_ids.tolist()) == (True, 3, [[0, 0, 1, 2], [0, 1, 2, 2]])


def test_memory_is_never_a_pad() -> None:
    where = of([[5, 6, PAD], [5, 6, 7]], memory=2)
    assert where.padding is not None
    assert where.padding.tolist() == [[False] * 4 + [True], [False] * 5]
    assert not where.left_padded


def test_a_batch_without_pads_has_no_padding() -> None:
    where = of([[5, 6], [7, 8]])
    assert where.padding is None
    assert not where.left_padded
    assert where.allowed is None
    assert where.forbidden is None


@pytest.mark.parametrize(
    ("rows", "left"),
    [
        ([[5, 6, PAD], [5, 6, 7]], False),
        ([[PAD, 5, 6], [5, 6, 7]], True),
        ([[PAD, PAD, PAD], [5, 6, 7]], False),
        ([[PAD, 5, PAD], [5, 6, 7]], True),
    ],
)
def test_left_padded_means_a_pad_left_of_a_token(rows: list[list[int]], left: bool) -> None:
    assert of(rows).left_padded is left


# -- ids -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "options", "ids"),
    [
        ([[5, 6, PAD], [5, 6, 7]], {}, [0, 1, 2]),  # columns, if there is no padding on the left
        (
            [[PAD, PAD, 5, 6], [5, 6, 7, 8], [PAD, 5, 6, 7]], {},
            [[0, 0, 0, 1], [0, 1, 2, 3], [0, 0, 1, 2]],  # padding does not count
        ),
        ([[PAD, PAD, 5, 6], [5, 6, 7, 8]], {"causal": True, "cached": 3}, [[1], [3]]),
        ([[5, 6, 7, 8], [5, 6, 7, PAD]], {"documents": torch.tensor([[0, 0, 1, 1], [0, 2, 2, 2]])},
         [[0, 1, 0, 1], [0, 0, 1, 1]]),  # each document begins at 0
        ([[PAD, 5, 6, 7, 8]], {"documents": torch.tensor([[0, 0, 0, 1, 1]]), "cached": 2}, [[1, 0, 1]]),
        ([[5, 6, PAD, 7, 8]], {"documents": torch.tensor([[0, 0, 1, 1, 1]])}, [[0, 1, 0, 0, 1]]),
    ],
)  # fmt: skip
def test_ids(rows: list[list[int]], options: dict[str, Any], ids: list[Any]) -> None:
    assert of(rows, **options).query_ids.tolist() == ids


def test_chunks_have_the_ids_of_the_whole_sequence() -> None:
    rows = torch.tensor([[PAD, PAD, 5, 6, EOS, 7, 8], [5, 6, EOS, 8, 9, 5, 6]])
    whole = Positions.of_tokens(rows, pad=PAD, boundaries=(BOS, EOS), causal=True)
    assert whole.restart_ids is not None
    for start, end in [(0, 3), (3, 4), (4, 7)]:
        part = Positions.of_tokens(rows[:, :end], pad=PAD, boundaries=(BOS, EOS), causal=True, cached=start)
        assert torch.equal(part.query_ids, whole.query_ids[:, start:end])
        assert part.restart_ids is not None
        assert torch.equal(part.restart_ids, whole.restart_ids[:, :end])


def test_restart_ids_need_boundaries_and_refuse_memory() -> None:
    assert of([[5, EOS, 6]]).restart_ids is None
    assert of([[5, EOS, 6]], boundaries=(BOS, EOS), memory=2).restart_ids is None
    assert of([[5, EOS, 6]], boundaries=(BOS, EOS)).restart_ids is not None


def test_the_positions_in_sentences_begin_anew_in_each_document() -> None:
    rows, documents = [[5, 6, EOS, 7, 8, 9]], torch.tensor([[0, 0, 0, 0, 1, 1]])
    assert of(rows, boundaries=(EOS,), documents=documents).restart_ids.tolist() == [[1, 2, 3, 1, 1, 2]]


@pytest.mark.parametrize(
    ("documents", "words"),
    [
        (torch.tensor([[0, 1, 0], [0, 0, 0]]), "decrease from 1 to 0 at column 2 of sample 0: number the documents"),
        (torch.zeros(2, 3), "whole numbers, but the dtype is torch.float32"),
        (torch.zeros(2, 2, dtype=torch.long), "documents covers 2 of 3 columns"),
        (torch.zeros(1, 3, dtype=torch.long), "padding has 2 samples and documents has 1 samples"),
    ],
)
def test_documents_that_do_not_fit_are_refused(documents: torch.Tensor, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        of([[5, 6, 7], [5, 6, PAD]], documents=documents)


def test_the_number_of_padding_does_not_matter() -> None:
    where = of([[5, 6, PAD], [5, 6, 7]], documents=torch.tensor([[1, 2, 0], [1, 1, 2]]))
    assert where.allowed.int().tolist() == [[[1, 0, 0], [0, 1, 0], [0, 0, 0]], [[1, 1, 0], [1, 1, 0], [0, 0, 1]]]
    assert where.empty_rows[:, 0, :, 0].tolist() == [[False, False, True], [False] * 3]


# -- allowed keys --------------------------------------------------------------------------------------


PADDED = [[5, 6, PAD], [PAD, 5, 6]]
ALLOWED = {
    "a decoder sees itself and the left": (
        Positions(3, 3, CPU, causal=True),
        [[[1, 0, 0], [1, 1, 0], [1, 1, 1]]],
    ),
    "a chunk sees what was cached": (Positions(2, 4, CPU, causal=True), [[[1, 1, 1, 0], [1, 1, 1, 1]]]),
    "one query sees everything": (Positions(1, 5, CPU, causal=True), None),
    "a span hides what is far": (
        Positions(4, 5, CPU, causal=True, span=2),
        [[[1, 1, 0, 0, 0], [0, 1, 1, 0, 0], [0, 0, 1, 1, 0], [0, 0, 0, 1, 1]]],
    ),
    "a span of one query": (Positions(1, 4, CPU, causal=True, span=2), [[[0, 0, 1, 1]]]),
    "nobody sees a pad": (of(PADDED), [[[1, 1, 0]] * 3, [[0, 1, 1]] * 3]),
    "documents do not see each other": (
        Positions(3, 4, CPU, causal=True, documents=torch.tensor([[0, 0, 1, 1]])),
        [[[1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 1, 1]]],
    ),
    "one query sees its document": (
        Positions(1, 3, CPU, causal=True, documents=torch.tensor([[0, 1, 1]])),
        [[[0, 1, 1]]],
    ),
    "causal and pads": (
        of(PADDED, causal=True),
        [[[1, 0, 0], [1, 1, 0], [1, 1, 0]], [[0, 0, 0], [0, 1, 0], [0, 1, 1]]],
    ),
    "one query sees no pad": (
        of([[PAD, 5, 6], [5, 6, 7]], causal=True, cached=2),
        [[[0, 1, 1]], [[1, 1, 1]]],
    ),
}


@pytest.mark.parametrize(("where", "expected"), ALLOWED.values(), ids=ALLOWED)
def test_allowed_keys(where: Positions, expected: list[list[list[int]]] | None) -> None:
    """`forbidden` is the opposite in the shape of logits, except for rows without allowed keys."""
    if expected is None:
        assert where.allowed is where.forbidden is None
    else:
        assert where.allowed.int().tolist() == expected
        if where.empty_rows is None:
            assert torch.equal(where.forbidden[:, 0], ~where.allowed)


EMPTY = [
    (of([[5, 6, PAD], [5, PAD, PAD]]), None),
    (of(PADDED), None),
    (of(PADDED, causal=True), [[False] * 3, [True, False, False]]),
    (of([[5, 6, PAD], [PAD, PAD, PAD]]), [[False] * 3, [True] * 3]),
]


@pytest.mark.parametrize(("where", "rows"), EMPTY)
def test_empty_rows(where: Positions, rows: list[list[bool]] | None) -> None:
    """Such rows are found without a mask of queries and keys if possible, so compressed attention stays linear."""
    empty = where.empty_rows
    assert (empty if empty is None else empty[:, 0, :, 0].tolist()) == rows
    assert where.causal or "allowed" not in vars(where)


# -- positions that the caller gives --------------------------------------------------------------------


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


@pytest.mark.parametrize(
    ("ids", "words"),
    [
        ([0.0, 1.0, 2.0], r"whole number.*float32 \[3\]"),
        ([0, 1], r"3 columns.*\[2\]"),
        ([[[0, 1, 2]]], r"\[1, 1, 3\]"),
        ([0, -2, 1], "add 2 to all ids"),
        ([[0, 1, 2]] * 3, "ids has 3 samples"),
    ],
)
def test_own_positions_that_do_not_fit_are_refused(ids: list[Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        of([[5, 6, 7], [5, 6, PAD]], ids=torch.tensor(ids))
