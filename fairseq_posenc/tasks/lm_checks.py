"""Check models, lengths and pieces for the language model task."""

from __future__ import annotations

import logging
from typing import Any

from fairseq.data import Dictionary

from ..core.compose import Composition
from ..core.refusal import InputError
from ..data.documents import SEQUENCE
from ..data.words import Words, marked
from ..models.documents import without_memory

logger = logging.getLogger(__name__)


def words(dictionary: Dictionary, scheme: str) -> Words:
    """Tell which pieces of a dictionary begin a word, by the marks of a scheme such as sentencepiece or wordpiece.

    Raises:
        ValueError: The pieces do not have the marks of the scheme.
    """
    marks = Words(dictionary.symbols, range(dictionary.nspecial), scheme)
    text = ~marks.special
    if not marks.begins[text].any() or (marks.begins[text].all() and not marks.goes_on.any()):
        raise InputError(
            f"--subwords {scheme}: the dictionary's pieces do not have the marks of this scheme. Give the scheme of "
            "their tokenizer, or leave --subwords out to count each piece as a word."
        )
    return marks


def memory(model: Any, lengths: dict[str, int], same_length: bool) -> None:
    """Raise ValueError if the model, its encoding or a flag does not allow a memory of earlier segments.

    Args:
        lengths: Memory lengths, keyed by the flag that sets them.
        same_length: Whether --same-length is set.
    """
    if not getattr(model, "remembers", False):
        raise InputError(
            f"--task posenc_lm_memory does not support {type(model).__name__}. Give --arch posenc_transformer_lm or "
            "one of its presets, or --task language_modeling."
        )
    pos = model.decoder.pos
    for flag, length in lengths.items():
        if length and not pos.capabilities.memory:
            raise InputError(
                f"{flag} {length}: --pos-enc {pos.name} has no positions for a memory of earlier segments. Set "
                f"{flag} to 0, or choose a relative encoding, such as xl."
            )
        if length and model.decoder.attend_within != SEQUENCE:
            raise InputError(f"{flag} {length}: {without_memory(model.decoder.attend_within)}. Set {flag} to 0.")
        if length and model.decoder.decoder_layerdrop:
            raise InputError("--decoder-layerdrop drops layers, but memory needs all layers. Leave the flag out.")
        if same_length and not length:
            raise InputError(f"--same-length needs memory, but {flag} is 0. Leave --same-length out, or raise {flag}.")


def windows(pos: Composition, remembered: int) -> None:
    """Raise ValueError if a window of an encoding has no effect beside --same-length in training."""
    for name, member in pos.members.items():
        if (member.options.window or 0) >= remembered:
            raise InputError(
                f"--pos-enc: {name}: window={member.options.window} has no effect, because --same-length lets a token "
                f"attend to {remembered} tokens only (--mem-length). Leave the window out, or choose a smaller one."
            )


def positions(length: int, remembered: int, longest: Any) -> None:
    """Raise ValueError if memory and segment together have more positions than the encoding is defined for."""
    if isinstance(longest, int | float) and length + remembered > longest:
        raise InputError(
            f"A memory of {remembered} states and a segment of {length} tokens are too long together, because the "
            f"encoding is defined up to {longest:.0f} positions. Lower --eval-mem-length or --eval-segment-length."
        )


def warn_of_pieces(dictionary: Dictionary) -> None:
    """Warn if the dictionary consists of subword pieces, because each piece then counts as a word."""
    scheme = marked(dictionary.symbols)
    if scheme:
        text = "The dictionary consists of subword pieces (%s). Without --subwords %s, each piece counts as a word."
        logger.warning(text, scheme, scheme)
