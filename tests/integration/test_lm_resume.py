"""Test language modelling with memory: resuming from checkpoints, and sums over long texts."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq.data import Dictionary

from fairseq_posenc.attention.memory import SegmentMemory
from fairseq_posenc.data.words import marked
from fairseq_posenc.tasks import lm_checks, lm_scores

from . import lm, test_distributed
from .test_lm_task import XL, scored, validated


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return lm.write_corpus(tmp_path_factory.mktemp("lm") / "data-bin")


def test_accumulation_resumes_in_the_middle_of_an_epoch(data: Path, tmp_path: Path) -> None:
    often = [*XL, "--update-freq", 2, "--max-update", 6, "--save-dir"]
    whole = lm.train(data, *often, tmp_path / "whole", "--save-interval-updates", 3, "--no-epoch-checkpoints")
    (tmp_path / "rest").mkdir()
    shutil.copy(tmp_path / "whole" / "checkpoint_1_3.pt", tmp_path / "rest" / "checkpoint_last.pt")
    rest = lm.train(data, *often, tmp_path / "rest")
    assert rest.losses == whole.losses[3:]
    test_distributed.assert_same(rest.model.state_dict(), whole.model.state_dict(), rtol=0, atol=0)


def test_folders_that_take_turns_resume_at_the_end_of_an_epoch(data: Path, tmp_path: Path) -> None:
    """The next epoch reads the next folder, which has another length."""
    other = tmp_path / "other"
    shutil.copytree(data, other)
    for end in ("bin", "idx"):
        shutil.copy(data / f"test.{end}", other / f"train.{end}")
    both = f"{data}:{other}"
    whole = lm.train(both, *XL, "--max-epoch", 2, "--save-dir", tmp_path / "whole")
    (tmp_path / "rest").mkdir()
    shutil.copy(tmp_path / "whole" / "checkpoint1.pt", tmp_path / "rest" / "checkpoint_last.pt")
    rest = lm.train(both, *XL, "--max-epoch", 2, "--save-dir", tmp_path / "rest")
    assert 0 < len(rest.losses) < len(whole.losses)
    assert rest.losses == whole.losses[-len(rest.losses) :]


def test_streams_of_validation_name_their_own_flag(data: Path) -> None:
    with pytest.raises(ValueError, match=r"--batch-size-valid 5000 .* Lower --batch-size-valid"):
        lm.train(data, *XL, "--max-update", 1, "--valid-subset", "valid", "--batch-size-valid", 5000)


def test_how_pieces_mark_words_is_remembered(tmp_path: Path) -> None:
    """All three commands count the same words, and refuse other marks."""
    data = lm.write_corpus(tmp_path / "data-bin")
    lines = (data / "dict.txt").read_text().splitlines()
    pieces = [line.replace(" ", "@@ ", 1) if i % 3 == 0 else line for i, line in enumerate(lines)]
    (data / "dict.txt").write_text("\n".join(pieces) + "\n")
    save = ["--max-update", 2, "--subwords", "fastbpe", "--save-dir", tmp_path / "saved"]
    lm.train(data, *XL, *save)
    last = tmp_path / "saved" / "checkpoint_last.pt"
    valid, scores = validated(data, last), scored(data, last)
    assert scores["words"] < scores["tokens"]
    assert valid["word_nll"] == pytest.approx(scores["word_nll"], abs=1e-6)
    assert valid["token_nll"] == pytest.approx(scores["token_nll"], abs=1e-6)
    with pytest.raises(ValueError, match="--subwords wordpiece: the dictionary"):
        scored(data, last, "--subwords", "wordpiece")


def test_pieces_counted_as_words_are_told_of(caplog: pytest.LogCaptureFixture) -> None:
    dictionaries = {}
    for name, form in {"sentencepiece": "\u2581{}", "wordpiece": "##{}", "gpt2": "\u0120{}", "fastbpe": "{}@@"}.items():
        dictionaries[name] = Dictionary()
        for number in range(40):
            dictionaries[name].add_symbol(form.format(number) if number % 2 else str(number))
    words = Dictionary()
    for number in range(40):
        words.add_symbol(f"w{number}")
    with caplog.at_level(logging.WARNING, logger="fairseq_posenc.tasks.lm_checks"):
        lm_checks.warn_of_pieces(words)
    assert not caplog.messages
    for name, dictionary in dictionaries.items():
        assert marked(dictionary.symbols) == name
        with caplog.at_level(logging.WARNING, logger="fairseq_posenc.tasks.lm_checks"):
            lm_checks.warn_of_pieces(dictionary)
    assert [f"--subwords {name}" in message for name, message in zip(dictionaries, caplog.messages, strict=True)] == [
        True
    ] * 4


class Scorer:
    """Give each token the same probability."""

    def generate(self, models: Any, sample: dict[str, Any]) -> Any:
        return [[{"positional_scores": torch.full((sample["ntokens"],), -7.1)}]]


def test_a_long_text_is_summed_exactly() -> None:
    """fairseq-eval-lm sums in float32, which is off by 4e-6 for a quarter of a million tokens."""
    batches = [{"segment": i, "ntokens": 1000, "nwords": 500, "net_input": {}} for i in range(300)]

    def eval_lm(batch_iterator: Any) -> dict[str, Any]:
        scorer, total = Scorer(), torch.tensor(0.0)
        for sample in batch_iterator:
            total += lm_scores._scoring(Scorer.generate, scorer, [], sample)[0][0]["positional_scores"].sum()
        return {"loss": -total / 300_000 / torch.tensor(2.0).log()}

    source = lm_scores.Remembering(batches, SegmentMemory(0))
    iterator = type("Progress", (), {"iterable": source, "__iter__": lambda self: iter(source)})()
    results = lm_scores._logging_both(eval_lm, batch_iterator=iterator)
    exact = -float(torch.tensor(-7.1).double())
    assert results["token_nll"] == pytest.approx(exact, rel=1e-12)
    assert results["word_nll"] == pytest.approx(2 * exact, rel=1e-12)
    assert abs(float(results["loss"]) * 0.6931471805599453 - exact) > 1e-7


def test_tokens_that_were_not_scored_are_told_of() -> None:
    source = lm_scores.Remembering([{"segment": 0, "ntokens": 3, "nwords": 3, "net_input": {}}], SegmentMemory(0))
    iterator = type("Progress", (), {"iterable": source})()
    with pytest.raises(RuntimeError, match="3 tokens were read, but 0 were scored"):
        lm_scores._logging_both(lambda batch_iterator: [*source] and {"loss": 1.0}, batch_iterator=iterator)
