"""Test fairseq's training options with encodings of several kinds, --pos-enc-random and --pos-enc-no-decay."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from fairseq.checkpoint_utils import load_model_ensemble_and_task
from fairseq.dataclass.configs import GenerationConfig
from fairseq.trainer import Trainer
from torch import Tensor, nn

from fairseq_posenc.compat import CheckpointError
from fairseq_posenc.encodings import StackShape, build, get, names
from fairseq_posenc.hub.pretrained import read
from fairseq_posenc.models.weight_decay import Watch, spare

from . import lm, masked_lm, support

#: Tables for all layers with vectors at the input, and tables for each layer with vectors at the values.
KINDS = [["--pos-enc", "learned+t5"], ["--pos-enc", "shaw", "--pos-enc-args", "share=layer-wise"]]


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
    task = run.trainer.task
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


@pytest.mark.parametrize(
    "more",
    [
        ["--quant-noise-pq", "0.1", "--quant-noise-pq-block-size", "4"],
        ["--offload-activations"],
        ["--decoder-embed-dim", "24", "--decoder-ffn-embed-dim", "8"],
        ["--no-cross-attention"],
        "--eval-bleu --eval-bleu-args {} --valid-subset valid --validate-interval-updates 2".split(),
        ["--adaptive-softmax-cutoff", "8", "--criterion", "adaptive_loss", "--ddp-backend", "legacy_ddp"],
        ["--share-all-embeddings"],
        ["--encoder-normalize-before", "--decoder-normalize-before", "--attention-dropout", "0.1"],
    ],
    ids=lambda more: more[0][2:],
)
def test_every_option_trains_with_finite_losses(data: Path, more: list[str]) -> None:
    run = support.train(data, "--pos-enc", "learned+t5", *more, "--max-update", 3)
    assert len(run.losses) == 3
    assert torch.tensor(run.losses).isfinite().all()


def test_dropout_of_attention_may_stay_in_generation(data: Path) -> None:
    cases = ((False, None, 0), (True, None, 0.5), (True, ["MultiheadAttention"], 0.5), (True, ["Nothing"], 0))
    for retain, modules, rate in cases:
        model, _ = support.built(data, "--pos-enc", "rope", "--attention-dropout", "0.5")
        generation = GenerationConfig(retain_dropout=retain, retain_dropout_modules=modules)
        model.prepare_for_inference_(SimpleNamespace(generation=generation))
        assert {side.layers[0].self_attn.dropout_rate for side in (model.encoder, model.decoder)} == {rate}


# -- random positions -----------------------------------------------------------------------------------------------

COUNT = 64
RANDOM = ["--pos-enc-random", COUNT]


def test_training_draws_positions_and_evaluation_does_not(data: Path, lines: Path) -> None:
    plain = support.train(data, "--pos-enc", "shaw", "--max-update", 1)
    run = support.train(data, "--pos-enc", "shaw", *RANDOM, "--max-update", 1)
    assert run.losses != plain.losses
    model, inputs = run.model.eval(), support.batches(run.trainer.task)[0]["net_input"]
    for side in (model.encoder, model.decoder):
        assert (side.pos.stack.max_length, side.pos.stack.drawn, side.max_positions()) == (COUNT, 24, 24)
    assert model(**inputs)[0].equal(model(**inputs)[0])
    language_model, _ = lm.built(lines, "--pos-enc", "xl", *RANDOM)
    assert language_model.decoder.pos.stack.max_length == COUNT


def test_models_of_other_programs_draw_no_positions(text: Path, tmp_path: Path) -> None:
    run = masked_lm.train(text, *RANDOM, "--max-update", 1, "--save-dir", tmp_path)
    assert run.model.encoder.sentence_encoder.pos.members["learned"].weight.shape[0] == COUNT
    with pytest.raises(CheckpointError, match=f"--pos-enc-random {COUNT}"):
        read(tmp_path / "checkpoint_last.pt")


# -- --pos-enc-no-decay: weight decay does not change the listed parameters -------------------------------------------

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


def test_updates_without_a_step_and_parameters_that_do_not_learn_are_no_fault() -> None:
    watch = Watch([nn.Parameter(torch.ones(1))])
    for number in (0, 0, 7, 7, 3):  # accumulated gradients, a checkpoint that is loaded
        watch.set_num_updates(number)
    watch.spared[0].requires_grad_(False)
    watch.set_num_updates(4)
    watch.spared[0].requires_grad_(True)
    with pytest.raises(ValueError, match="--pos-enc-no-decay"):
        watch.set_num_updates(5)
