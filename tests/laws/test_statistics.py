"""The largest logit and the entropy that `measuring` reports are those of the literal attention of the real tokens."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from fairseq_posenc.attention.statistics import measuring, table_norm, values_of

from .cases import Case, defaults
from .literal import literal_layers, literal_pairs, literal_softmax
from .scene import PAD, Scene, attend_all
from .test_reference import Forward

#: without padding, with padding, and with memory too, if the encoding allows it
SCENES = [Scene(), Scene(side="right", seed=1), Scene(before=2, side="left", span=3, seed=5)]
#: encodings that subtract a number from all logits of a query, which the formula in the paper does not
SHIFTED = {"gcdf"}


@torch.no_grad()
def literal_values(forward: Forward, index: int) -> tuple[float, float]:
    """Return the largest logit and the mean entropy of a layer, from the literal logits of the real tokens."""
    stack, positions = forward.stack, forward.positions(forward.tokens, forward.cached)
    inputs = forward.inputs()
    attention = stack.layers[index - 1].self_attn
    layers = literal_layers(stack.pos, index, attention.project_query, attention.project_key, inputs)
    logits, allowed, _ = literal_pairs(attention, layers, inputs, positions)
    entropies = torch.special.entr(literal_softmax(logits, allowed)).sum(-1).transpose(0, 1)
    real = forward.tokens[:, forward.cached :].ne(PAD)
    seen = logits.masked_fill(~allowed, -torch.inf).transpose(0, 1)[:, real]
    return float(seen.max()), float(entropies[:, real].mean())


def check_statistics(case: Case, scene: Scene = SCENES[0], path: str = "explicit") -> None:
    """Compare what is measured in each layer with the literal attention."""
    forward = Forward(case, scene if case.capabilities.memory else replace(scene, before=0))
    with measuring(forward.stack) as layers, torch.no_grad():
        forward.actual(path)
    assert all(block.self_attn.watch is None for block in forward.stack.layers), "measuring has not ended"
    side = "decoder" if case.causal else "encoder"
    values = values_of(layers)
    norms = [name for name in values if name.startswith("table_norm")]
    assert len(norms) == (2 if any(True for _ in forward.stack.pos.parameters()) else 0), f"norms {norms}"
    for index in range(1, forward.stack.shape.layers + 1):
        largest, entropy = literal_values(forward, index)
        if case.spec not in SHIFTED:
            assert values[f"largest_logit_{side}_{index}"] == pytest.approx(largest, rel=1e-7), f"logit of {index}"
        assert values[f"entropy_{side}_{index}"] == pytest.approx(entropy, rel=1e-7), f"entropy of {index}"


@pytest.mark.parametrize("case", defaults(), ids=str)
def test_they_are_those_of_the_literal_attention(case: Case) -> None:
    for scene in SCENES:
        check_statistics(case, scene, "auto")


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_measured_in_full(dtype: torch.dtype) -> None:
    """A logit of 80 and one of 79.97 are the same number in half precision; the sums are in float64."""
    forward, measured = Forward(Case("t5"), Scene()), []
    for used in (torch.float64, dtype):
        with measuring(forward.stack.to(used)) as layers, torch.no_grad():
            attend_all(forward.stack, forward.x.to(used), forward.positions(forward.tokens))
        assert {layer.entropy.dtype for layer in layers} == {torch.float64}
        measured.append(values_of(layers))
    assert measured[1] == pytest.approx(measured[0], rel=0.03)


# -- norms of tables ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", [Case("shaw", {"share": "head-wise"}), Case("t5"), Case("learned")], ids=str)
def test_a_table_has_a_norm_in_each_layer_that_reads_it(case: Case) -> None:
    stack = Scene().stack(case)
    (table,) = stack.pos.parameters()
    parts = table.detach() if case.spec == "shaw" else [table.detach()] * 2
    norms = [float(table_norm(block.self_attn.view)) for block in stack.layers]
    assert norms == pytest.approx([float(part.norm()) for part in parts])
    assert case.spec != "shaw" or norms[0] != norms[1]
