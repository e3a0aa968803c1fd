"""Compare numbers that were computed by hand, or that papers and their code print, with those of this code.

The numbers are in golden.toml.
"""

from __future__ import annotations

import functools
import tomllib
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import torch
from one_layer import CPU, build_encoding, logits_of
from torch import Tensor

from fairseq_posenc.encodings import Composition
from fairseq_posenc.encodings.rope import Rope
from fairseq_posenc.positions import Positions, restart_ids

GOLDEN = tomllib.loads(Path(__file__).with_name("golden.toml").read_text("utf-8"))
tensor = functools.partial(torch.tensor, dtype=torch.float64)
SAME: list[dict[str, Any]] = [{**case, "q": [1, 2], "k": [3, -1]} for case in GOLDEN["same"]]


def built(case: dict[str, Any]) -> Composition:
    """Return the encoding of a case, with its parameters: the first pattern that matches a name has the value."""
    options = {name: case[name] for name in ("layers", "heads", "head_dim", "n", "causal") if name in case}
    has_cls = "cls_column" in case.get("positions", {})
    pos = build_encoding(case["spec"], case.get("args", ""), has_cls=has_cls, **options)
    patterns = case.get("parameters", {})
    for member in pos.members.values():
        for name, parameter in member.named_parameters() if patterns else ():
            value = next(value for pattern, value in patterns.items() if fnmatch(name, pattern))
            parameter.copy_(tensor(value).expand_as(parameter))
    return pos


def positions_of(case: dict[str, Any], queries: int, keys: int) -> Positions:
    given = case.get("positions", {})
    tensors = {name: torch.tensor(value) if isinstance(value, list) else value for name, value in given.items()}
    return Positions(queries, keys, CPU, causal=case.get("causal", False), **tensors)


def by_hand(case: dict[str, Any], where: Positions, heads: int) -> Tensor:
    """Return the expected logits [h, Q, K], with NaN where the case says nothing."""
    shape = heads, where.key_length, where.key_length
    if "logits" in case:
        return tensor(case["logits"]).expand(shape)[:, where.offset :]
    expected = torch.full(shape, torch.nan).double()[:, where.offset :]
    for distance, value in case["by_distance"]:
        at = where.delta == distance
        assert at.any() or where.offset, f"no pair has the distance {distance}"
        expected[:, at] = tensor(value).expand(heads)[:, None].expand(-1, int(at.sum()))
    return expected


@pytest.mark.parametrize("case", SAME + GOLDEN["cases"], ids=lambda case: f"{case['spec']}[{case.get('args', '')}]")
def test_logits(case: dict[str, Any]) -> None:
    """Compare the logits of allowed pairs, for all queries and for the last ones."""
    pos, keys = built(case), case.get("keys", 5)
    numbers = sum(parameter.numel() for parameter in pos.parameters())
    assert numbers == case.get("count", numbers)
    heads, zeros = pos.stack.heads, [0] * pos.stack.head_dim
    samples = max((len(rows) for rows in case.get("positions", {}).values() if isinstance(rows, list)), default=1)
    q, k = (tensor(case.get(name, zeros)).expand(samples, heads, keys, -1) for name in "qk")
    inputs = tensor([case["inputs"]]) if "inputs" in case else None
    for queries in {keys, min(keys, 2), 1}:
        where = positions_of(case, queries, keys)
        actual = logits_of(pos, q[:, :, -queries:], k, where, case.get("layer", 1), inputs)[-1]
        expected = by_hand(case, where, heads)
        compared = ~expected.isnan() & (True if where.allowed is None else where.allowed[-1])
        torch.testing.assert_close(actual[compared], expected[compared], rtol=0, atol=1e-6)


@pytest.mark.parametrize("case", GOLDEN["inputs"], ids=lambda case: f"{case['spec']}[{case.get('args', '')}]")
def test_what_is_added_to_the_input(case: dict[str, Any]) -> None:
    expected = tensor(case["rows"])
    length, width = expected.shape
    for queries in {length, 2, 1}:
        x = torch.zeros(1, queries, width, dtype=torch.float64)
        rows = built(case).embed(x, positions_of(case, queries, length))[0]
        torch.testing.assert_close(rows, expected[-queries:], rtol=0, atol=1e-6)


@pytest.mark.parametrize("case", GOLDEN["speeds"], ids=lambda case: case["args"])
def test_speeds_of_rope(case: dict[str, Any]) -> None:
    rope = built({**case, "spec": "rope"}).members["rope"]
    assert isinstance(rope, Rope)
    assert rope.speeds().tolist() == pytest.approx(case["speeds"], abs=1e-9)


@pytest.mark.parametrize(("tokens", "expected"), GOLDEN["restarts"].values(), ids=GOLDEN["restarts"])
def test_sentence_restart(tokens: list[int], expected: list[int]) -> None:
    """Row id - 1 of the table is added to the input, also where only the last columns are new."""
    batch = torch.tensor([tokens])
    assert restart_ids(batch, 1, (0, 2)).tolist() == [expected]
    pos = build_encoding("sentence-restart", head_dim=1)
    pos.members["sentence-restart"].weight.copy_(torch.arange(8.0)[:, None])
    for cached in range(len(tokens)):
        where = Positions.of_tokens(batch, pad=1, boundaries=(0, 2), causal=True, cached=cached)
        rows = pos.embed(torch.zeros(1, len(tokens) - cached, 1).double(), where)[0, :, 0]
        assert (rows + 1).tolist() == expected[cached:]
