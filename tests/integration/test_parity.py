"""Test that our models equal those of stock fairseq, with an encoding in place of its positions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq.modules import LearnedPositionalEmbedding, MultiheadAttention, SinusoidalPositionalEmbedding

from fairseq_posenc.models.attention import PosEncSelfAttention

from . import lm, masked_lm, support
from .cases import CASES, in_turn, position_flags
from .support import PAD, STOCK, parameters

SINUSOIDAL = ["--pos-enc", "sinusoidal", "--pos-enc-args", "freq=t2t,offset=2"]
ADAPTIVE = (
    "--adaptive-softmax-cutoff 10,20 --adaptive-input --adaptive-input-cutoff 10,20 --tie-adaptive-weights".split()
)


@pytest.mark.parametrize(("module", "updates"), [(support, 50), (lm, 20)], ids=["translation", "language model"])
def test_losses_equal_those_of_stock_fairseq(module: Any, updates: int, corpora: dict[Any, Path]) -> None:
    """Both start from the same seed, because weights are drawn in the same order."""
    task = lm.STOCK_TASK if module is lm else support.TASK
    options = [corpora[module], "--max-update", updates]
    ours = module.train(*options, *SINUSOIDAL, task=task)
    theirs = module.train(*options, model=module.STOCK, task=task)
    assert len(ours.losses) == updates
    assert ours.losses == pytest.approx(theirs.losses, rel=1e-4)
    assert ours.losses[-1] < ours.losses[0] - 0.3
    assert parameters(ours.model) == parameters(theirs.model)


def test_without_the_offset_the_losses_differ(data: Path) -> None:
    """This shows that the test above can fail."""
    ours = support.train(data, *SINUSOIDAL[:-1], "freq=t2t", "--max-update", 3)
    theirs = support.train(data, "--max-update", 3, model=STOCK)
    assert ours.losses != pytest.approx(theirs.losses, rel=1e-4)


@pytest.mark.parametrize(
    "more", [[], ["--encoder-normalize-before", "--decoder-normalize-before"], ["--layernorm-embedding"]]
)
def test_a_stock_checkpoint_loads_by_its_names(data: Path, more: list[str]) -> None:
    ours, task = support.built(data, *SINUSOIDAL, *more, seed=1)
    theirs, _ = support.built(data, *more, model=STOCK, seed=2)
    state = {name: tensor for name, tensor in theirs.state_dict().items() if "_float_tensor" not in name}
    assert ours.state_dict().keys() ^ state.keys() <= {"encoder.version", "decoder.version"}
    ours.load_state_dict(state)
    for batch in support.batches(task):
        words = batch["target"].ne(PAD)  # the two differ at padding, which has no effect
        logits = [model(**batch["net_input"])[0][words] for model in (ours, theirs)]
        torch.testing.assert_close(*logits, rtol=1e-5, atol=1e-5)


#: By kind of model: its module, the stacks with tables, fairseq's flags for them, and fairseq's task.
LEARNED: dict[str, Any] = {
    "translation": (support, ("encoder", "decoder"), ["--encoder-learned-pos", "--decoder-learned-pos"], support.TASK),
    "language model": (lm, ("decoder",), ["--decoder-learned-pos"], lm.STOCK_TASK),
    "masked": (masked_lm, ("encoder.sentence_encoder",), [], masked_lm.STOCK_TASK),
}


@pytest.mark.parametrize(
    ("kind", "more"),
    [
        ("translation", []),
        ("language model", ["--decoder-normalize-before"]),
        ("language model", [*ADAPTIVE, "--tie-adaptive-weights"]),
        ("masked", []),
        ("masked", ["--encoder-normalize-before"]),
        ("masked", ["--untie-weights-roberta"]),
    ],
)
def test_learned_positions_are_those_of_stock_fairseq(kind: str, more: list[str], corpora: dict[Any, Path]) -> None:
    """Names, weights, masks and logits are the same, and the numbers of parameters except for unused rows."""
    module, sides, flags, task = LEARNED[kind]
    own = {"task": task} if kind == "language model" else {}
    ours, our_task = module.built(corpora[module], "--pos-enc", "learned", *more, **own)
    theirs, their_task = module.built(corpora[module], *flags, *more, model=module.STOCK, task=task)
    theirs.load_state_dict(support.stock_state(ours, *sides))
    assert parameters(theirs) - parameters(ours) == len(sides) * (PAD + 1) * 16
    length = {support: (24, 24), lm: lm.SEGMENT, masked_lm: masked_lm.LENGTH}[module]
    batches = (support.batches(either, "valid", size=8, longest=length) for either in (our_task, their_task))
    for mine, stock in zip(*batches, strict=True):
        real = mine["target"].ne(PAD)
        assert mine["target"].equal(stock["target"])
        assert mine["net_input"]["src_tokens"].equal(stock["net_input"]["src_tokens"])
        outputs = [(model, model(**batch["net_input"])) for model, batch in ((ours, mine), (theirs, stock))]
        probs = [model.get_normalized_probs(output, log_probs=True)[real] for model, output in outputs]
        torch.testing.assert_close(*probs, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("case", in_turn(CASES))
def test_positions_live_in_self_attention_and_in_pos_only(data: Path, case: tuple[str, str | None]) -> None:
    """A training step gives every parameter a gradient."""
    model, task = support.built(data, *position_flags(*case))
    own = (LearnedPositionalEmbedding, SinusoidalPositionalEmbedding)
    assert not any(isinstance(module, own) for module in model.modules())
    assert model.encoder.embed_positions is None
    assert model.decoder.embed_positions is None
    for layer in [*model.encoder.layers, *model.decoder.layers]:
        assert type(layer.self_attn) is PosEncSelfAttention
    assert all(type(layer.encoder_attn) is MultiheadAttention for layer in model.decoder.layers)
    names = [key for key in model.state_dict() if ".pos." in key]
    assert all(key.split(".")[2] in case[0].split("+") for key in names), names
    batch = support.batches(task)[0]
    model.train()(**batch["net_input"])[0].square().sum().backward()
    assert not [key for key, parameter in model.named_parameters() if parameter.grad is None]
