"""Test language models in fairseq's own commands: the task with memory, its sums, and the adaptive softmax."""

from __future__ import annotations

import itertools
import logging
import shutil
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import torch
from fairseq.checkpoint_utils import load_checkpoint_to_cpu
from fairseq.data import Dictionary, data_utils
from fairseq.logging import progress_bar
from torch import nn

from fairseq_posenc.attention.memory import SegmentMemory
from fairseq_posenc.data.streams import Corpus, Segments
from fairseq_posenc.models.adaptive import OneMatrixSoftmax
from fairseq_posenc.tasks import lm_checks, lm_scores

from . import lm, support
from .lm import ARCH, MEMORY, SIZES, STOCK_TASK, STREAMS

PAD, EOS = 1, 2
#: Training smooths the loss, which is then not the one of perplexities.
XL = "--pos-enc xl --criterion label_smoothed_cross_entropy --label-smoothing 0.1".split()
UNTIED = [*ARCH, *(word for word in SIZES if word != "--share-decoder-input-output-embed")]
#: Arguments of a model whose embedding and adaptive softmax share one matrix.
BANDS = "--adaptive-one-matrix --adaptive-softmax-cutoff 10,20 --no-attention-bias --init-std 0.02".split()


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
    """Each stream goes on where its last segment ended."""
    corpus = Corpus(Lines(total), "text", first=EOS, pad=PAD)
    segments = Segments(corpus, streams=streams, workers=workers, length=length)
    texts: dict[tuple[int, int], list[int]] = {}  # by worker and stream
    pairs: list[tuple[int, int]] = []
    for item in range(len(segments)):
        batch = segments[item]
        source, target = batch["net_input"]["src_tokens"], batch["target"]
        real = target.ne(PAD)
        assert target.shape[0] == streams
        assert target.shape[1] <= length
        assert (batch["ntokens"], batch["nwords"]) == (int(real.sum()), int(real.sum()))
        assert source.eq(PAD).equal(~real)
        pairs += zip(source[real].tolist(), target[real].tolist(), strict=True)
        for stream, row in enumerate(target):
            texts.setdefault((item % workers, stream), []).extend(row[row.ne(PAD)].tolist())
    assert sorted(pairs) == sorted(itertools.pairwise([EOS, *range(4, 4 + total)]))
    assert all(text == list(range(text[0], text[-1] + 1)) for text in texts.values())


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


@pytest.mark.parametrize(("more", "message"), support.table("refused.toml", "other streams at resume").items())
def test_other_streams_at_resume_are_refused(more: str, message: str, whole: Any, lines: Path, tmp_path: Path) -> None:
    shutil.copy(next(whole[0].glob("checkpoint_2_*.pt")), tmp_path / "checkpoint_last.pt")
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
    assert scores["tokens"] == sum(batch["ntokens"] for batch in lm.batches(whole[1].task))


@pytest.mark.parametrize("model", [BANDS, ["--adaptive-softmax-cutoff", "10,20"]], ids=["one matrix", "bands"])
def test_they_agree_on_an_adaptive_softmax(model: list[str], lines: Path, tmp_path: Path) -> None:
    """fairseq sums its loss band by band, but scores by the whole distribution.

    This includes the word at index 1 of each band, which fairseq's criterion takes for padding.
    """
    loss = ["--criterion", "adaptive_loss", "--ddp-backend", "legacy_ddp", "--best-checkpoint-metric", "token_nll"]
    save = ["--max-update", 12, "--valid-subset", "valid", "--save-dir", tmp_path]
    run = lm.train(lines, "--pos-enc", "xl", *loss, *save, model=[*UNTIED, *model])
    assert run.losses[-1] < run.losses[0] - 0.1
    last = tmp_path / "checkpoint_last.pt"
    trained = load_checkpoint_to_cpu(str(last))["extra_state"]["val_loss"]
    assert trained == pytest.approx(float(scored(lines, last)["token_nll"]), abs=1e-6)


def test_training_flags_are_not_those_of_evaluation(whole: tuple[Path, support.Run], lines: Path) -> None:
    path = whole[0] / "checkpoint_last.pt"
    for flag, instead in {"--mem-length": "--eval-mem-length", "--tokens-per-sample": "--eval-segment-length"}.items():
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
    sizes = [batch["ntokens"] for batch in lm.batches(single.task, "train")]
    sums = [loss * size for loss, size in zip(single.losses, sizes, strict=True)]
    pairs = [sum(sums[i : i + 2]) / sum(sizes[i : i + 2]) for i in range(0, len(sums), 2)]
    assert double.losses == pytest.approx(pairs, rel=1e-6)


# -- what is refused --------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", support.table("refused.toml", "streams that break"), ids=lambda row: row["message"])
def test_what_would_break_the_streams_is_refused(row: dict[str, Any], lines: Path) -> None:
    _, task = lm.built(lines, *XL)
    task.load_dataset("valid")
    options = {name: value for name, value in row.items() if name != "message"}
    with pytest.raises(ValueError, match=row["message"]):
        task.get_batch_iterator(task.dataset("valid"), **options)


# -- sums of long texts, and of words that consist of pieces ----------------------------------------------


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


# -- the softmax in bands ---------------------------------------------------------------------------------


def test_probabilities_are_those_of_the_definition() -> None:
    torch.manual_seed(0)
    module = OneMatrixSoftmax(nn.Parameter(torch.randn(30, 8)), [10, 20], dropout=0, pad=PAD).double()
    nn.init.normal_(module.bias)
    nn.init.normal_(module.band_bias)
    x = torch.randn(2, 3, 8, dtype=torch.float64)
    words = x @ module.weight.T + module.bias
    first = torch.cat([words[..., :10], x @ module.band_weight.T + module.band_bias], -1).softmax(-1)
    tails = [words[..., a:b].softmax(-1) * first[..., 10 + i, None] for i, (a, b) in enumerate([(10, 20), (20, 30)])]
    torch.testing.assert_close(module.get_log_prob(x, None).exp(), torch.cat([first[..., :10], *tails], -1))


def test_a_model_of_one_matrix_starts_as_it_was_asked_to(lines: Path) -> None:
    model, _ = lm.built(lines, "--decoder-embed-dim", 64, model=[*UNTIED, *BANDS], task=STOCK_TASK)
    assert model.decoder.embed_tokens.weight is model.decoder.adaptive_softmax.weight
    assert not model.decoder.embed_tokens.weight[PAD].any()
    assert not [name for name, _ in model.named_parameters() if "_proj.bias" in name]
    for name, weight in model.named_parameters():
        if weight.dim() == 2 and "band" not in name:
            assert weight.std().item() == pytest.approx(0.02, rel=0.25), name
