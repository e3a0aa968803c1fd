"""Compare beam search of question generation and of translation, with both length penalties, with all hypotheses."""

from __future__ import annotations

import copy
import itertools
import math
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("fairseq")

import support_questions as q
from fairseq.dataclass.configs import GenerationConfig
from integration import support
from laws.compare import assert_refused
from torch import Tensor

from fairseq_posenc.generation.search import FORMS, length_penalty

LONGEST, POWER = 3, 0.6
#: At most 3 tokens and </s>. The beam cannot be wider than the dictionary.
WIDE = 99
PIECES = (*q.PIECES, *(f"x{i}" for i in range(WIDE - len(q.PIECES))))

REFUSED = tomllib.loads(Path(__file__).with_name("refused.toml").read_text("utf-8"))

Hypotheses = list[tuple[list[int], float]]


def restricted(model: Any, words: Sequence[int]) -> Any:
    """Return a model that generates only these words and </s>."""
    normalized = model.get_normalized_probs

    def of_words(net_output: Any, log_probs: bool, sample: Any = None) -> Tensor:
        scores = normalized(net_output, log_probs=True)
        restricted_scores = torch.full_like(scores, -math.inf)
        allowed = torch.tensor([word for word in (*words, q.EOS) if word < scores.shape[-1]])
        restricted_scores[..., allowed] = scores[..., allowed]
        return restricted_scores

    restricted_model = copy.copy(model)  # tests share the model
    restricted_model.get_normalized_probs = of_words
    return restricted_model


def searched(model: Any, task: Any, batch: Any, form: str, *, cached: bool = True, **options: Any) -> list[Hypotheses]:
    """Return the hypotheses of the task's generator, without the task's detokenisation."""
    task.cfg.lenpen_form = form
    options = {"nbest": options["beam"], "max_len_b": LONGEST, "lenpen": POWER, **options}
    generator = task.build_generator([model], GenerationConfig(**options))
    assert generator.model.has_incremental
    generator.model.has_incremental = cached
    results = generator.generate([model], {"net_input": batch})
    return [[(hypothesis["tokens"].tolist(), float(hypothesis["score"])) for hypothesis in best] for best in results]


@torch.no_grad()
def exhaustive(model: Any, encoded: Any, words: Sequence[int], form: str) -> Hypotheses:
    """Return all sequences of the words up to LONGEST, scored in one batch for each length and ranked."""
    hypotheses: Hypotheses = []
    for length in range(1, LONGEST + 1):
        tokens = torch.tensor(list(itertools.product(words, repeat=length)))
        ended = torch.nn.functional.pad(tokens, (0, 1), value=q.EOS)
        repeated = model.encoder.reorder_encoder_out(encoded, torch.zeros(len(tokens), dtype=torch.int64))
        log_probabilities = model.get_normalized_probs(model.decoder(ended.roll(1, 1), repeated), True)
        sums = log_probabilities.gather(2, ended[..., None]).sum((1, 2))
        penalty = (length + 1) ** POWER if form == "fairseq" else ((5 + length + 1) / 6) ** POWER
        hypotheses += zip(ended.tolist(), (sums / penalty).tolist(), strict=True)
    possible = [hypothesis for hypothesis in hypotheses if hypothesis[1] > -math.inf]
    return sorted(possible, key=lambda hypothesis: -hypothesis[1])


def check_same(actual: Hypotheses, expected: Hypotheses) -> None:
    assert [tokens for tokens, _ in actual] == [tokens for tokens, _ in expected]
    assert [score for _, score in actual] == pytest.approx([score for _, score in expected], rel=1e-5)


@pytest.mark.parametrize(
    ("form", "length", "power", "expected"),
    [("fairseq", 4, 0.6, 2.2974), ("gnmt", 4, 0.6, 1.2754), ("fairseq", 7, 1, 7), ("gnmt", 7, 1, 2), ("gnmt", 1, 3, 1)],
)
def test_penalties_by_hand(form: str, length: int, power: float, expected: float) -> None:
    """Check 4^0.6 and (9 / 6)^0.6, then 7 and 12 / 6; GNMT divides the score of a single token by 1."""
    assert length_penalty(form, length, power) == pytest.approx(expected, abs=1e-4)


def test_a_penalty_that_is_not_known_is_refused() -> None:
    words = "--lenpen-form google: there is no such formula. Give one of fairseq, gnmt"
    assert_refused(lambda: length_penalty("google", 4, 1), words)


# -- questions ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def questions(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any, dict[str, Any]]:
    """Return a copying model in float64, its task, and a batch whose samples have one and two unknown words."""
    data = q.write_questions(tmp_path_factory.mktemp("questions") / "prepared", pieces=PIECES)
    model, task = q.moved(data, "--pos-enc", "t5")
    return model.double(), task, q.batch(task)


@pytest.mark.parametrize("form", FORMS)
def test_a_beam_as_wide_as_everything_finds_everything(form: str, questions: tuple[Any, Any, dict[str, Any]]) -> None:
    """Hypotheses consist of two dictionary words and the source's words, never of words of other sources."""
    model, task, batch = questions
    size = task.size
    model = restricted(model, (q.WHAT, q.IS, size, size + 1))
    pair = [words.index(count) for count in (1, 2) for words in [[len(w) for w in batch["unknown"]]]]
    inputs = {name: tensor[pair] for name, tensor in batch["net_input"].items()}
    ranks = searched(model, task, inputs, form, beam=WIDE)
    for row, words in enumerate([(q.WHAT, q.IS, size), (q.WHAT, q.IS, size, size + 1)]):
        encoded = model.encoder(*(inputs[k][row : row + 1] for k in ("src_tokens", "src_lengths", "src_segments")))
        expected = exhaustive(model, encoded, words, form)
        assert len(expected) == sum(len(words) ** n for n in range(1, LONGEST + 1))
        check_same(ranks[row], expected)


def test_the_cache_changes_nothing(questions: tuple[Any, Any, dict[str, Any]]) -> None:
    model, task, batch = questions
    options = {"beam": 4, "max_len_b": 7}
    cached, recomputed = (searched(model, task, batch["net_input"], "gnmt", cached=c, **options) for c in (True, False))
    for ours, other in zip(cached, recomputed, strict=True):
        check_same(ours, other)


def repeated(tokens: list[int]) -> list[tuple[int, ...]]:
    """Return the trigrams that occur twice."""
    trigrams = list(zip(tokens, tokens[1:], tokens[2:], strict=False))
    return [trigram for trigram in set(trigrams) if trigrams.count(trigram) > 1]


def test_copied_words_are_blocked_like_others(questions: tuple[Any, Any, dict[str, Any]]) -> None:
    """The model may only generate one dictionary word and one unknown word, six in total."""
    model, task, batch = questions
    model, options = restricted(model, (q.WHAT, task.size)), {"beam": 4, "min_len": 6, "max_len_b": 6}
    free, blocked = (
        searched(model, task, batch["net_input"], "fairseq", no_repeat_ngram_size=size, **options) for size in (0, 3)
    )
    assert any(task.size in trigram for best in free for trigram in repeated(best[0][0]))
    assert not any(repeated(tokens) for best in blocked for tokens, _ in best)
    assert all(task.size in tokens for best in blocked for tokens, _ in best)


def test_the_temperature_reaches_copied_words(questions: tuple[Any, Any, dict[str, Any]]) -> None:
    model, task, batch = questions
    task.cfg.lenpen_form = "fairseq"
    ensemble = task.build_generator([model], GenerationConfig(beam=2)).model
    inputs = batch["net_input"]
    encoded = [model.encoder(inputs["src_tokens"], None, inputs["src_segments"])]
    start = torch.full((len(inputs["src_tokens"]), 1), q.EOS)
    plain, _ = ensemble.forward_decoder(start, encoded, [{}], 1.0)
    warm, _ = ensemble.forward_decoder(start, encoded, [{}], 2.0)
    torch.testing.assert_close(warm, (plain / 2).log_softmax(-1))


@pytest.mark.parametrize(("form", "words"), [(form, words) for form in FORMS for words in REFUSED[form]])
def test_what_has_no_effect_is_refused(form: str, words: str, questions: tuple[Any, Any, dict[str, Any]]) -> None:
    model, task, batch = questions
    assert_refused(lambda: searched(model, task, batch["net_input"], form, beam=1, **REFUSED[form][words]), words)


# -- translation ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def translation(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any, dict[str, Any]]:
    data = support.write_corpus(tmp_path_factory.mktemp("corpus") / "data-bin")
    model, task = support.built(data, "--task", "posenc_translation")
    return support.move(model).double(), task, support.batches(task)[0]


@pytest.mark.parametrize("form", FORMS)
def test_translation_has_both_penalties(form: str, translation: tuple[Any, Any, dict[str, Any]]) -> None:
    model, task, batch = translation
    model = restricted(model, (5, 7))
    inputs = batch["net_input"]
    ranks = searched(model, task, inputs, form, beam=15)
    for row, best in enumerate(ranks):
        encoded = model.encoder(inputs["src_tokens"][row : row + 1], inputs["src_lengths"][row : row + 1])
        check_same(best, exhaustive(model, encoded, (5, 7), form))


def test_alignments_are_printed_with_both_penalties(translation: tuple[Any, Any, dict[str, Any]]) -> None:
    model, task, batch = translation
    outputs = []
    for form in FORMS:
        task.cfg.lenpen_form = form
        options = GenerationConfig(beam=1, max_len_b=LONGEST, print_alignment="hard")
        best = [hypotheses[0] for hypotheses in task.build_generator([model], options).generate([model], {**batch})]
        outputs.append([(one["tokens"].tolist(), [tuple(map(int, pair)) for pair in one["alignment"]]) for one in best])
    assert outputs[0] == outputs[1]
    assert any(alignment for _, alignment in outputs[0])


def test_training_refuses_the_penalty(tmp_path: Path) -> None:
    data = support.write_corpus(tmp_path / "data-bin")
    with pytest.raises(ValueError, match="--lenpen-form has no effect in training"):
        support.built(data, "--task", "posenc_translation", "--lenpen-form", "gnmt")
