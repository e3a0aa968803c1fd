"""Question generation: what is copied and what is spoken, the loss, and the encoder that is given."""

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
from omegaconf import OmegaConf

from fairseq_posenc.encodings import StackShape, build, get, names
from fairseq_posenc.encodings import options as opts
from fairseq_posenc.models.copying import Copied, first_places, log_probs, target_log_probs
from fairseq_posenc.models.presets import QUESTION_GENERATION
from fairseq_posenc.models.question_generation_config import QuestionGenerationConfig


def serves_the_decoder(name: str) -> bool:
    try:
        build(name, None, StackShape(layers=2, heads=4, dim=64, max_length=10, causal=True))
    except ValueError:
        return False
    return not get(name).needs_segments


DECODERS = [name for name in names() if serves_the_decoder(name)]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return q.write_questions(tmp_path_factory.mktemp("questions") / "prepared")


@pytest.fixture(scope="module")
def both(data: Path) -> tuple[Any, Any]:
    """A model in float64, and its task."""
    model, task = q.moved(data, "--pos-enc", "shaw")
    return model.double(), task


@pytest.fixture(scope="module")
def batch(both: tuple[Any, Any]) -> dict[str, Any]:
    return q.batch(both[1])


# -- probabilities ----------------------------------------------------------------------------------------

B, T, S, V, E = 3, 4, 9, 7, 10


def case(dtype: torch.dtype = torch.float64, spread: float = 1.0) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Logits, scores, gates, sources with words twice and pads, and where pads are."""
    random = torch.Generator().manual_seed(2)
    logits, scores = (torch.randn(B, T, n, generator=random, dtype=dtype) * spread for n in (V, S))
    gate = torch.randn(B, T, generator=random, dtype=dtype) * spread
    source = torch.randint(2, E, (B, S), generator=random)
    source[1, 5:], source[2, :3] = q.PAD, q.PAD
    given = [one.requires_grad_() for one in (logits, scores, gate)]
    return (*given, source, source.eq(q.PAD))  # type: ignore[return-value]


def copied_of(scores: Tensor, gate: Tensor, source: Tensor, padding: Tensor) -> Copied:
    places = scores.masked_fill(padding[:, None], -math.inf).log_softmax(-1)
    return Copied(places, gate, source, E)


def literal(logits: Tensor, scores: Tensor, gate: Tensor, source: Tensor, padding: Tensor) -> Tensor:
    """p = g p_vocab + (1 - g) scatter(copy attention), number by number."""
    rows = []
    for b in range(B):
        for t in range(T):
            g = torch.sigmoid(gate[b, t])
            real = [s for s in range(S) if not padding[b, s]]
            weights = dict(zip(real, scores[b, t, real].softmax(-1), strict=True))
            spoken = logits[b, t].softmax(-1)
            for word in range(E):
                p = g * spoken[word] if word < V else torch.zeros((), dtype=g.dtype)
                for s in real:
                    p = p + (1 - g) * weights[s] * (source[b, s] == word)
                rows.append(p)
    return torch.stack(rows).view(B, T, E)


def test_probabilities_are_those_of_the_formula_with_their_gradients() -> None:
    mine, theirs = case(), case()
    found = log_probs(mine[0], copied_of(*mine[1:])).exp()
    expected = literal(*theirs)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(found.sum(-1), torch.ones(B, T, dtype=found.dtype), rtol=1e-12, atol=1e-12)
    weights = torch.randn(B, T, E, dtype=found.dtype, generator=torch.Generator().manual_seed(3))
    for one in (found, expected):
        (one * weights).sum().backward()
    for one, other in zip(mine[:3], theirs[:3], strict=True):
        torch.testing.assert_close(one.grad, other.grad, rtol=1e-10, atol=1e-12)


def test_targets_alone_have_the_same_probabilities_and_gradients() -> None:
    mine, theirs = case(), case()
    source = mine[3]
    target = torch.stack([source[:, 4], source[:, 3].clamp(max=V - 1), source[:, 3], torch.full((B,), q.PAD)], 1)
    found = target_log_probs(mine[0], copied_of(*mine[1:]), target)
    expected = log_probs(theirs[0], copied_of(*theirs[1:])).gather(2, target[..., None])[..., 0]
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
    for one in (found, expected):
        one.exp().sum().backward()
    for one, other in zip(mine[:3], theirs[:3], strict=True):
        torch.testing.assert_close(one.grad, other.grad, rtol=1e-10, atol=1e-12)


def test_a_target_that_can_neither_be_spoken_nor_copied_has_no_probability_and_no_gradient() -> None:
    logits, scores, gate, source, padding = case()
    source[source == E - 1] = E - 2
    found = target_log_probs(logits, copied_of(scores, gate, source, padding), torch.full((B, T), E - 1))
    assert found.eq(-math.inf).all()
    torch.logaddexp(found, torch.full_like(found, math.log(1e-6))).sum().backward()
    assert all(one.grad is not None and not one.grad.any() for one in (logits, scores, gate))


def test_logs_of_tiny_probabilities_are_exact_in_float32() -> None:
    """Where exp() is 0 in float32: scores that differ by hundreds, closed and open gates."""
    single = case(torch.float32, spread=200.0)
    exact = (*(one.detach().double() for one in single[:3]), *single[3:])
    found = log_probs(single[0], copied_of(*single[1:]))
    expected = log_probs(exact[0], copied_of(*exact[1:]))
    assert expected[expected.isfinite()].min() < -300
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-4)
    found.masked_fill(~found.isfinite(), 0).sum().backward()
    assert all(one.grad is not None and one.grad.isfinite().all() for one in single[:3])


def test_first_places() -> None:
    source = torch.tensor([[5, 3, 5, 1, 3, 5], [2, 2, 2, 2, 9, 2]])
    assert first_places(source).tolist() == [[0, 1, 0, 3, 1, 0], [0, 0, 0, 0, 4, 0]]


# -- the model --------------------------------------------------------------------------------------------


def probabilities(model: Any, batch: dict[str, Any]) -> Tensor:
    found: Tensor = model.get_normalized_probs(model(**batch["net_input"]), True)
    return found


def test_the_model_mixes_by_the_formula(both: tuple[Any, Any], batch: dict[str, Any]) -> None:
    model = both[0]
    given = batch["net_input"]
    encoded = model.encoder(given["src_tokens"], None, given["src_segments"])
    logits, extra = model.decoder(given["prev_output_tokens"], encoded)
    read = given["prev_output_tokens"].masked_fill(given["prev_output_tokens"] >= q.SIZE, q.UNK)
    states, _ = model.decoder.extract_features_scriptable(read, encoded)
    queries = states @ model.decoder.copier.query.weight.T
    scores = torch.einsum("btd,sbd->bts", queries, encoded["encoder_out"][0])
    padding = torch.isin(given["src_tokens"], torch.tensor([q.BOS, q.PAD, q.EOS]))
    attention = scores.masked_fill(padding[:, None], -math.inf).softmax(-1)
    gate = torch.sigmoid(states @ model.decoder.copier.gate.weight.T)
    size = q.SIZE + 2
    scattered = attention @ torch.nn.functional.one_hot(given["src_tokens"], size).to(attention)
    spoken = torch.nn.functional.pad(logits.softmax(-1), (0, size - q.SIZE))
    found = model.get_normalized_probs((logits, extra), log_probs=False)
    torch.testing.assert_close(found, gate * spoken + (1 - gate) * scattered, rtol=1e-9, atol=1e-12)
    assert model.decoder.output_projection.weight is model.encoder.embed_tokens.weight
    # neither pads of the source nor its marks are copied
    marks = [q.BOS, q.PAD, q.EOS]
    torch.testing.assert_close(found[..., marks], (gate * spoken)[..., marks], rtol=1e-9, atol=1e-15)


def test_an_empty_source_gives_probabilities_too(both: tuple[Any, Any]) -> None:
    sources = torch.tensor([[q.BOS, q.EOS, q.PAD], [q.BOS, 5, q.EOS]])
    model, first = both[0], torch.full((2, 1), q.EOS)
    found = model.get_normalized_probs(model(sources, None, first), log_probs=False)
    torch.testing.assert_close(found.sum(-1), torch.ones(2, 1, dtype=found.dtype), rtol=1e-12, atol=1e-12)


def test_words_that_a_sample_does_not_have_get_nothing(both: tuple[Any, Any], batch: dict[str, Any]) -> None:
    found = probabilities(both[0], batch)
    for row, words in zip(found, batch["unknown"], strict=True):
        known = q.SIZE + len(words)
        assert row[:, :known].isfinite().all()
        assert row[:, known:].eq(-math.inf).all()


def test_a_sample_does_not_see_its_batch(both: tuple[Any, Any], batch: dict[str, Any]) -> None:
    """Alone, without pads, its probabilities are the same."""
    model, task = both
    together = probabilities(model, batch)
    for row, number in zip(together, batch["id"].tolist(), strict=True):
        single = task.dataset("test").collater([task.dataset("test")[number]])
        alone = probabilities(model, single)[0]
        torch.testing.assert_close(alone, row[: len(alone), : alone.shape[1]], rtol=1e-9, atol=1e-9)


def test_left_pads_are_right_pads(both: tuple[Any, Any], batch: dict[str, Any]) -> None:
    model, task = both
    dataset = copy.copy(task.dataset("test"))
    dataset.left_pad_source = False
    right = dataset.collater([dataset[number] for number in batch["id"].tolist()])
    assert right["net_input"]["src_tokens"][-1, -1] == q.PAD != batch["net_input"]["src_tokens"][-1, -1]
    assert right["net_input"]["src_segments"].ne(batch["net_input"]["src_segments"]).any()
    assert right["id"].tolist() == batch["id"].tolist()
    torch.testing.assert_close(probabilities(model, right), probabilities(model, batch), rtol=1e-9, atol=1e-9)


def test_segments_that_are_not_given_are_read_from_the_separators(both: tuple[Any, Any], batch: dict[str, Any]) -> None:
    model = both[0]
    given = {name: value for name, value in batch["net_input"].items() if name != "src_segments"}
    torch.testing.assert_close(probabilities(model, {"net_input": given}), probabilities(model, batch))
    wrong = {**given, "src_segments": 1 - batch["net_input"]["src_segments"]}
    assert not torch.allclose(probabilities(model, {"net_input": wrong}), probabilities(model, batch), atol=1e-3)


@pytest.mark.parametrize("name", DECODERS)
@torch.no_grad()
def test_step_by_step_is_all_at_once(name: str, both: tuple[Any, Any], data: Path, batch: dict[str, Any]) -> None:
    """With every encoding that a decoder can have; the two beams of each source change places, and sources leave."""
    model = of_encoding(name, data)
    given = {part: tensor[:3].repeat_interleave(2, 0) for part, tensor in batch["net_input"].items()}
    tokens = given["prev_output_tokens"]
    tokens[::2, 1:] = torch.randint(q.FIRST, q.SIZE + 2, (3, 4), generator=torch.Generator().manual_seed(4))
    full = probabilities(model, {"net_input": given})
    encoded = model.encoder(given["src_tokens"], None, given["src_segments"])
    state: dict[str, Any] = {}
    orders = {2: torch.tensor([1, 0, 3, 3, 4, 5]), 3: torch.tensor([2, 3, 5, 4])}
    for step in range(tokens.shape[1]):
        if step in orders:
            order = orders[step]
            model.decoder.reorder_incremental_state_scripting(state, order)
            encoded = model.encoder.reorder_encoder_out(encoded, order)
            tokens, full = tokens[order], full[order]
        output = model.decoder(tokens[:, : step + 1], encoded, incremental_state=state)
        found = model.get_normalized_probs(output, True)
        torch.testing.assert_close(found[:, 0], full[:, step], rtol=1e-8, atol=1e-8)


BUILT: dict[str, Any] = {}


def of_encoding(name: str, data: Path) -> Any:
    """A model in float64; the command line is read once."""
    from fairseq import tasks
    from integration import support

    if not BUILT:
        BUILT["cfg"] = support.parse(q.words(data))
        BUILT["task"] = tasks.setup_task(BUILT["cfg"].task)
    cfg = copy.deepcopy(BUILT["cfg"])
    cfg.model.pos_enc = name
    return support.move(BUILT["task"].build_model(cfg.model), seed=1).eval().double()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_finite_and_sums_in_float32(dtype: torch.dtype, data: Path, batch: dict[str, Any]) -> None:
    model, _ = q.built(data)
    half = model.to(dtype)
    found = probabilities(half, batch)
    assert found.dtype == torch.float32
    assert found[:, :, : q.SIZE].isfinite().all()
    torch.testing.assert_close(found.exp().sum(-1), torch.ones(found.shape[:2]), rtol=1e-5, atol=1e-5)
    loss = -half.target_log_probs(half(**batch["net_input"]), batch["target"]).sum()
    loss.backward()
    assert all(p.grad.isfinite().all() for p in half.parameters() if p.grad is not None)


def test_without_copying_it_is_an_ordinary_model(data: Path, batch: dict[str, Any]) -> None:
    model, _ = q.moved(data, "--no-copy")
    output = model(**batch["net_input"])
    assert model.get_normalized_probs(output, True).shape[-1] == q.SIZE
    target = model.get_targets(batch, output)
    assert target[batch["target"] >= q.SIZE].eq(q.UNK).all()
    assert not any("copier" in name for name in model.state_dict())


# -- presets and options ----------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["", *(f"_{name}" for name in QUESTION_GENERATION)])
def test_the_yaml_is_the_preset(suffix: str, data: Path) -> None:
    from integration import support

    own = {name: getattr(QuestionGenerationConfig(), name) for name in ("pos_enc", "pos_enc_args", "pos_enc_defaults")}
    preset = QUESTION_GENERATION.get(suffix.removeprefix("_"), {})
    yaml = OmegaConf.load(support.PLUGIN / "config" / "model" / f"posenc_question_generation{suffix}.yaml")
    expected = {"_name": "posenc_question_generation", **own, "pos_enc_no_decay": False, **preset}
    assert OmegaConf.to_container(yaml) == expected
    model = support.parse(q.words(data, "--arch", f"posenc_question_generation{suffix}")).model
    assert {name: model[name] for name in preset} == preset


def test_the_decoder_is_the_papers() -> None:
    """METHODS.md 6.C."""
    config = QuestionGenerationConfig()
    assert (config.decoder_layers, config.decoder_attention_heads, config.decoder_ffn_embed_dim) == (3, 12, 3072)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("--freeze-encoder", "--freeze-encoder would keep random numbers"),
        ("--decoder-attention-heads 5", "--decoder-attention-heads 5 does not divide the width 64"),
        ("--offload-activations", "--offload-activations has no effect without --checkpoint-activations"),
        ("--pos-enc nonsense", "nonsense"),
        ("--pos-enc linformer", "--pos-enc"),
        ("--pos-enc-encoder-args nonsense=1", "nonsense"),
        ("--pos-enc sinusoidal --pos-enc-no-decay", "--pos-enc-no-decay"),
        ("--lenpen-form gnmt", "--lenpen-form has no effect in training"),
        ("--arch posenc_transformer_tiny", "--arch posenc_question_generation"),
    ],
)
def test_what_has_no_effect_is_refused(arguments: str, said: str, data: Path) -> None:
    with pytest.raises(ValueError, match=said):
        q.built(data, *arguments.split())


def test_only_the_decoder_takes_the_encoding(data: Path) -> None:
    model, _ = q.built(data, "--pos-enc", "t5", "--pos-enc-args", "buckets=8")
    assert (model.encoder.pos.name, model.decoder.pos.name) == ("learned+segments-input", "t5")
    assert opts.parse("buckets=8") == {"buckets": "8"}
