"""Test --pos-enc-no-decay: with any optimizer and precision, weight decay does not change the listed parameters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq.optim.composite import CompositeOptimizerConfig, FairseqCompositeOptimizer
from fairseq.trainer import Trainer
from omegaconf import OmegaConf
from torch import Tensor, nn

from fairseq_posenc.encodings import Composition, StackShape, build, get, names
from fairseq_posenc.models.weight_decay import Watch, hooks, spare

from . import support

DECAY = ["--weight-decay", "0.5"]
SPARING = [*DECAY, "--pos-enc-no-decay"]
M2 = ["--pos-enc", "m2"]
#: Optimizers that run without a GPU.
OPTIMIZERS = ["adam", "adafactor", "sgd"]
OPTIMIZERS += [pytest.param(name, marks=pytest.mark.long) for name in ("adamax", "adagrad", "adadelta", "nag")]
HALF = ["--fp16", "--fp16-no-flatten-grads", "--fp16-init-scale", "4"]
PRECISIONS = [["--update-freq", "2"], HALF, ["--memory-efficient-fp16", "--fp16-init-scale", "4"], ["--bf16"]]
NAMED = [name for name in names() if get(name).no_decay]


def after(data: Path, *arguments: Any, updates: int = 1) -> dict[str, Tensor]:
    run = support.train(data, *M2, *arguments, "--max-update", updates)
    return {name: x.detach().clone() for name, x in run.model.named_parameters()}


def check_sparing(data: Path, *arguments: Any) -> None:
    """Check that one update changes the tables as without decay and the rest as with decay, bit by bit."""
    without, decayed, spared = (after(data, *arguments, *more) for more in ([], DECAY, SPARING))
    for name, x in spared.items():
        is_table = ".pos.m2." in name
        assert torch.equal(x, without[name] if is_table else decayed[name]), name
        if name.endswith("weight"):  # biases start at zero, where there is nothing to decay
            assert not torch.equal(without[name], decayed[name]), name


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_a_named_parameter_does_not_decay_and_the_others_do(data: Path, optimizer: str) -> None:
    more = ["--lr-scheduler", "fixed"] if optimizer in ("adafactor", "adadelta") else []
    check_sparing(data, "--optimizer", optimizer, *more)


@pytest.mark.parametrize("precision", PRECISIONS, ids=lambda words: words[0][2:])
def test_parameters_are_spared_in_every_precision(data: Path, precision: list[str]) -> None:
    check_sparing(data, *precision)


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


# -- without fairseq's trainer ----------------------------------------------------------------------------------------


def encoding(name: str) -> Composition:
    return build(name, None, StackShape(layers=1, heads=2, dim=8, max_length=4))


@pytest.mark.parametrize("name", NAMED)
def test_what_an_encoding_names_is_a_parameter(name: str) -> None:
    pos = encoding(name)
    own = dict(pos.members[name].named_parameters())
    watch = spare(pos)
    assert watch is not None
    assert [id(x) for x in watch.spared] == [id(own[named]) for named in get(name).no_decay]


@pytest.mark.parametrize("dynamic", [False, True])
def test_in_fairseqs_composite_optimizer(dynamic: bool) -> None:
    pos, other = encoding("m2"), nn.Parameter(torch.ones(3))
    spare(pos)
    parameters = [other, *pos.parameters()]
    adam = {"_name": "adam", "adam_betas": "(0.9, 0.999)", "adam_eps": 1e-8, "weight_decay": 0.5, "lr": [0.1]}
    more = {"use_old_adam": False, "fp16_adam_stats": False, "tpu": False}
    schedule = {"_name": "fixed", "force_anneal": None, "lr_shrink": 0.1, "warmup_updates": 0, "lr": [0.1]}
    groups = {"default": {"optimizer": {**adam, **more}, "lr_scheduler": schedule}}
    config = CompositeOptimizerConfig(groups=OmegaConf.create(groups), dynamic_groups=dynamic)
    optimizer = FairseqCompositeOptimizer(config, parameters)
    for parameter in parameters:
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    assert torch.equal(other, torch.full((3,), 0.95))
    assert all(torch.equal(x, torch.ones_like(x)) for x in pos.parameters())


def test_groups_are_whole_again_after_a_step_that_failed() -> None:
    pos = encoding("m2")
    spare(pos)
    first, last = nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([first, *pos.parameters(), last], lr=0.1, weight_decay=0.5)
    order = [id(x) for x in optimizer.param_groups[0]["params"]]
    hooks().part(optimizer)
    assert [len(group["params"]) for group in optimizer.param_groups] == [2, 1]
    optimizer.step()
    assert [id(x) for x in optimizer.param_groups[0]["params"]] == order
    assert len(optimizer.param_groups) == 1
    assert set(optimizer.param_groups[0]) == set(torch.optim.SGD([first], lr=0.1).param_groups[0])


def test_a_watch_waits_for_a_step_between_two_updates_and_for_parameters_that_learn() -> None:
    watch = Watch([nn.Parameter(torch.ones(1))])
    for number in (0, 0, 7, 7, 3):  # accumulated gradients, a checkpoint that is loaded
        watch.set_num_updates(number)
    with pytest.raises(ValueError, match="--pos-enc-no-decay"):
        watch.set_num_updates(4)
    watch.spared[0].requires_grad_(False)
    watch.set_num_updates(4)
    watch.set_num_updates(5)
