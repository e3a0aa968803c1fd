"""Compare the model and the search of question generation with their definitions."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("fairseq")

import support_questions as q
from fairseq.dataclass.configs import GenerationConfig
from support_questions import probabilities
from support_search import LONGEST, PIECES, POWER, WIDE, check_same, exhaustive, restricted, searched

from fairseq_posenc.generation.search import FORMS
from fairseq_posenc.models.question_generation_config import QuestionGenerationConfig


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


def test_only_the_decoder_takes_the_encoding(data: Path) -> None:
    """By default, it is that of Qu et al. 2021 (LFHC and GCDF): 3 layers, 12 heads, feed-forward layers of 3072."""
    model, _ = q.built(data, "--pos-enc", "t5", "--pos-enc-args", "buckets=8")
    assert (model.encoder.pos.name, model.decoder.pos.name) == ("learned+segments-input", "t5")
    config = QuestionGenerationConfig()
    assert (config.decoder_layers, config.decoder_attention_heads, config.decoder_ffn_embed_dim) == (3, 12, 3072)


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

    def repeated(tokens: list[int]) -> list[tuple[int, ...]]:
        """Return the trigrams that occur twice."""
        trigrams = list(zip(tokens, tokens[1:], tokens[2:], strict=False))
        return [trigram for trigram in set(trigrams) if trigrams.count(trigram) > 1]

    copied = [trigram for best in free for trigram in repeated(best[0][0]) if task.size in trigram]
    assert copied
    assert not any(repeated(tokens) for best in blocked for tokens, _ in best)
    assert all(task.size in tokens for best in blocked for tokens, _ in best)
