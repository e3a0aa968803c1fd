"""Search: both length penalties, words copied from the source, and beams as wide as everything."""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

pytest.importorskip("fairseq")

import support_questions as q
from fairseq.dataclass.configs import GenerationConfig
from integration import support

from fairseq_posenc.search import FORMS, length_penalty

LONGEST, POWER = 3, 0.6
#: of 3 tokens and </s> at most; the beam can be no wider than the dictionary
WIDE = 99
PIECES = (*q.PIECES, *(f"x{i}" for i in range(WIDE - len(q.PIECES))))

Found = list[tuple[list[int], float]]


@pytest.mark.parametrize(
    ("form", "length", "power", "expected"),
    [("fairseq", 4, 0.6, 2.2974), ("gnmt", 4, 0.6, 1.2754), ("fairseq", 7, 1, 7), ("gnmt", 7, 1, 2), ("gnmt", 1, 3, 1)],
)
def test_penalties_by_hand(form: str, length: int, power: float, expected: float) -> None:
    """4^0.6 and (9 / 6)^0.6; 7 and 12 / 6; GNMT divides a single token by 1."""
    assert length_penalty(form, length, power) == pytest.approx(expected, abs=1e-4)


def test_a_penalty_that_is_not_known_is_refused() -> None:
    with pytest.raises(ValueError, match="--lenpen-form google: one of fairseq, gnmt"):
        length_penalty("google", 4, 1)


# -- everything -------------------------------------------------------------------------------------------


def restricted(model: Any, words: Sequence[int]) -> Any:
    """A model that says only these words, and </s>."""
    normalized = model.get_normalized_probs

    def of_words(net_output: Any, log_probs: bool, sample: Any = None) -> Tensor:
        found = normalized(net_output, log_probs=True)
        kept = torch.full_like(found, -math.inf)
        some = torch.tensor([word for word in (*words, q.EOS) if word < found.shape[-1]])
        kept[..., some] = found[..., some]
        return kept

    made = copy.copy(model)  # tests share the model
    made.get_normalized_probs = of_words
    return made


def searched(model: Any, task: Any, net_input: dict[str, Tensor], form: str, beam: int, **more: Any) -> list[Found]:
    """What the task's generator finds, without the task's spelling."""
    task.cfg.lenpen_form = form
    options = GenerationConfig(**{"beam": beam, "nbest": beam, "max_len_b": LONGEST, "lenpen": POWER, **more})
    generator = task.build_generator([model], options)
    found = generator.generate([model], {"net_input": net_input})
    return [[(one["tokens"].tolist(), float(one["score"])) for one in best] for best in found]


@torch.no_grad()
def exhaustive(model: Any, encoded: Any, words: Sequence[int], form: str) -> Found:
    """All sequences of the words up to LONGEST, scored at once and ranked."""
    found: Found = []
    for length in range(1, LONGEST + 1):
        tokens = torch.tensor(list(itertools.product(words, repeat=length)))
        ended = torch.nn.functional.pad(tokens, (0, 1), value=q.EOS)
        before = ended.roll(1, 1)
        many = model.encoder.reorder_encoder_out(encoded, torch.zeros(len(tokens), dtype=torch.int64))
        likely = model.get_normalized_probs(model.decoder(before, many), True)
        sums = likely.gather(2, ended[..., None]).sum((1, 2))
        penalty = (length + 1) ** POWER if form == "fairseq" else ((5 + length + 1) / 6) ** POWER
        found += list(zip(ended.tolist(), (sums / penalty).tolist(), strict=True))
    return sorted(((tokens, score) for tokens, score in found if score > -math.inf), key=lambda one: -one[1])


def check_same(found: Found, expected: Found) -> None:
    assert [tokens for tokens, _ in found] == [tokens for tokens, _ in expected]
    assert [score for _, score in found] == pytest.approx([score for _, score in expected], rel=1e-5)


@pytest.fixture(scope="module")
def questions(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any, dict[str, Any]]:
    """A copying model in float64, its task, and a batch with one and with two unknown words."""
    data = q.write_questions(tmp_path_factory.mktemp("questions") / "prepared", pieces=PIECES)
    model, task = q.moved(data, "--pos-enc", "t5")
    return model.double(), task, q.batch(task)


@pytest.mark.parametrize("form", FORMS)
def test_a_beam_as_wide_as_everything_finds_everything(form: str, questions: tuple[Any, Any, dict[str, Any]]) -> None:
    """Of two listed words and those of the source; words that a source does not have are in none of its questions."""
    model, task, batch = questions
    size = task.size
    model = restricted(model, (q.WHAT, q.IS, size, size + 1))
    pair = [words.index(count) for count in (1, 2) for words in [[len(w) for w in batch["unknown"]]]]
    given = {name: tensor[pair] for name, tensor in batch["net_input"].items()}
    ranks = searched(model, task, given, form, beam=WIDE)
    for row, words in enumerate([(q.WHAT, q.IS, size), (q.WHAT, q.IS, size, size + 1)]):
        encoded = model.encoder(*(given[name][row : row + 1] for name in ("src_tokens", "src_lengths", "src_segments")))
        expected = exhaustive(model, encoded, words, form)
        assert len(expected) == sum(len(words) ** n for n in range(1, LONGEST + 1))
        check_same(ranks[row], expected)


def test_the_penalties_rank_differently(questions: tuple[Any, Any, dict[str, Any]]) -> None:
    model, task, batch = questions
    model = restricted(model, (q.WHAT, q.IS))
    ranks = [searched(model, task, batch["net_input"], form, beam=20) for form in FORMS]
    assert [sorted(tokens for tokens, _ in best) for best in ranks[0]] == [
        sorted(tokens for tokens, _ in best) for best in ranks[1]
    ]
    assert any([t for t, _ in one] != [t for t, _ in other] for one, other in zip(*ranks, strict=True))


def test_the_cache_changes_nothing(questions: tuple[Any, Any, dict[str, Any]]) -> None:
    model, task, batch = questions
    task.cfg.lenpen_form = "gnmt"
    found = []
    for cached in (True, False):
        generator = task.build_generator([model], GenerationConfig(beam=4, nbest=4, max_len_b=7, lenpen=POWER))
        assert generator.model.has_incremental
        generator.model.has_incremental = cached
        found.append(generator.generate([model], {"net_input": batch["net_input"]}))
    for one, other in zip(*found, strict=True):
        check_same(*([(h["tokens"].tolist(), float(h["score"])) for h in best] for best in (one, other)))


def test_copied_words_are_blocked_like_others(questions: tuple[Any, Any, dict[str, Any]]) -> None:
    """A model that says one listed and one unknown word has to say six of them."""
    model, task, batch = questions
    model = restricted(model, (q.WHAT, task.size))
    options = {"beam": 4, "min_len": 6, "max_len_b": 6}
    free, blocked = (
        searched(model, task, batch["net_input"], "fairseq", no_repeat_ngram_size=size, **options) for size in (0, 3)
    )
    copied = [trigram for best in free for trigram in repeated(best[0][0]) if task.size in trigram]
    assert copied
    assert not any(repeated(tokens) for best in blocked for tokens, _ in best)
    assert all(task.size in tokens for best in blocked for tokens, _ in best)


def repeated(tokens: list[int]) -> list[tuple[int, ...]]:
    """Trigrams that are there twice."""
    trigrams = list(zip(tokens, tokens[1:], tokens[2:], strict=False))
    return [trigram for trigram in set(trigrams) if trigrams.count(trigram) > 1]


def test_the_temperature_reaches_copied_words(questions: tuple[Any, Any, dict[str, Any]]) -> None:
    model, task, batch = questions
    task.cfg.lenpen_form = "fairseq"
    ensemble = task.build_generator([model], GenerationConfig(beam=2)).model
    given = batch["net_input"]
    encoded = [model.encoder(given["src_tokens"], None, given["src_segments"])]
    start = torch.full((len(given["src_tokens"]), 1), q.EOS)
    plain, _ = ensemble.forward_decoder(start, encoded, [{}], 1.0)
    warm, _ = ensemble.forward_decoder(start, encoded, [{}], 2.0)
    torch.testing.assert_close(warm, (plain / 2).log_softmax(-1))


@pytest.mark.parametrize(
    ("form", "options", "said"),
    [
        ("gnmt", {"unnormalized": True}, "--lenpen-form gnmt has no effect with --unnormalized"),
        ("gnmt", {"score_reference": True}, "--lenpen-form gnmt has no effect with --score-reference"),
        ("fairseq", {"replace_unk": "x"}, "--replace-unk is not for posenc_question_generation"),
        ("fairseq", {"print_alignment": "hard"}, "--print-alignment is not for"),
        ("fairseq", {"lm_path": "x"}, "--lm-path is not for"),
    ],
)
def test_what_has_no_effect_is_refused(
    form: str, options: dict[str, Any], said: str, questions: tuple[Any, Any, dict[str, Any]]
) -> None:
    model, task, _ = questions
    task.cfg.lenpen_form = form
    with pytest.raises(ValueError, match=said):
        task.build_generator([model], GenerationConfig(**options))


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
    given = batch["net_input"]
    ranks = searched(model, task, given, form, beam=15)
    for row, best in enumerate(ranks):
        encoded = model.encoder(given["src_tokens"][row : row + 1], given["src_lengths"][row : row + 1])
        check_same(best, exhaustive(model, encoded, (5, 7), form))


def test_alignments_are_printed_with_both_penalties(translation: tuple[Any, Any, dict[str, Any]]) -> None:
    model, task, batch = translation
    found = []
    for form in FORMS:
        task.cfg.lenpen_form = form
        options = GenerationConfig(beam=1, max_len_b=LONGEST, print_alignment="hard")
        generator = task.build_generator([model], options)
        best = [one[0] for one in generator.generate([model], {**batch})]
        pairs = [[tuple(map(int, pair)) for pair in one["alignment"]] for one in best]
        found.append(list(zip([one["tokens"].tolist() for one in best], pairs, strict=True)))
    assert found[0] == found[1]
    assert any(alignment for _, alignment in found[0])


def test_training_refuses_the_penalty(tmp_path: Path) -> None:
    data = support.write_corpus(tmp_path / "data-bin")
    with pytest.raises(ValueError, match="--lenpen-form has no effect in training"):
        support.built(data, "--task", "posenc_translation", "--lenpen-form", "gnmt")
