"""Test scalable softmax: which keys are counted, that biases are multiplied too, and which options are refused."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from one_layer import CPU, build_encoding

from fairseq_posenc.positions import Positions

PADDING = torch.tensor([[True, False, False, False, False]])
DOCUMENTS = torch.tensor([[0, 0, 0, 1, 1]])
COUNTS: list[tuple[dict[str, Any], list[int]]] = [
    ({"causal": True}, [1, 2, 3, 4, 5]),
    ({"causal": True, "span": 2}, [1, 2, 2, 2, 2]),
    ({"causal": True, "padding": PADDING}, [1, 1, 2, 3, 4]),  # the padding sees nothing; its factor has no effect
    ({"causal": True, "documents": DOCUMENTS}, [1, 2, 3, 1, 2]),
    ({}, [5, 5, 5, 5, 5]),
    ({"padding": PADDING}, [4, 4, 4, 4, 4]),
    ({"documents": DOCUMENTS}, [3, 3, 3, 2, 2]),
]


@pytest.mark.parametrize(("given", "counts"), COUNTS, ids=[str([*given]) for given, _ in COUNTS])
def test_only_keys_that_a_query_may_see_are_counted(given: dict[str, Any], counts: list[int]) -> None:
    pos = build_encoding("logn", "init_value=1", causal=given.get("causal", False))
    for queries in (5, 2, 1):
        where = Positions(queries, 5, CPU, **given)
        factor = pos.layer(1).at(where, pos.per_layer(where)[0]).row_factor()
        assert factor is not None
        expected = torch.tensor([math.log(n) for n in counts[5 - queries :]], dtype=torch.float64)
        torch.testing.assert_close(factor.flatten(), expected)


def test_at_the_start_the_mean_factor_of_1024_tokens_is_one() -> None:
    """The paper's 0.168 is 1 divided by the mean of log n."""
    pos = build_encoding("logn", causal=True, n=1024)
    where = Positions(1024, 1024, CPU, causal=True)
    factor = pos.layer(1).at(where, pos.per_layer(where)[0]).row_factor()
    assert factor is not None
    assert abs(float(factor.mean()) - 1) < 0.01
