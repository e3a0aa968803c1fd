"""Compare FoX with x-transformers' forget gates, in decoders and, with a second gate for later keys, in encoders."""

from __future__ import annotations

import pytest
import torch

from fairseq_posenc.encodings import StackShape, build
from fairseq_posenc.positions import Positions

x_transformers = pytest.importorskip("x_transformers.x_transformers")

HEADS, DIM, LENGTH = 2, 8, 9


@pytest.mark.parametrize("causal", [True, False])
def test_the_gates_are_those_of_x_transformers(causal: bool) -> None:
    theirs = x_transformers.DataDependentAlibi(DIM, HEADS, causal=causal).double()
    linear = theirs.to_forget_gates[0]
    ours = build("fox", None if causal else "later=true", StackShape(1, HEADS, DIM, LENGTH, causal=causal)).double()
    (member,) = ours.members.values()
    with torch.no_grad():
        for gate, part in zip(("gate", "later"), linear.weight.split(HEADS), strict=False):
            getattr(member, f"{gate}_weight").copy_(part[None])
        for gate, part in zip(("gate", "later"), linear.bias.split(HEADS), strict=False):
            getattr(member, f"{gate}_bias").copy_(part[None])
        x = torch.randn(2, LENGTH, DIM, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        where = Positions(LENGTH, LENGTH, torch.device("cpu"), causal=causal)
        call = ours.layer(1).at(where, ours.per_layer(where)[0]).with_inputs(x)
        actual, expected = call.additive(torch.empty(0), torch.empty(0)), theirs(x)
    assert actual is not None
    seen = where.allowed if where.allowed is not None else torch.ones(1, LENGTH, LENGTH, dtype=torch.bool)
    torch.testing.assert_close(actual * seen[:, None], expected * seen[:, None], rtol=0, atol=1e-12)
