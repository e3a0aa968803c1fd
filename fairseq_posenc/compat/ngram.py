"""Make --no-repeat-ngram-size take effect without fairseq's CUDA extension (ngram_repeat_block.py:101)."""

from __future__ import annotations

import logging
from typing import Any

import torch
from torch import Tensor

from .patching import say_once

logger = logging.getLogger(__name__)


def mend() -> None:
    """Make fairseq compare n-grams with the last tokens of the hypothesis.

    fairseq compares n-grams with the end of `tokens`, which is padded to the maximum length, and so bans nothing. The
    original method is kept as the attribute `_posenc_original`, because TorchScript would compile a function that is
    kept as `__wrapped__`.
    """
    from fairseq.ngram_repeat_block import NGramRepeatBlock

    if NGramRepeatBlock.forward is not forward:
        forward._posenc_original = NGramRepeatBlock.forward  # type: ignore[attr-defined]
        NGramRepeatBlock.forward = forward


def forward(self: Any, tokens: Tensor, lprobs: Tensor, bsz: int, beam_size: int, step: int) -> Tensor:
    """Block repeated n-grams as NGramRepeatBlock.forward does, but ignore the padding after the current step.

    TorchScript compiles this function too.
    """
    if tokens.size(0) != bsz * beam_size or lprobs.size(0) != bsz * beam_size:  # the CUDA extension does not check
        raise ValueError(
            f"{bsz * beam_size} hypotheses are needed, but tokens has {tokens.size(0)} and lprobs has {lprobs.size(0)}"
        )
    if self.use_extension:
        return self.call_cuda_extension(tokens, lprobs, bsz, beam_size, step)
    if not torch.jit.is_scripting():
        say_once(logger, "--no-repeat-ngram-size takes effect; fairseq would compare with padding and ban nothing")
    return self._no_repeat_ngram(tokens[:, : step + 1], lprobs, bsz, beam_size, step)
