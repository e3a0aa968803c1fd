"""Test fairseq's training options, --pos-enc-random, --pos-enc-no-decay and --pos-enc-log-interval."""

from __future__ import annotations

import json
import logging
import math
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from fairseq.checkpoint_utils import load_model_ensemble_and_task
from fairseq.dataclass.configs import GenerationConfig
from fairseq.distributed import utils as distributed
from fairseq.trainer import Trainer
from torch import Tensor, nn

from fairseq_posenc.attention import graphs
from fairseq_posenc.attention.statistics import measuring, values_of
from fairseq_posenc.compat import commands
from fairseq_posenc.core import relative
from fairseq_posenc.encodings import StackShape, build, get, names
from fairseq_posenc.models.weight_decay import Watch, spare

from . import lm, masked_lm, support

#: Tables for all layers with vectors at the input, and tables for each layer with vectors at the values.
KINDS = [["--pos-enc", "learned+t5"], ["--pos-enc", "shaw", "--pos-enc-args", "share=layer-wise"]]

#: Training options, which give finite losses; and options with which a compiled formula trains as the explicit one.
FINITE, COMPILED = (support.table("trainings.toml", name) for name in ("finite_losses", "compiled"))


def gradients(data: Path, *arguments: str) -> dict[str, Tensor]:
    """Return the gradients of one batch. Each parameter of an encoding must get its gradient in one addition."""
    model, task = support.built(data, *arguments)
    support.move(model).double().train()
    times: Counter[str] = Counter()
    for name, parameter in model.named_parameters():
        if ".pos." in name:
            parameter.register_post_accumulate_grad_hook(lambda _, name=name: times.update([name]))
    logits = model(**support.batches(task)[0]["net_input"])[0]
    logits.log_softmax(-1)[..., 4].sum().backward()
    assert times == dict.fromkeys(times, 1), "DistributedDataParallel requires one addition"
    return {name: parameter.grad for name, parameter in model.named_parameters()}


@pytest.mark.parametrize("flags", KINDS, ids=lambda flags: flags[1])
def test_checkpointed_activations_give_the_same_gradients(data: Path, flags: list[str]) -> None:
    plain, recomputed = gradients(data, *flags), gradients(data, *flags, "--checkpoint-activations")
    torch.testing.assert_close(recomputed, plain, rtol=1e-9, atol=1e-9)


def test_a_schedule_survives_dropped_layers_and_a_checkpoint(data: Path, tmp_path: Path) -> None:
    """Layers keep their numbers, and each reads the table of the encoding that is active in it."""
    options = "t5.layers=every-2-skip,t5-2.layers=every-2,t5-2.buckets=8"
    drop = ["--encoder-layerdrop", "0.5", "--decoder-layerdrop", "0.5"]
    flags = ["--pos-enc", "t5+t5-2", "--pos-enc-args", options, *drop]
    run = support.train(data, *flags, "--max-update", 4, "--save-dir", tmp_path)
    task = run.task
    (loaded,), _, _ = load_model_ensemble_and_task([str(tmp_path / "checkpoint_last.pt")], {"data": str(data)})
    for model in (run.model.eval(), loaded.eval()):
        for side in (model.encoder, model.decoder):
            assert [list(layer.self_attn.view.members) for layer in side.layers] == [["t5"], ["t5-2"]]
            assert [tuple(table.shape) for table in side.pos.parameters()] == [(1, 2, 32), (1, 2, 8)]
    inputs = support.batches(task)[0]["net_input"]
    assert loaded(**inputs)[0].equal(run.model(**inputs)[0])


def test_a_dropped_layer_is_that_layer(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second layer keeps its own table when the first is skipped."""
    model, task = support.built(data, "--pos-enc", "shaw", "--pos-enc-args", "share=none", "--encoder-layerdrop", "0.5")
    source, layers = support.batches(task)[0]["net_input"]["src_tokens"], support.move(model).eval().encoder.layers
    with monkeypatch.context() as patch:
        patch.setattr(layers._modules["0"], "forward", lambda x, *rest, **more: x)
        alone = model.encoder(source, None)["encoder_out"][0]
    layers.training = True  # LayerDrop reads the mode of its own list only
    monkeypatch.setattr(Tensor, "uniform_", lambda self: self.copy_(torch.tensor([0.1, 0.9])))
    torch.testing.assert_close(model.encoder(source, None)["encoder_out"][0], alone)


@pytest.mark.parametrize("more", FINITE.values(), ids=FINITE)
def test_every_option_trains_with_finite_losses(data: Path, more: str) -> None:
    run = support.train(data, "--pos-enc", "learned+t5", *more.split(), "--max-update", 3)
    assert len(run.losses) == 3
    assert torch.tensor(run.losses).isfinite().all()


def test_dropout_of_attention_may_stay_in_generation(data: Path) -> None:
    cases = ((False, None, 0), (True, None, 0.5), (True, ["MultiheadAttention"], 0.5), (True, ["Nothing"], 0))
    for retain, modules, rate in cases:
        model, _ = support.built(data, "--pos-enc", "rope", "--attention-dropout", "0.5")
        generation = GenerationConfig(retain_dropout=retain, retain_dropout_modules=modules)
        model.prepare_for_inference_(SimpleNamespace(generation=generation))
        assert {side.layers[0].self_attn.dropout_rate for side in (model.encoder, model.decoder)} == {rate}


def test_a_loss_that_is_not_finite_ends_training_with_one_line(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv(commands.DEBUG, raising=False)
    words = ["--pos-enc", "shaw", "--lr", "1e30", "--save-dir", tmp_path, "--save-interval-updates", "1"]
    with caplog.at_level(logging.WARNING), pytest.raises(SystemExit) as end:
        support.trained(support.command_line(data, *words), distributed.call_main)
    assert re.fullmatch(".*The training diverged in update 2: gradients are Nan/Inf.*", str(end.value))
    assert any("detected in output of" in message for message in caplog.messages)  # fairseq names the module


# -- training with the compiled formula, which takes a minute; the laws compile single layers in `make test` ---------


@pytest.fixture
def as_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Trace without generating code, and let layers compute shared biases themselves, as on a GPU."""
    monkeypatch.setattr(graphs, "BACKEND", "aot_eager")
    monkeypatch.setattr(relative, "ONCE", ())
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.mark.long
@pytest.mark.usefixtures("as_on_a_gpu")
@pytest.mark.parametrize("more", COMPILED.values(), ids=COMPILED)
def test_training_options_change_nothing_in_the_compiled_formula(data: Path, more: str) -> None:
    flags = ["--pos-enc", "shaw", "--pos-enc-args", "clip=4", *more.split(), "--max-update", 3, "--pos-enc-path"]
    compiled, explicit = (support.train(data, *flags, path) for path in ("compiled", "explicit"))
    assert compiled.losses == pytest.approx(explicit.losses, rel=2e-3)


# -- random positions -----------------------------------------------------------------------------------------------

COUNT = 64
RANDOM = ["--pos-enc-random", COUNT]


def test_training_draws_positions_and_evaluation_does_not(data: Path, lines: Path, text: Path) -> None:
    plain = support.train(data, "--pos-enc", "shaw", "--max-update", 1)
    run = support.train(data, "--pos-enc", "shaw", *RANDOM, "--max-update", 1)
    assert run.losses != plain.losses
    model, inputs = run.model.eval(), support.batches(run.task)[0]["net_input"]
    for side in (model.encoder, model.decoder):
        assert (side.pos.stack.max_length, side.pos.stack.drawn, side.max_positions()) == (COUNT, 24, 24)
    assert model(**inputs)[0].equal(model(**inputs)[0])
    language_model, _ = lm.built(lines, "--pos-enc", "xl", *RANDOM)
    assert language_model.decoder.pos.stack.max_length == COUNT
    masked, _ = masked_lm.built(text, "--pos-enc", "learned", *RANDOM)
    assert masked.encoder.sentence_encoder.pos.members["learned"].weight.shape[0] == COUNT


# -- --pos-enc-no-decay: weight decay does not change the listed parameters -------------------------------------------

DECAY = ["--weight-decay", "0.5"]
SPARING = [*DECAY, "--pos-enc-no-decay"]
WAYS: dict[str, str] = support.table("trainings.toml", "weight_decay")
LONG: dict[str, str] = support.table("trainings.toml", "weight_decay_long")


def after(data: Path, *arguments: Any, updates: int = 1) -> dict[str, Tensor]:
    run = support.train(data, "--pos-enc", "m2", *arguments, "--max-update", updates)
    return {name: x.detach().clone() for name, x in run.model.named_parameters()}


@pytest.mark.parametrize("way", [*WAYS.values(), *(pytest.param(way, marks=pytest.mark.long) for way in LONG.values())])
def test_a_named_parameter_does_not_decay_and_the_others_do(data: Path, way: str) -> None:
    """One update changes the tables as without decay and the rest as with decay, bit by bit."""
    without, decayed, spared = (after(data, *way.split(), *more) for more in ([], DECAY, SPARING))
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


@pytest.mark.parametrize("name", [name for name in names() if get(name).no_decay])
def test_what_an_encoding_names_is_a_parameter(name: str) -> None:
    pos = build(name, None, StackShape(layers=1, heads=2, dim=8, max_length=4))
    own = dict(pos.members[name].named_parameters())
    watch = spare(pos)
    assert watch is not None
    assert [id(x) for x in watch.spared] == [id(own[named]) for named in get(name).no_decay]


def test_updates_without_a_step_and_parameters_that_do_not_learn_are_no_fault() -> None:
    watch = Watch([nn.Parameter(torch.ones(1))])
    for number in (0, 0, 7, 7, 3):  # accumulated gradients, a checkpoint that is loaded
        watch.set_num_updates(number)
    watch.spared[0].requires_grad_(False)
    watch.set_num_updates(4)
    watch.spared[0].requires_grad_(True)
    with pytest.raises(ValueError, match="--pos-enc-no-decay"):
        watch.set_num_updates(5)


# -- --pos-enc-log-interval: what reaches the log, and that training stays as it is ----------------------------------

JSON = ["--log-format", "json", "--log-interval", "1"]
SIDES = [f"{side}coder_{layer}" for side in ("en", "de") for layer in (1, 2)]
NAMES = [f"{value}_{side}" for value in ("largest_logit", "entropy", "table_norm") for side in SIDES]


def logged_by(caplog: pytest.LogCaptureFixture, tag: str = "train_inner") -> list[dict[str, Any]]:
    """Return the statistics in each line of the log."""
    records = [json.loads(r.getMessage()) for r in caplog.records if r.name == tag and r.getMessage().startswith("{")]
    return [{key: float(x) for key, x in record.items() if "coder_" in key} for record in records]


def test_every_second_update_is_measured_and_training_stays_the_same(
    data: Path, caplog: pytest.LogCaptureFixture
) -> None:
    flags = ["--pos-enc", "m2", "--pos-enc-decoder", "shaw", "--update-freq", 2, "--max-update", 4, "--dropout", 0.1]
    plain = support.train(data, *flags)
    with caplog.at_level("INFO"):
        logged = support.train(data, *flags, "--pos-enc-log-interval", 2, *JSON)
    assert logged.losses == plain.losses
    assert all(torch.equal(x, plain.model.state_dict()[name]) for name, x in logged.model.state_dict().items())
    first, second, third, fourth = logged_by(caplog)
    assert not first
    assert sorted(second) == sorted(NAMES)
    assert third == second  # until the next measurement
    assert fourth.keys() == second.keys()
    assert fourth != second
    assert all(math.isfinite(x) for x in fourth.values())
    assert not logged_by(caplog, "valid")


def test_the_numbers_are_those_of_the_weights_before_the_update(lines: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Both batches of the update count, and the columns of segment memory are keys."""
    flags = ["--pos-enc", "xl", "--update-freq", 2, "--max-update", 1, "--pos-enc-log-interval", 1, *JSON]
    model, task = lm.built(lines, *flags, seed=3)  # the seed of the training
    memory = task._memory(lm.MEMORY)
    with measuring(model) as layers, torch.no_grad():
        for number, sample in enumerate(lm.batches(task, "train")[:2]):
            model(sample["net_input"]["src_tokens"], memory=memory.begin(number))
    with caplog.at_level("INFO"):
        lm.train(lines, *flags)
    (line,) = logged_by(caplog)
    assert line == {name: pytest.approx(x, abs=2e-4) for name, x in values_of(layers).items()}


def test_tables_that_are_split_are_refused(data: Path) -> None:
    run = support.train(data, "--max-update", 1, "--pos-enc-log-interval", 1)
    run.cfg.distributed_training.ddp_backend = "fully_sharded"
    with pytest.raises(ValueError, match="--pos-enc-log-interval cannot read tables that --ddp-backend fully_sharded"):
        run.train_step([])
