"""Test that our models equal those of stock fairseq, with an encoding in place of its positions."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq.modules import LearnedPositionalEmbedding, MultiheadAttention, SinusoidalPositionalEmbedding

from fairseq_posenc.models.attention import PosEncSelfAttention

from . import lm, support
from .cases import CASES, KINDS, in_turn, position_flags
from .support import PAD, STOCK

SINUSOIDAL = ["--pos-enc", "sinusoidal", "--pos-enc-args", "freq=t2t,offset=2"]


def parameters(model: Any) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize(("module", "updates"), [(support, 50), (lm, 20)], ids=["translation", "language model"])
def test_losses_equal_those_of_stock_fairseq(module: Any, updates: int, corpora: dict[Any, Path]) -> None:
    """Both start from the same seed, because weights are drawn in the same order."""
    train = functools.partial(module.train, corpora[module], "--max-update", updates, task=module.STOCK_TASK)
    ours, theirs = train(*SINUSOIDAL), train(model=module.STOCK)
    assert len(ours.losses) == updates
    assert ours.losses == pytest.approx(theirs.losses, rel=1e-4)
    assert ours.losses[-1] < ours.losses[0] - 0.3
    assert parameters(ours.model) == parameters(theirs.model)


def test_without_the_offset_the_losses_differ(data: Path) -> None:
    """This shows that the test above can fail."""
    ours = support.train(data, *SINUSOIDAL[:-1], "freq=t2t", "--max-update", 3)
    theirs = support.train(data, "--max-update", 3, model=STOCK)
    assert ours.losses != pytest.approx(theirs.losses, rel=1e-4)


@pytest.mark.parametrize("case", support.table("trainings.toml", "stock_positions"), ids=lambda case: case["kind"])
def test_positions_of_stock_fairseq_give_the_same_model(case: dict[str, Any], corpora: dict[Any, Path]) -> None:
    """Names, weights, masks and logits are the same, and the numbers of parameters except for unused rows."""
    module, stacks = KINDS[case["kind"]], case["stacks"]
    stock, both = case.get("stock", "").split(), case.get("both", "").split()
    task = module.STOCK_TASK if module is lm else module.TASK
    ours, our_task = module.built(corpora[module], *case["ours"].split(), *both, task=task)
    theirs, their_task = module.built(corpora[module], *stock, *both, model=module.STOCK, task=module.STOCK_TASK)
    state = {name: tensor for name, tensor in ours.state_dict().items() if ".pos." not in name}
    for stack in stacks:  # fairseq's tables have further rows before the first position, which are not used
        table = ours.get_submodule(f"{stack}.pos.learned").weight.detach()
        state[f"{stack}.embed_positions.weight"] = torch.cat([torch.zeros(PAD + 1, table.shape[1]), table])
    missing, unexpected = theirs.load_state_dict(state, strict=False)
    assert {name.rpartition(".")[2] for name in missing} <= {"_float_tensor", "version"}
    assert not unexpected
    assert parameters(theirs) - parameters(ours) == len(stacks) * (PAD + 1) * 16
    batches = (module.batches(either, "valid", size=8) for either in (our_task, their_task))
    for mine, other in zip(*batches, strict=True):
        real = mine["target"].ne(PAD)  # the two differ at padding, which has no effect
        assert mine["target"].equal(other["target"])
        assert mine["net_input"]["src_tokens"].equal(other["net_input"]["src_tokens"])
        outputs = [(model, model(**batch["net_input"])) for model, batch in ((ours, mine), (theirs, other))]
        probs = [model.get_normalized_probs(output, log_probs=True)[real] for model, output in outputs]
        torch.testing.assert_close(*probs, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", in_turn(CASES))
def test_positions_live_in_self_attention_and_in_pos_only(data: Path, name: str) -> None:
    """A training step gives every parameter a gradient."""
    model, task = support.built(data, *position_flags(name))
    own = (LearnedPositionalEmbedding, SinusoidalPositionalEmbedding)
    assert not any(isinstance(module, own) for module in model.modules())
    for layer in [*model.encoder.layers, *model.decoder.layers]:
        assert type(layer.self_attn) is PosEncSelfAttention
    assert all(type(layer.encoder_attn) is MultiheadAttention for layer in model.decoder.layers)
    names = [key for key in model.state_dict() if ".pos." in key]
    assert all(key.split(".")[2] in name.split("+") for key in names), names
    batch = support.batches(task)[0]
    model.train()(**batch["net_input"])[0].square().sum().backward()
    assert not [key for key, parameter in model.named_parameters() if parameter.grad is None]
