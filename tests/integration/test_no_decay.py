"""Test --pos-enc-no-decay: with any optimizer and precision, weight decay does not change the listed parameters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq.trainer import Trainer
from torch import Tensor

from fairseq_posenc.encodings import StackShape, build, get, names
from fairseq_posenc.models.weight_decay import spare

from . import support

DECAY = ["--weight-decay", "0.5"]
SPARING = [*DECAY, "--pos-enc-no-decay"]
M2 = ["--pos-enc", "m2"]
#: Optimizers that run without a GPU, and precisions. fairseq's Adafactor and its Adam in half precision are its own.
ADAFACTOR = ["--optimizer", "adafactor", "--lr-scheduler", "fixed"]
HALF = ["--fp16", "--fp16-no-flatten-grads", "--fp16-init-scale", "4"]
WAYS: list[Any] = [ADAFACTOR, ["--update-freq", "2"], HALF, ["--memory-efficient-fp16", *HALF[2:]], ["--bf16"]]
OTHERS = [["--optimizer", "adadelta", "--lr-scheduler", "fixed"]]
OTHERS += [["--optimizer", name] for name in ("sgd", "adamax", "adagrad", "nag")]
NAMED = [name for name in names() if get(name).no_decay]


def after(data: Path, *arguments: Any, updates: int = 1) -> dict[str, Tensor]:
    run = support.train(data, *M2, *arguments, "--max-update", updates)
    return {name: x.detach().clone() for name, x in run.model.named_parameters()}


@pytest.mark.parametrize("way", [*WAYS, *(pytest.param(way, marks=pytest.mark.long) for way in OTHERS)], ids=" ".join)
def test_a_named_parameter_does_not_decay_and_the_others_do(data: Path, way: list[str]) -> None:
    """One update changes the tables as without decay and the rest as with decay, bit by bit."""
    without, decayed, spared = (after(data, *way, *more) for more in ([], DECAY, SPARING))
    for name, x in spared.items():
        is_table = ".pos.m2." in name
        assert torch.equal(x, without[name] if is_table else decayed[name]), name
        if name.endswith("weight"):  # biases start at zero, where there is nothing to decay
            assert not torch.equal(without[name], decayed[name]), name


def test_flat_copies_are_refused_before_they_decay_for_long(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "current_device", lambda: None)  # the index of a CPU's tensors is None
    monkeypatch.setattr(Trainer, "__init__", Trainer.__init__.__wrapped__)  # pretend that there is a GPU
    assert after(data, "--fp16", "--fp16-init-scale", "4", *DECAY)
    with pytest.raises(ValueError, match=r"--pos-enc-no-decay.*--fp16-no-flatten-grads"):
        after(data, "--fp16", "--fp16-init-scale", "4", *SPARING, updates=3)


def test_one_stack_may_have_something_to_spare(data: Path) -> None:
    model, _ = support.built(data, "--pos-enc", "rope", "--pos-enc-decoder", "m1", "--pos-enc-no-decay")
    assert model.encoder.no_decay is None
    assert model.decoder.no_decay.spared == (model.decoder.pos.members["m1"].weight,)
    assert not [name for name in model.state_dict() if "no_decay" in name]


@pytest.mark.parametrize("name", NAMED)
def test_what_an_encoding_names_is_a_parameter(name: str) -> None:
    pos = build(name, None, StackShape(layers=1, heads=2, dim=8, max_length=4))
    own = dict(pos.members[name].named_parameters())
    watch = spare(pos)
    assert watch is not None
    assert [id(x) for x in watch.spared] == [id(own[named]) for named in get(name).no_decay]
