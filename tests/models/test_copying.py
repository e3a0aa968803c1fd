"""Compare the probabilities of copied and generated words with the formulas of both copy mechanisms."""

from __future__ import annotations

import copy
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

pytest.importorskip("fairseq")

import support_questions as q
from support_questions import probabilities

from fairseq_posenc.models.copying import MECHANISMS, Copied, CopyNet, log_probs, target_log_probs


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return q.write_questions(tmp_path_factory.mktemp("questions") / "prepared")


@pytest.fixture(scope="module", params=MECHANISMS)
def both(data: Path, request: pytest.FixtureRequest) -> tuple[Any, Any]:
    """Return a model in float64, with each copy mechanism, and its task."""
    model, task = q.moved(data, "--pos-enc", "shaw", "--copy-mechanism", request.param)
    return model.double(), task


@pytest.fixture(scope="module")
def batch(both: tuple[Any, Any]) -> dict[str, Any]:
    return q.batch(both[1])


# -- probabilities ----------------------------------------------------------------------------------------

B, T, S, V, E = 3, 4, 9, 7, 10


def case(dtype: torch.dtype = torch.float64, spread: float = 1.0) -> tuple[list[Tensor], Tensor]:
    """Return logits, copy scores and gates, and sources with repeated words and padding."""
    random = torch.Generator().manual_seed(2)
    inputs = [torch.randn(B, T, *more, generator=random, dtype=dtype) * spread for more in ((V,), (S,), ())]
    source = torch.randint(2, E, (B, S), generator=random)
    source[1, 5:], source[2, :3] = q.PAD, q.PAD
    return [tensor.requires_grad_() for tensor in inputs], source


def copied_of(scores: Tensor, gate: Tensor, source: Tensor) -> Copied:
    places = scores.masked_fill(source.eq(q.PAD)[:, None], -math.inf).log_softmax(-1)
    return Copied(places, gate, source, E)


def test_targets_alone_have_the_same_probabilities_and_gradients() -> None:
    (logits, scores, gate), source = case()
    target = torch.stack([source[:, 4], source[:, 3].clamp(max=V - 1), source[:, 3], torch.full((B,), q.PAD)], 1)
    copied = copied_of(scores, gate, source)
    outputs = [
        target_log_probs(logits, copied, target),
        log_probs(logits, copied).gather(2, target[..., None])[..., 0],
    ]
    torch.testing.assert_close(*outputs, rtol=1e-12, atol=1e-12)
    inputs = logits, scores, gate
    gradients = [torch.autograd.grad(output.exp().sum(), inputs, retain_graph=True) for output in outputs]
    torch.testing.assert_close(*gradients, rtol=1e-10, atol=1e-12)


def test_a_target_that_can_neither_be_spoken_nor_copied_has_no_probability_and_no_gradient() -> None:
    (logits, *others), source = case()
    source[source == E - 1] = E - 2
    log_p = target_log_probs(logits, copied_of(*others, source), torch.full((B, T), E - 1))
    assert log_p.eq(-math.inf).all()
    torch.logaddexp(log_p, torch.full_like(log_p, math.log(1e-6))).sum().backward()
    assert all(tensor.grad is not None and not tensor.grad.any() for tensor in (logits, *others))


def test_logs_of_tiny_probabilities_are_exact_in_float32() -> None:
    """Test probabilities whose exp() is 0 in float32: scores differ by hundreds, gates are open or closed."""
    (logits, *others), source = case(torch.float32, spread=200.0)
    copied = copied_of(*others, source)
    log_p = log_probs(logits, copied)
    expected = log_probs(logits.double(), copied_of(*(tensor.double() for tensor in others), source))
    assert expected[expected.isfinite()].min() < -300
    torch.testing.assert_close(log_p.double(), expected, rtol=1e-5, atol=1e-4)
    target = source[:, :T]
    of_targets = log_p.gather(2, target[..., None])[..., 0]
    torch.testing.assert_close(target_log_probs(logits, copied, target), of_targets, rtol=1e-5, atol=1e-4)
    log_p.masked_fill(~log_p.isfinite(), 0).sum().backward()
    assert all(tensor.grad is not None and tensor.grad.isfinite().all() for tensor in (logits, *others))


# -- the model --------------------------------------------------------------------------------------------


def test_the_model_mixes_by_the_formula(both: tuple[Any, Any], batch: dict[str, Any]) -> None:
    """p = g p_vocab + (1 - g) scatter(copy attention); CopyNet's g is that of equations 4 to 8 of Gu et al. 2016."""
    model, inputs = both[0], batch["net_input"]
    encoded = model.encoder(inputs["src_tokens"], None, inputs["src_segments"])
    logits, extra = model.decoder(inputs["prev_output_tokens"], encoded)
    read = inputs["prev_output_tokens"].masked_fill(inputs["prev_output_tokens"] >= q.SIZE, q.UNK)
    states, _ = model.decoder.extract_features_scriptable(read, encoded)
    copier, sources = model.decoder.copier, encoded["encoder_out"][0].transpose(0, 1)
    marks = [q.BOS, q.PAD, q.EOS]  # which are not copied
    forbidden = torch.isin(inputs["src_tokens"], torch.tensor(marks))[:, None]
    if isinstance(copier, CopyNet):
        scores = (states @ (sources @ copier.key.weight.T).tanh().mT).masked_fill(forbidden, -math.inf)
        gate = torch.cat([logits, scores], -1).softmax(-1)[..., : q.SIZE].sum(-1, keepdim=True)
    else:
        scores = (states @ copier.query.weight.T @ sources.mT).masked_fill(forbidden, -math.inf)
        gate = torch.sigmoid(states @ copier.gate.weight.T)
    size = q.SIZE + 2
    copied = scores.softmax(-1) @ torch.nn.functional.one_hot(inputs["src_tokens"], size).to(scores)
    spoken = torch.nn.functional.pad(logits.softmax(-1), (0, size - q.SIZE))
    probs = model.get_normalized_probs((logits, extra), log_probs=False)
    torch.testing.assert_close(probs, gate * spoken + (1 - gate) * copied, rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(probs[..., marks], (gate * spoken)[..., marks], rtol=1e-9, atol=1e-15)
    assert model.decoder.output_projection.weight is model.encoder.embed_tokens.weight


def test_an_empty_source_gives_probabilities_too(both: tuple[Any, Any]) -> None:
    sources = torch.tensor([[q.BOS, q.EOS, q.PAD], [q.BOS, 5, q.EOS]])
    model, first = both[0], torch.full((2, 1), q.EOS)
    probs = model.get_normalized_probs(model(sources, None, first), log_probs=False)
    torch.testing.assert_close(probs.sum(-1), torch.ones(2, 1, dtype=probs.dtype), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_finite_and_sums_in_float32(
    dtype: torch.dtype, both: tuple[Any, Any], batch: dict[str, Any]
) -> None:
    half = copy.deepcopy(both[0]).to(dtype)
    probs = probabilities(half, batch)
    assert probs.dtype == torch.float32
    assert probs[:, :, : q.SIZE].isfinite().all()
    torch.testing.assert_close(probs.exp().sum(-1), torch.ones(probs.shape[:2]), rtol=1e-5, atol=1e-5)
    half.target_log_probs(half(**batch["net_input"]), batch["target"]).sum().backward()
    assert all(p.grad.isfinite().all() for p in half.parameters() if p.grad is not None)


def test_without_copying_it_is_an_ordinary_model(data: Path, batch: dict[str, Any]) -> None:
    model, _ = q.moved(data, "--copy-mechanism", "none")
    output = model(**batch["net_input"])
    assert model.get_normalized_probs(output, True).shape[-1] == q.SIZE
    target = model.get_targets(batch, output)
    assert target[batch["target"] >= q.SIZE].eq(q.UNK).all()
    assert not any("copier" in name for name in model.state_dict())


def test_the_gate_of_logits_in_half_precision_is_summed_in_float32() -> None:
    torch.manual_seed(0)
    logits, scores, copynet = torch.randn(2, 3, 50).bfloat16(), torch.randn(2, 3, 7), CopyNet(4)
    gates = [copynet.gates(torch.empty(0), given, scores) for given in (logits, logits.float())]
    torch.testing.assert_close(*gates, rtol=0, atol=1e-6)
