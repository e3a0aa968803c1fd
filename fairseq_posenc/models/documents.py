"""Define --attend-within, which limits attention to documents or lines, and check that this flag fits the task."""

from __future__ import annotations

from typing import Any

from fairseq.dataclass import ChoiceEnum

from ..core.refusal import InputError
from ..data.documents import DOCUMENT, LINE, SEQUENCE

WITHIN = ChoiceEnum([SEQUENCE, DOCUMENT, LINE])
#: help text of --attend-within
WITHIN_HELP = (
    "Part of the input that a token attends to: its whole sequence (as in fairseq), its document or its line. "
    "Empty lines separate documents. Positions restart in each document or line."
)


def check_language_model(within: str, task: Any) -> None:
    """Raise ValueError if the inputs of a language model do not fit --attend-within, or if this flag has no effect."""
    settings = getattr(task, "cfg", None) or getattr(task, "args", None)
    if within != SEQUENCE and getattr(settings, "add_bos_token", False):
        raise InputError(
            f"--attend-within {within} does not work with --add-bos-token, which puts <s> before each sequence instead "
            f"of each {within}. Leave --add-bos-token out."
        )
    _check_break_mode(within, settings)


def without_memory(within: str) -> str:
    """Return the text of the error about --attend-within with a memory of earlier segments."""
    return (
        f"--attend-within {within} does not work with a memory of earlier segments, because the memory does not "
        f"record to which {within} its states belong"
    )


def check_masked_language_model(within: str, task: Any) -> None:
    """Raise ValueError if a task does not give the tokens before masking, or if --attend-within has no effect."""
    if within != SEQUENCE and not getattr(task, "gives_unmasked_tokens", False):
        raise InputError(
            f"--attend-within {within} needs the tokens before masking, because masks may hide the ends of lines. Use "
            "--task posenc_masked_lm, which gives them, or leave --attend-within out."
        )
    _check_break_mode(within, getattr(task, "cfg", None))


def _check_break_mode(within: str, settings: Any) -> None:
    mode = str(getattr(settings, "sample_break_mode", None))
    contents = {"eos": "one line"} if within != SEQUENCE else {}
    contents |= {"complete_doc": "a part of one document"} if within == DOCUMENT else {}
    if mode in contents:
        raise InputError(
            f"--attend-within {within} has no effect with --sample-break-mode {mode}, because each sequence is "
            f"{contents[mode]}. Leave --attend-within out (for a checkpoint: --model-overrides "
            "\"{'attend_within': 'sequence'}\"), or choose --sample-break-mode none or complete."
        )
