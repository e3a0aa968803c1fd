"""Test fairseq's training options with encodings of every kind."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from fairseq.checkpoint_utils import load_checkpoint_to_cpu, load_model_ensemble_and_task
from fairseq.dataclass.configs import GenerationConfig

from fairseq_posenc.models.layers import tensors_of

from . import support

#: Tables for all layers or for each layer, vectors at the input and at the values, and a composition.
KINDS = ["learned+t5", "shaw", "m2", "raffel"]
DTYPES = {"--fp16": torch.float16, "--bf16": torch.bfloat16}
MORE = {"shaw": "share=layer-wise"}


def flags(kind: str) -> list[str]:
    return ["--pos-enc", kind, *(["--pos-enc-args", MORE[kind]] if kind in MORE else [])]


def gradients(data: Path, *arguments: str) -> tuple[dict[str, torch.Tensor], Counter[str]]:
    """Return the gradients of a batch, and how often each parameter of an encoding accumulated a gradient."""
    model, task = support.built(data, *arguments)
    support.move(model).double().train()
    times: Counter[str] = Counter()
    for name, parameter in model.named_parameters():
        if ".pos." in name:
            parameter.register_post_accumulate_grad_hook(lambda _, name=name: times.update([name]))
    logits = model(**support.batches(task)[0]["net_input"])[0]
    logits.log_softmax(-1)[..., 4].sum().backward()
    return {name: parameter.grad for name, parameter in model.named_parameters()}, times


@pytest.mark.parametrize("kind", KINDS)
def test_checkpointed_activations_give_the_same_gradients(data: Path, kind: str) -> None:
    """Each parameter accumulates its gradient only once, as DistributedDataParallel requires."""
    plain, once = gradients(data, *flags(kind))
    checkpointed, also_once = gradients(data, *flags(kind), "--checkpoint-activations")
    assert checkpointed.keys() == plain.keys()
    for name, gradient in checkpointed.items():
        torch.testing.assert_close(gradient, plain[name], rtol=1e-9, atol=1e-9)
    assert set(once.values()) == set(also_once.values()) == {1}
    assert once.keys() == {name for name in plain if ".pos." in name}


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
    assert support.hypotheses(loaded, task, size=64) == support.hypotheses(run.model, task, size=64)


def test_a_dropped_layer_is_that_layer(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second layer keeps its own table when the first is skipped."""
    arguments = ["--pos-enc", "shaw", "--encoder-layerdrop", "0.5"]
    model, task = support.built(data, *arguments)
    support.move(model)
    inputs = support.batches(task)[0]["net_input"]
    model.encoder.layers.train()  # LayerDrop reads the mode of its own list only
    for layer in model.encoder.layers._modules.values():
        layer.eval()
    monkeypatch.setattr(torch.Tensor, "uniform_", lambda self: self.copy_(torch.tensor([0.1, 0.9])))
    dropped = model.encoder(inputs["src_tokens"], None)["encoder_out"][0]
    monkeypatch.undo()
    where = model.encoder.positions(inputs["src_tokens"])
    x, _ = model.encoder.embed(inputs["src_tokens"], None, where)
    second = model.encoder.layers._modules["1"]
    x = (x * inputs["src_tokens"].ne(1)[..., None]).transpose(0, 1)
    alone = second(x, where.padding, positions=where, **tensors_of(second, model.encoder.pos.per_layer(where)))
    torch.testing.assert_close(dropped, alone)


@pytest.mark.parametrize(
    "more",
    [
        ["--quant-noise-pq", "0.1", "--quant-noise-pq-block-size", "4"],
        ["--offload-activations"],
        ["--decoder-embed-dim", "24", "--decoder-ffn-embed-dim", "8"],
        ["--no-cross-attention"],
        "--eval-bleu --eval-bleu-args {} --valid-subset valid --validate-interval-updates 2".split(),
        ["--fp16", "--fp16-no-flatten-grads"],
        ["--bf16"],
        ["--adaptive-softmax-cutoff", "8", "--criterion", "adaptive_loss", "--ddp-backend", "legacy_ddp"],
        ["--share-all-embeddings"],
        ["--encoder-normalize-before", "--decoder-normalize-before", "--attention-dropout", "0.1"],
    ],
    ids=lambda more: more[0][2:],
)
def test_every_option_trains_with_finite_losses(data: Path, more: list[str]) -> None:
    run = support.train(data, "--pos-enc", "learned+t5", *more, "--max-update", 3)
    assert len(run.losses) == 3
    assert all(loss == loss for loss in run.losses)
    assert {p.dtype for p in run.model.parameters()} == {DTYPES.get(more[0], torch.float32)}


def test_an_average_model_uses_its_own_weights(data: Path, tmp_path: Path) -> None:
    ema = ["--store-ema", "--ema-decay", "0.5", "--ema-fp32"]
    run = support.train(data, *flags("shaw"), *ema, "--max-update", 3, "--save-dir", tmp_path)
    average, task = run.trainer.ema.get_model().eval(), run.trainer.task
    inputs = support.batches(task)[0]["net_input"]
    before = average(**inputs)[0]
    assert not torch.allclose(before, run.model.eval()(**inputs)[0], atol=1e-3)
    state = load_checkpoint_to_cpu(str(tmp_path / "checkpoint_last.pt"))["extra_state"]["ema"]
    assert any(".pos." in name for name in state)
    support.move(run.model)
    torch.testing.assert_close(average(**inputs)[0], before)


@pytest.mark.parametrize(
    ("retain", "modules", "active"),
    [(False, None, False), (True, None, True), (True, ["MultiheadAttention"], True), (True, ["Nothing"], False)],
)
def test_dropout_of_attention_may_stay_in_generation(
    data: Path, retain: bool, modules: list[str] | None, active: bool
) -> None:
    model, task = support.built(data, "--pos-enc", "rope", "--attention-dropout", "0.5")
    generation = GenerationConfig(retain_dropout=retain, retain_dropout_modules=modules)
    model.prepare_for_inference_(SimpleNamespace(generation=generation))
    encoder = model.encoder.layers[0].self_attn
    decoder = model.decoder.layers[0].self_attn
    assert encoder.dropout_rate == decoder.dropout_rate == (0.5 if active else 0.0)
    tokens = support.batches(task)[0]["net_input"]["src_tokens"]
    with torch.no_grad():
        outputs = [model.encoder(tokens, None)["encoder_out"][0] for _ in range(2)]
    assert torch.equal(*outputs) is not active
