"""Test the task of language modelling with memory in fairseq's own commands."""

from __future__ import annotations

import itertools
import shutil
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import torch
from fairseq.checkpoint_utils import load_checkpoint_to_cpu
from fairseq.logging import progress_bar

from fairseq_posenc.data.streams import Corpus, Segments

from . import lm, support
from .lm import MEMORY, STREAMS
from .test_lm import BANDS, UNTIED

XL = ["--pos-enc", "xl"]


# -- streams ----------------------------------------------------------------------------------------------


class Lines(list[torch.Tensor]):
    """Provide a text of `total` tokens, 4, 5 and so on, in lines of three tokens."""

    def __init__(self, total: int) -> None:
        super().__init__(torch.arange(4, 4 + total).split([3] * (total // 3) + [total % 3] * (total % 3 > 0)))
        self.sizes = [len(line) for line in self]


@pytest.mark.parametrize("total", [6, 7, 23, 24, 48, 49])
@pytest.mark.parametrize(("streams", "workers", "length"), [(1, 1, 4), (3, 1, 4), (2, 3, 4), (2, 2, 1)])
def test_every_token_is_a_target_once_behind_the_token_before_it(
    total: int, streams: int, workers: int, length: int
) -> None:
    corpus = Corpus(Lines(total), "text", first=2, pad=1)
    segments = Segments(corpus, streams=streams, workers=workers, length=length)
    pairs: list[tuple[int, int]] = []
    for item in range(len(segments)):
        batch = segments[item]
        real = batch["target"].ne(1)
        assert batch["target"].shape[0] == streams
        assert batch["target"].shape[1] <= length
        assert (batch["ntokens"], batch["nwords"]) == (int(real.sum()), int(real.sum()))
        assert batch["net_input"]["src_tokens"].eq(1).equal(~real)
        pairs += zip(batch["net_input"]["src_tokens"][real].tolist(), batch["target"][real].tolist(), strict=True)
    text = [2, *range(4, 4 + total)]
    assert sorted(pairs) == sorted(itertools.pairwise(text))


def test_streams_go_on_where_they_ended() -> None:
    segments = Segments(Corpus(Lines(50), "text", first=2, pad=1), streams=2, workers=2, length=4)
    for worker, stream in itertools.product(range(2), range(2)):
        rows = [segments[segment * 2 + worker]["net_input"]["src_tokens"][stream] for segment in range(segments.count)]
        text = torch.cat(rows)
        assert text[text.gt(2)].diff().eq(1).all()


def test_a_corpus_shorter_than_its_streams_is_refused() -> None:
    with pytest.raises(ValueError, match=r"text has 5 tokens, but .* means 6 streams .* Lower --batch-size"):
        Segments(Corpus(Lines(5), "text", first=2, pad=1), streams=3, workers=2, length=4)


# -- training, and the commands that evaluate -------------------------------------------------------------


@pytest.fixture(scope="module")
def whole(lines: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, support.Run]:
    """Train for two epochs with validation, and save a checkpoint in the middle of the second epoch."""
    folder = tmp_path_factory.mktemp("whole")
    _, task = lm.built(lines, *XL)
    epoch = len(lm.batches(task, "train"))
    every = ["--save-interval-updates", epoch + 3, "--max-epoch", 2, "--best-checkpoint-metric", "token_nll"]
    run = lm.train(lines, *XL, *every, "--valid-subset", "valid", "--save-dir", folder)
    assert len(run.losses) == 2 * epoch
    assert run.losses[-1] < run.losses[0] - 0.5
    return folder, run


OTHER_STREAMS = {
    "--batch-size 2": r"--batch-size is 2, but the checkpoint was written with 4.*--reset-dataloader",
    "--tokens-per-sample 6 --mem-length 14": "--tokens-per-sample is 6, but",
    "--mem-length 6": "--mem-length is 6, but .* 12",
    "--same-length": "--same-length is 1, but the checkpoint was written with 0",
}


def test_other_streams_at_resume_are_refused(whole: tuple[Path, support.Run], lines: Path, tmp_path: Path) -> None:
    shutil.copy(next(whole[0].glob("checkpoint_2_*.pt")), tmp_path / "checkpoint_last.pt")
    for more, message in OTHER_STREAMS.items():
        with pytest.raises(ValueError, match=message):
            lm.train(lines, *XL, *more.split(), "--max-epoch", 2, "--save-dir", tmp_path)


OPTIONS = ["--task", "posenc_lm_memory", "--batch-size", STREAMS, "--log-format", "none"]


def validated(lines: Path, path: Path, *more: Any) -> dict[str, float]:
    """Return the statistics of fairseq-validate, rounded only by its meters."""
    with mock.patch.object(progress_bar.NoopProgressBar, "print") as shown:
        support.evaluate("validate", lines, path, *OPTIONS, "--valid-subset", "valid", *more)
    return {name: float(getattr(value, "avg", value)) for name, value in shown.call_args.args[0].items()}


def scored(lines: Path, path: Path, *more: Any) -> dict[str, Any]:
    """Return the results of fairseq-eval-lm."""
    results: dict[str, Any] = support.evaluate("eval_lm", lines, path, *OPTIONS, "--gen-subset", "valid", *more)[1]
    return results


def test_the_three_commands_agree(whole: tuple[Path, support.Run], lines: Path) -> None:
    last = whole[0] / "checkpoint_last.pt"
    trained = load_checkpoint_to_cpu(str(last))["extra_state"]["val_loss"]
    valid, scores = validated(lines, last), scored(lines, last)
    assert valid["token_nll"] == pytest.approx(float(scores["token_nll"]), abs=1e-6)
    assert valid["word_nll"] == valid["token_nll"]
    assert valid["token_ppl"] == pytest.approx(float(scores["word_ppl"]), rel=1e-5)
    assert trained == pytest.approx(valid["token_nll"], abs=1e-6)
    assert scores["tokens"] == sum(batch["ntokens"] for batch in lm.batches(whole[1].trainer.task))


@pytest.mark.parametrize("model", [BANDS, [*UNTIED, "--adaptive-softmax-cutoff", "10,20"]], ids=["one matrix", "bands"])
def test_they_agree_on_an_adaptive_softmax(model: list[str], lines: Path, tmp_path: Path) -> None:
    """fairseq sums its loss band by band, but scores by the whole distribution.

    This includes the word at index 1 of each band, which fairseq's criterion takes for padding.
    """
    loss = ["--criterion", "adaptive_loss", "--ddp-backend", "legacy_ddp", "--best-checkpoint-metric", "token_nll"]
    save = ["--max-update", 3, "--valid-subset", "valid", "--save-dir", tmp_path]
    lm.train(lines, *XL, *loss, *save, model=model)
    last = tmp_path / "checkpoint_last.pt"
    trained = load_checkpoint_to_cpu(str(last))["extra_state"]["val_loss"]
    assert trained == pytest.approx(float(scored(lines, last)["token_nll"]), abs=1e-6)


def test_training_flags_are_not_those_of_evaluation(whole: tuple[Path, support.Run], lines: Path) -> None:
    path = whole[0] / "checkpoint_last.pt"
    pairs = [("--mem-length", "--eval-mem-length"), ("--tokens-per-sample", "--eval-segment-length")]
    for flag, instead in pairs:
        with pytest.raises(ValueError, match=f"{flag} 3: the model was trained .*{instead}"):
            scored(lines, path, flag, 3)
    assert scored(lines, path, "--mem-length", MEMORY)["tokens"] > 0
    with pytest.raises(ValueError, match="--eval-mem-length"):
        scored(lines, path, "--context-window", 4)


def test_memory_of_evaluation_is_chosen_without_training_again(whole: tuple[Path, support.Run], lines: Path) -> None:
    """In both commands, each length gives another result for the same number of tokens."""
    path = whole[0] / "checkpoint_last.pt"
    results = [scored(lines, path, "--eval-mem-length", length) for length in (0, 4, 40)]
    assert len({float(result["loss"]) for result in results}) == 3
    assert len({result["tokens"] for result in results}) == 1
    same = ["--eval-mem-length", 40, "--eval-segment-length", 5, "--same-length"]
    ours, theirs = (command(lines, path, *same)["token_nll"] for command in (validated, scored))
    assert ours == pytest.approx(theirs, abs=1e-6)


def test_validation_in_between_and_loaders_change_nothing(lines: Path, whole: tuple[Path, support.Run]) -> None:
    """Training has its own memory, which is empty at the start of an epoch; loaders keep the order."""
    plain = lm.train(lines, *XL, "--max-epoch", 2, "--num-workers", 1, "--data-buffer-size", 3)
    assert plain.losses == whole[1].losses


def test_accumulation_reads_the_same_streams(lines: Path) -> None:
    """With a learning rate of 0, the loss of two segments is the mean of both losses."""
    still = ["--lr", 0, "--max-epoch", 1]
    single, double = (lm.train(lines, *XL, *still, "--update-freq", freq) for freq in (1, 2))
    task = single.trainer.task
    sizes = [batch["ntokens"] for batch in lm.batches(task, "train")]
    sums = [loss * size for loss, size in zip(single.losses, sizes, strict=True)]
    pairs = [sum(sums[i : i + 2]) / sum(sizes[i : i + 2]) for i in range(0, len(sums), 2)]
    assert double.losses == pytest.approx(pairs, rel=1e-6)


# -- what is refused --------------------------------------------------------------------------------------


BREAKING: list[tuple[dict[str, Any], str]] = [
    ({"max_tokens": 100}, "--max-tokens"),
    ({"max_sentences": None}, "--batch-size"),
    ({"skip_remainder_batch": True}, "--skip-remainder-batch"),
    ({"grouped_shuffling": True}, "--grouped-shuffling"),
    ({"max_positions": 19}, "defined up to 19"),
]


def test_what_would_break_the_streams_is_refused(lines: Path) -> None:
    _, task = lm.built(lines, *XL)
    task.load_dataset("valid")
    for flags, message in BREAKING:
        with pytest.raises(ValueError, match=message):
            task.get_batch_iterator(task.dataset("valid"), **{"max_sentences": 2, **flags})


def test_segments_out_of_order_are_refused(lines: Path) -> None:
    model, task = lm.built(lines, *XL)
    criterion = task.build_criterion(support.parse(lm.command_line(lines, *XL)).criterion)
    first, second, third, *_ = lm.batches(task)
    task.valid_step(first, model, criterion)
    with pytest.raises(ValueError, match="segment 2 of the streams came after segment 0"):
        task.valid_step(third, model, criterion)
    once = task.valid_step(second, model, criterion)[0]
    assert task.valid_step(second, model, criterion)[0] == once  # fairseq repeats a step that failed
