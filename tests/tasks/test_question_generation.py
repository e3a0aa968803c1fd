"""Compare the model, the search and the score of question generation with their definitions."""

from __future__ import annotations

import copy
import os
import random
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("fairseq")

import support_questions as q
from fairseq.dataclass.configs import GenerationConfig
from support_questions import probabilities
from support_search import LONGEST, PIECES, POWER, WIDE, check_same, exhaustive, restricted, searched

from fairseq_posenc import metrics
from fairseq_posenc.encodings import StackShape, build, get, names
from fairseq_posenc.generation.search import FORMS
from fairseq_posenc.metrics.rouge import of_units


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
    """Return a model in float64 and its task."""
    model, task = q.moved(data, "--pos-enc", "shaw")
    return model.double(), task


@pytest.fixture(scope="module")
def batch(both: tuple[Any, Any]) -> dict[str, Any]:
    return q.batch(both[1])


# -- the model --------------------------------------------------------------------------------------------


def test_a_sample_does_not_see_its_batch(both: tuple[Any, Any], batch: dict[str, Any]) -> None:
    """A sample alone, without padding, has the same probabilities as in its batch."""
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


def test_the_decoder_alone_asks_for_its_source(both: tuple[Any, Any], batch: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="pass the encoder's `encoder_out`"):
        both[0].decoder(batch["net_input"]["prev_output_tokens"])


def test_segments_that_are_not_given_are_read_from_the_separators(both: tuple[Any, Any], batch: dict[str, Any]) -> None:
    model = both[0]
    inputs = {name: value for name, value in batch["net_input"].items() if name != "src_segments"}
    torch.testing.assert_close(probabilities(model, {"net_input": inputs}), probabilities(model, batch))
    wrong = {**inputs, "src_segments": 1 - batch["net_input"]["src_segments"]}
    assert not torch.allclose(probabilities(model, {"net_input": wrong}), probabilities(model, batch), atol=1e-3)


@pytest.mark.parametrize("name", DECODERS)
@torch.no_grad()
def test_step_by_step_is_all_at_once(name: str, both: tuple[Any, Any], data: Path, batch: dict[str, Any]) -> None:
    """Test each decoder encoding; the two beams of each source swap places, and finished sources are removed."""
    model = of_encoding(name, data)
    inputs = {part: tensor[:3].repeat_interleave(2, 0) for part, tensor in batch["net_input"].items()}
    tokens = inputs["prev_output_tokens"]
    tokens[::2, 1:] = torch.randint(q.FIRST, q.SIZE + 2, (3, 4), generator=torch.Generator().manual_seed(4))
    full = probabilities(model, {"net_input": inputs})
    encoded = model.encoder(inputs["src_tokens"], None, inputs["src_segments"])
    state: dict[str, Any] = {}
    orders = {2: torch.tensor([1, 0, 3, 3, 4, 5]), 3: torch.tensor([2, 3, 5, 4])}
    for step in range(tokens.shape[1]):
        if step in orders:
            order = orders[step]
            model.decoder.reorder_incremental_state_scripting(state, order)
            encoded = model.encoder.reorder_encoder_out(encoded, order)
            tokens, full = tokens[order], full[order]
        output = model.decoder(tokens[:, : step + 1], encoded, incremental_state=state)
        log_p = model.get_normalized_probs(output, True)
        torch.testing.assert_close(log_p[:, 0], full[:, step], rtol=1e-8, atol=1e-8)


BUILT: dict[str, Any] = {}


def of_encoding(name: str, data: Path) -> Any:
    """Return a model with the encoding in float64; the command line is parsed once."""
    from fairseq import tasks
    from integration import support

    if not BUILT:
        BUILT["cfg"] = support.parse(q.words(data))
        BUILT["task"] = tasks.setup_task(BUILT["cfg"].task)
    cfg = copy.deepcopy(BUILT["cfg"])
    cfg.model.pos_enc = name
    return support.move(BUILT["task"].build_model(cfg.model), seed=1).eval().double()


# -- search -----------------------------------------------------------------------------------------------


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
    task.cfg.lenpen_form = "gnmt"
    outputs = []
    for cached in (True, False):
        generator = task.build_generator([model], GenerationConfig(beam=4, nbest=4, max_len_b=7, lenpen=POWER))
        assert generator.model.has_incremental
        generator.model.has_incremental = cached
        outputs.append(generator.generate([model], {"net_input": batch["net_input"]}))
    for ours, other in zip(*outputs, strict=True):
        check_same(*([(h["tokens"].tolist(), float(h["score"])) for h in best] for best in (ours, other)))


def test_copied_words_are_blocked_like_others(questions: tuple[Any, Any, dict[str, Any]]) -> None:
    """The model may only generate one dictionary word and one unknown word, six in total."""
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
    """Return the trigrams that occur twice."""
    trigrams = list(zip(tokens, tokens[1:], tokens[2:], strict=False))
    return [trigram for trigram in set(trigrams) if trigrams.count(trigram) > 1]


# -- ROUGE-L ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hypothesis", "reference", "value"),
    [
        ("police killed the gunman", "police kill the gunman", 3 / 4),  # Lin 2004, section 3: beta 1
        ("police killed the gunman", "the gunman kill police", 2 / 4),
        ("What is it?", "what is it ?", 1.0),  # case and spaces before punctuation marks do not count
        ("the city", "the king of the city", 2 * (2 / 2) * (2 / 5) / (2 / 2 + 2 / 5)),
        ("a", "b", 0.0),
        ("", "b", 0.0),
        ("b", "", 0.0),
    ],
)
def test_values_computed_by_hand(hypothesis: str, reference: str, value: float) -> None:
    assert metrics.rouge_l(hypothesis, [reference]) == pytest.approx(value)


def test_of_several_references_the_best_counts() -> None:
    references = ["who is the king ?", "what of it ?"]
    assert metrics.rouge_l("what of it ?", references) == 1.0
    # COCO combines the best precision and the best recall of different references: 2 of 2, and 1 of 2.
    value = (1 + 1.2**2) * 1.0 * 0.5 / (0.5 + 1.2**2 * 1.0)
    assert of_units(["a", "b"], [["a", "b", "c", "d", "e"], ["b", "c"]], "coco") == pytest.approx(value)
    assert of_units(["a", "b"], [["a", "b", "c", "d", "e"], ["b", "c"]]) == pytest.approx(2 * 0.4 / 1.4)


WORDS = "what who the a of in city king ?".split()


class Spaces:
    """Split texts at spaces for rouge-score, whose own tokenizer drops punctuation and letters that are not English."""

    def tokenize(self, text: str) -> list[str]:
        return text.split()


def test_rouge_score_says_the_same() -> None:
    if os.environ.get("POSENC_REQUIRE_ORACLES", "0") in ("", "0"):
        pytest.importorskip("rouge_score")
    from rouge_score.rouge_scorer import RougeScorer

    scorer, rng = RougeScorer(["rougeL"], tokenizer=Spaces()), random.Random(7)
    for _ in range(300):
        hypothesis, references = (
            " ".join(rng.choices(WORDS, k=rng.randint(1, 15))),
            [" ".join(rng.choices(WORDS, k=rng.randint(1, 15))) for _ in range(rng.randint(1, 3))],
        )
        theirs = max(scorer.score(reference, hypothesis)["rougeL"].fmeasure for reference in references)
        assert metrics.rouge_l(hypothesis, references, units="spaces") == pytest.approx(theirs, abs=1e-12)
