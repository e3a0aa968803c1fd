"""Test --attend-within: a packed sequence gives the same output at each token as its documents or lines alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from fairseq_posenc.attention.memory import SegmentMemory
from fairseq_posenc.hub import pretrained

from . import lm, masked_lm, support

BOS, PAD, EOS = 0, 1, 2
LENGTH = masked_lm.LENGTH
WITHIN = ["document", "line"]

Pieces = list[tuple[int, slice]]


def pieces(rows: Tensor, ends: Callable[[list[int], int], bool]) -> Pieces:
    """Return the sample and the columns of each document or line, where `ends(row, column)` says that it ends."""
    found: Pieces = []
    for sample, row in enumerate(rows.tolist()):
        length, start = sum(token != PAD for token in row), 0
        for column in range(length):
            if column == length - 1 or ends(row, column):
                found.append((sample, slice(start, column + 1)))
                start = column + 1
    return found


def separate(rows: Tensor, where: Pieces) -> Tensor:
    """Return each piece as a sequence of its own, [N, T]."""
    return pad_sequence([rows[sample, columns] for sample, columns in where], batch_first=True, padding_value=PAD)


def assert_equal_apart(packed: Tensor, alone: Tensor, where: Pieces) -> None:
    for row, (sample, columns) in zip(alone, where, strict=True):
        torch.testing.assert_close(packed[sample, columns], row[: columns.stop - columns.start], rtol=1e-5, atol=1e-5)


def pair(built: Callable[..., Any], within: str) -> tuple[Any, Any, Any]:
    """Return a model with --attend-within, one with the same weights without it, and the task of the first."""
    (limited, task), (usual, _) = built("--attend-within", within), built()
    return support.move(limited), support.move(usual), task


# -- language models --------------------------------------------------------------------------------------

TASKS = {
    "none": f"--task language_modeling --tokens-per-sample {LENGTH}",
    "complete": f"--task language_modeling --tokens-per-sample {LENGTH} --sample-break-mode complete",
    "streams": f"--task posenc_lm_memory --tokens-per-sample {LENGTH} --mem-length 0",
}


def lm_batches(task: Any, kind: str) -> Sequence[dict[str, Any]]:
    return lm.batches(task, size=3) if kind == "streams" else support.batches(task, "valid", size=8, longest=LENGTH)


def log_probs(model: Any, **inputs: Any) -> Tensor:
    probs: Tensor = model.get_normalized_probs(model(**inputs), log_probs=True)
    return probs


def lm_pieces(batch: dict[str, Any], within: str) -> Pieces:
    """Return the pieces of the targets; an empty line is a target </s> after an input </s>."""
    targets, inputs = batch["target"], batch["net_input"]["src_tokens"]
    empty = targets.eq(EOS) & inputs.eq(EOS)
    ends = targets.eq(EOS) if within == "line" else empty
    marked = torch.where(targets.eq(PAD), PAD, ends.long() * EOS)
    return pieces(marked, lambda row, column: row[column] == EOS)


@pytest.mark.parametrize("within", WITHIN)
@pytest.mark.parametrize("kind", TASKS)
@pytest.mark.parametrize("encoding", ["learned", "sentence-restart"])
def test_a_language_model_scores_documents_as_alone(text: Path, encoding: str, kind: str, within: str) -> None:
    words = ["--pos-enc", encoding]
    limited, usual, task = pair(lambda *more: lm.built(text, *words, *more, task=TASKS[kind].split()), within)
    several = 0
    for batch in lm_batches(task, kind):
        inputs = batch["net_input"]["src_tokens"]
        where = lm_pieces(batch, within)
        packed = log_probs(limited, src_tokens=inputs)
        assert_equal_apart(packed, log_probs(usual, src_tokens=separate(inputs, where)), where)
        several += len(where) - len(inputs)
        assert len(where) == len(inputs) or not torch.allclose(packed, log_probs(usual, src_tokens=inputs), atol=1e-3)
    assert several > 1


@pytest.mark.parametrize("within", WITHIN)
def test_decoding_gives_what_the_whole_sequence_gives(text: Path, within: str) -> None:
    model, _ = lm.built(text, "--pos-enc", "learned", "--attend-within", within, task=TASKS["none"].split())
    support.move(model)
    tokens, state = torch.tensor([[EOS, 5, 6, EOS, EOS, 7, 5, EOS, 6]]), {}  # type: ignore[var-annotated]
    whole = log_probs(model, src_tokens=tokens)
    for end in range(1, tokens.shape[1] + 1):
        step = log_probs(model, src_tokens=tokens[:, :end], incremental_state=state)
        torch.testing.assert_close(step[:, -1], whole[:, end - 1], rtol=1e-5, atol=1e-5)


def test_a_memory_of_unknown_documents_is_refused(text: Path) -> None:
    model, _ = lm.built(text, "--pos-enc", "rope", "--attend-within", "line", task=TASKS["none"].split())
    with pytest.raises(ValueError, match="--attend-within line does not work with a memory"):
        model(torch.tensor([[EOS, 5]]), memory=SegmentMemory(4))


# -- masked language models -------------------------------------------------------------------------------


def break_mode(mode: str) -> list[str]:
    return [mode if word == "complete" else word for word in masked_lm.TASK]


@pytest.mark.parametrize("within", WITHIN)
@pytest.mark.parametrize("mode", ["none", "complete"])
@pytest.mark.parametrize("encoding", ["learned", "sentence-restart"])
def test_a_masked_language_model_reads_documents_as_alone(text: Path, encoding: str, mode: str, within: str) -> None:
    limited, usual, task = pair(
        lambda *more: masked_lm.built(text, "--pos-enc", encoding, *more, task=break_mode(mode)), within
    )

    def ends(row: list[int], column: int) -> bool:
        return row[column] == EOS and (within == "line" or row[column - 1] in (BOS, EOS))

    several = 0
    for batch in masked_lm.batches(task):
        rows = [batch["net_input"][name] for name in ("src_tokens", "unmasked_tokens")]
        where = pieces(rows[1], ends)
        packed, _ = limited(rows[0], unmasked_tokens=rows[1])
        alone, _ = usual(separate(rows[0], where), unmasked_tokens=separate(rows[1], where))
        assert_equal_apart(packed, alone, where)
        several += len(where) - len(rows[0])
    assert several > 1


def test_features_see_the_whole_sequence(text: Path) -> None:
    """Tasks with heads classify pairs of sentences, in which two </s> follow each other."""
    limited, usual, _ = pair(lambda *more: masked_lm.built(text, "--pos-enc", "learned", *more), "line")
    tokens = torch.tensor([[BOS, 5, EOS, EOS, 6, 7, EOS]])
    ours, theirs = (model(tokens, features_only=True)[0] for model in (limited, usual))
    assert torch.equal(ours, theirs)
    with pytest.raises(ValueError, match="--attend-within line needs the tokens before masking"):
        limited(tokens)


def test_a_trained_model_is_exported_with_a_warning(
    text: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run = masked_lm.train(text, "--attend-within", "line", "--max-update", 2, "--save-dir", tmp_path)
    assert len(run.losses) == 2
    pretrained.read(tmp_path / "checkpoint_last.pt")
    assert "--attend-within line" in caplog.text
