"""Test the sums of language modelling with memory: over long texts, and of words that consist of pieces."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
import torch
from fairseq.data import Dictionary, data_utils

from fairseq_posenc.attention.memory import SegmentMemory
from fairseq_posenc.tasks import lm_checks, lm_scores

from . import lm
from .test_lm_task import XL, scored, validated

EOS = 2


def test_how_pieces_mark_words_is_remembered(tmp_path: Path) -> None:
    """All three commands count the same words, and refuse other marks. Each </s> counts as a word, as in papers."""
    data = lm.write_corpus(tmp_path / "data-bin")
    lines = (data / "dict.txt").read_text().splitlines()
    pieces = [line.replace(" ", "@@ ", 1) if i % 3 == 0 else line for i, line in enumerate(lines)]
    (data / "dict.txt").write_text("\n".join(pieces) + "\n")
    save = ["--max-update", 2, "--subwords", "fastbpe", "--save-dir", tmp_path / "saved"]
    lm.train(data, *XL, *save)
    last = tmp_path / "saved" / "checkpoint_last.pt"
    valid, scores = validated(data, last), scored(data, last)
    tokens = torch.cat(list(data_utils.load_indexed_dataset(str(data / "valid"), None))).long()
    goes_on = torch.tensor([symbol.endswith("@@") for symbol in Dictionary.load(str(data / "dict.txt")).symbols])
    assert scores["tokens"] - scores["words"] == int((goes_on[tokens[:-1]] & tokens[1:].ne(EOS)).sum()) > 0
    assert valid["word_nll"] == pytest.approx(scores["word_nll"], abs=1e-6)
    assert valid["token_nll"] == pytest.approx(scores["token_nll"], abs=1e-6)
    with pytest.raises(ValueError, match="--subwords wordpiece: the dictionary"):
        scored(data, last, "--subwords", "wordpiece")


def test_pieces_counted_as_words_are_told_of(caplog: pytest.LogCaptureFixture) -> None:
    forms = {"sentencepiece": "\u2581{}", "wordpiece": "##{}", "gpt2": "\u0120{}", "fastbpe": "{}@@"}
    for name, form in {"": "w{}", **forms}.items():
        dictionary = Dictionary()
        for number in range(40):
            dictionary.add_symbol(form.format(number) if number % 2 or not name else str(number))
        caplog.clear()
        with caplog.at_level(logging.WARNING, logger="fairseq_posenc.tasks.lm_checks"):
            lm_checks.warn_of_pieces(dictionary)
        assert [f"--subwords {name}" in message for message in caplog.messages] == [True] * bool(name)


def test_a_long_text_is_summed_exactly() -> None:
    """fairseq-eval-lm sums in float32, which is off by 4e-6 for a quarter of a million tokens."""
    source, batch = lm_scores.Remembering([], SegmentMemory(0)), torch.full((1000,), -7.1)
    for _ in range(300):
        source.score(batch)
    assert source.nats == pytest.approx(300 * -float(batch.double().sum()), rel=1e-12)


def test_tokens_that_were_not_scored_are_told_of() -> None:
    source = lm_scores.Remembering([{"segment": 0, "ntokens": 3, "nwords": 3, "net_input": {}}], SegmentMemory(0))
    iterator = type("Progress", (), {"iterable": source})()
    with pytest.raises(RuntimeError, match="3 tokens were read, but 0 were scored"):
        lm_scores._logging_both(lambda batch_iterator: [*source] and {"loss": 1.0}, batch_iterator=iterator)
