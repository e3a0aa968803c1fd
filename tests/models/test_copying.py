"""Compare the probabilities of copied and generated words with the formulas of both copy mechanisms."""

from __future__ import annotations

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


def case(dtype: torch.dtype = torch.float64, spread: float = 1.0) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Return logits, scores, gates, sources with repeated words and padding, and the padding mask."""
    random = torch.Generator().manual_seed(2)
    logits, scores = (torch.randn(B, T, n, generator=random, dtype=dtype) * spread for n in (V, S))
    gate = torch.randn(B, T, generator=random, dtype=dtype) * spread
    source = torch.randint(2, E, (B, S), generator=random)
    source[1, 5:], source[2, :3] = q.PAD, q.PAD
    inputs = [tensor.requires_grad_() for tensor in (logits, scores, gate)]
    return (*inputs, source, source.eq(q.PAD))  # type: ignore[return-value]


def copied_of(scores: Tensor, gate: Tensor, source: Tensor, padding: Tensor) -> Copied:
    places = scores.masked_fill(padding[:, None], -math.inf).log_softmax(-1)
    return Copied(places, gate, source, E)


def test_targets_alone_have_the_same_probabilities_and_gradients() -> None:
    mine, theirs = case(), case()
    source = mine[3]
    target = torch.stack([source[:, 4], source[:, 3].clamp(max=V - 1), source[:, 3], torch.full((B,), q.PAD)], 1)
    actual = target_log_probs(mine[0], copied_of(*mine[1:]), target)
    expected = log_probs(theirs[0], copied_of(*theirs[1:])).gather(2, target[..., None])[..., 0]
    torch.testing.assert_close(actual, expected, rtol=1e-12, atol=1e-12)
    for ours in (actual, expected):
        ours.exp().sum().backward()
    for ours, other in zip(mine[:3], theirs[:3], strict=True):
        torch.testing.assert_close(ours.grad, other.grad, rtol=1e-10, atol=1e-12)


def test_a_target_that_can_neither_be_spoken_nor_copied_has_no_probability_and_no_gradient() -> None:
    logits, scores, gate, source, padding = case()
    source[source == E - 1] = E - 2
    log_p = target_log_probs(logits, copied_of(scores, gate, source, padding), torch.full((B, T), E - 1))
    assert log_p.eq(-math.inf).all()
    torch.logaddexp(log_p, torch.full_like(log_p, math.log(1e-6))).sum().backward()
    assert all(tensor.grad is not None and not tensor.grad.any() for tensor in (logits, scores, gate))


def test_logs_of_tiny_probabilities_are_exact_in_float32() -> None:
    """Test probabilities whose exp() is 0 in float32: scores differ by hundreds, gates are open or closed."""
    single = case(torch.float32, spread=200.0)
    exact = (*(tensor.detach().double() for tensor in single[:3]), *single[3:])
    log_p = log_probs(single[0], copied_of(*single[1:]))
    expected = log_probs(exact[0], copied_of(*exact[1:]))
    assert expected[expected.isfinite()].min() < -300
    torch.testing.assert_close(log_p.double(), expected, rtol=1e-5, atol=1e-4)
    target = single[3][:, :T]
    of_targets = target_log_probs(single[0], copied_of(*single[1:]), target)
    torch.testing.assert_close(of_targets, log_p.gather(2, target[..., None])[..., 0], rtol=1e-5, atol=1e-4)
    log_p.masked_fill(~log_p.isfinite(), 0).sum().backward()
    assert all(tensor.grad is not None and tensor.grad.isfinite().all() for tensor in single[:3])


# -- the model --------------------------------------------------------------------------------------------


def test_the_model_mixes_by_the_formula(both: tuple[Any, Any], batch: dict[str, Any]) -> None:
    """p = g p_vocab + (1 - g) scatter(copy attention); CopyNet's g is that of equations 4 to 8 of Gu et al. 2016."""
    model = both[0]
    inputs = batch["net_input"]
    encoded = model.encoder(inputs["src_tokens"], None, inputs["src_segments"])
    logits, extra = model.decoder(inputs["prev_output_tokens"], encoded)
    read = inputs["prev_output_tokens"].masked_fill(inputs["prev_output_tokens"] >= q.SIZE, q.UNK)
    states, _ = model.decoder.extract_features_scriptable(read, encoded)
    copier, sources = model.decoder.copier, encoded["encoder_out"][0]
    if isinstance(copier, CopyNet):
        scores = torch.einsum("btd,sbd->bts", states, (sources @ copier.key.weight.T).tanh())
    else:
        scores = torch.einsum("btd,sbd->bts", states @ copier.query.weight.T, sources)
    padding = torch.isin(inputs["src_tokens"], torch.tensor([q.BOS, q.PAD, q.EOS]))
    scores = scores.masked_fill(padding[:, None], -math.inf)
    attention = scores.softmax(-1)
    if isinstance(copier, CopyNet):
        gate = torch.cat([logits, scores], -1).softmax(-1)[..., : q.SIZE].sum(-1, keepdim=True)
    else:
        gate = torch.sigmoid(states @ copier.gate.weight.T)
    size = q.SIZE + 2
    scattered = attention @ torch.nn.functional.one_hot(inputs["src_tokens"], size).to(attention)
    spoken = torch.nn.functional.pad(logits.softmax(-1), (0, size - q.SIZE))
    probs = model.get_normalized_probs((logits, extra), log_probs=False)
    torch.testing.assert_close(probs, gate * spoken + (1 - gate) * scattered, rtol=1e-9, atol=1e-12)
    assert model.decoder.output_projection.weight is model.encoder.embed_tokens.weight
    # Padding, <s> and </s> of the source are not copied.
    marks = [q.BOS, q.PAD, q.EOS]
    torch.testing.assert_close(probs[..., marks], (gate * spoken)[..., marks], rtol=1e-9, atol=1e-15)


def test_an_empty_source_gives_probabilities_too(both: tuple[Any, Any]) -> None:
    sources = torch.tensor([[q.BOS, q.EOS, q.PAD], [q.BOS, 5, q.EOS]])
    model, first = both[0], torch.full((2, 1), q.EOS)
    probs = model.get_normalized_probs(model(sources, None, first), log_probs=False)
    torch.testing.assert_close(probs.sum(-1), torch.ones(2, 1, dtype=probs.dtype), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_finite_and_sums_in_float32(
    dtype: torch.dtype, mechanism: str, data: Path, batch: dict[str, Any]
) -> None:
    model, _ = q.built(data, "--copy-mechanism", mechanism)
    half = model.to(dtype)
    probs = probabilities(half, batch)
    assert probs.dtype == torch.float32
    assert probs[:, :, : q.SIZE].isfinite().all()
    torch.testing.assert_close(probs.exp().sum(-1), torch.ones(probs.shape[:2]), rtol=1e-5, atol=1e-5)
    loss = -half.target_log_probs(half(**batch["net_input"]), batch["target"]).sum()
    loss.backward()
    assert all(p.grad.isfinite().all() for p in half.parameters() if p.grad is not None)


def test_without_copying_it_is_an_ordinary_model(data: Path, batch: dict[str, Any]) -> None:
    model, _ = q.moved(data, "--copy-mechanism", "none")
    output = model(**batch["net_input"])
    assert model.get_normalized_probs(output, True).shape[-1] == q.SIZE
    target = model.get_targets(batch, output)
    assert target[batch["target"] >= q.SIZE].eq(q.UNK).all()
    assert not any("copier" in name for name in model.state_dict())
