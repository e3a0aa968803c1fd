"""Test --attend-within: a packed sequence gives the same output at each token as its documents or lines alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from fairseq_posenc.attention.memory import SegmentMemory
from fairseq_posenc.hub import pretrained

from . import lm, masked_lm, support

BOS, EOS = 0, 2
#: By encoding, the flag for which a masked language model needs the tokens before masking.
ENCODINGS = {"learned": "--attend-within", "sentence-restart": "--pos-enc"}
#: Inputs of a language model, in which an </s> belongs to what it begins. The second </s> in a row is an empty line.
TEXT = torch.tensor([[EOS, 5, 6, EOS, EOS, 7, 5, EOS, 6]])
#: Tokens before masking, in which an </s> belongs to what it ends, and the first </s> is an empty line.
UNMASKED = torch.tensor([[BOS, EOS, 5, 6, EOS, EOS, 7, EOS, 5]])
#: By kind of part, the lengths of those of both sequences.
PARTS = {"document": ([4, 5], [2, 4, 3]), "line": ([3, 1, 3, 2], [2, 3, 1, 2, 1])}


def pair(built: Callable[..., Any], within: str) -> tuple[Any, Any]:
    """Return a model with --attend-within, and one with the same weights without it."""
    (limited, _), (usual, _) = built("--attend-within", within), built()
    return support.move(limited), support.move(usual)


def check_apart(
    limited: Callable[..., Tensor], usual: Callable[..., Tensor], lengths: list[int], *rows: Tensor
) -> None:
    """Check that `limited` gives for rows [1, T] what `usual` gives for their parts, and not for the whole."""
    packed = limited(*rows)
    alone = [usual(*parts) for parts in zip(*(row.split(lengths, 1) for row in rows), strict=True)]
    torch.testing.assert_close(packed, torch.cat(alone, 1), rtol=1e-5, atol=1e-5)
    assert not torch.allclose(packed, usual(*rows), atol=1e-3)


@pytest.mark.parametrize("within", PARTS)
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_language_model_scores_and_decodes_documents_as_alone(text: Path, encoding: str, within: str) -> None:
    task = f"--task language_modeling --tokens-per-sample {masked_lm.LENGTH}".split()
    limited, usual = pair(lambda *more: lm.built(text, "--pos-enc", encoding, *more, task=task), within)
    check_apart(lambda row: limited(row)[0], lambda row: usual(row)[0], PARTS[within][0], TEXT)
    whole, state = limited(TEXT)[0], {}  # type: ignore[var-annotated]
    for end in range(1, TEXT.shape[1] + 1):
        step = limited(TEXT[:, :end], incremental_state=state)[0]
        torch.testing.assert_close(step[:, -1], whole[:, end - 1], rtol=1e-5, atol=1e-5)
    with pytest.raises(ValueError, match=f"--attend-within {within} does not work with a memory"):
        limited(TEXT, memory=SegmentMemory(4))


@pytest.mark.parametrize("within", PARTS)
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_masked_language_model_reads_documents_as_alone(text: Path, encoding: str, within: str) -> None:
    """Masks may hide the ends of lines. Features are for tasks that classify pairs of sentences, joined by two </s>."""
    limited, usual = pair(lambda *more: masked_lm.built(text, "--pos-enc", encoding, *more), within)
    masked = UNMASKED.clone()
    masked[0, [3, 4, 7]] = 10

    def logits(model: Any) -> Callable[[Tensor, Tensor], Tensor]:
        return lambda row, unmasked: model(row, unmasked_tokens=unmasked)[0]

    check_apart(logits(limited), logits(usual), PARTS[within][1], masked, UNMASKED)
    assert torch.equal(*(model(UNMASKED, features_only=True)[0] for model in (limited, usual)))
    with pytest.raises(ValueError, match=f"{ENCODINGS[encoding]} .*needs the tokens before masking.*--task"):
        limited(UNMASKED)


def test_a_trained_model_is_exported_with_a_warning(
    text: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run = masked_lm.train(text, "--attend-within", "line", "--max-update", 2, "--save-dir", tmp_path)
    assert len(run.losses) == 2
    pretrained.read(tmp_path / "checkpoint_last.pt")
    assert "--attend-within line" in caplog.text
