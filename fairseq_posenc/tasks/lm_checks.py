"""Checks of models, lengths and pieces for the language model task."""

from __future__ import annotations

import logging
from typing import Any

from fairseq.data import Dictionary

from ..data.words import Words, marked

logger = logging.getLogger(__name__)


def words(dictionary: Dictionary, scheme: str) -> Words:
    """Return which pieces of a dictionary begin a word under a scheme of marking words.

    Raises:
        ValueError: The pieces do not have the marks of the scheme.
    """
    found = Words(dictionary.symbols, range(dictionary.nspecial), scheme)
    text = ~found.special
    if not found.begins[text].any() or (found.begins[text].all() and not found.goes_on.any()):
        raise ValueError(
            f"--subwords {scheme}: the dictionary's pieces do not have its marks; without it each is a word"
        )
    return found


def memory(model: Any, lengths: dict[str, int], same_length: bool) -> None:
    """Raise ValueError if the model, its encoding or another flag does not allow memory.

    Args:
        lengths: Length of the memory by flag.
        same_length: Whether --same-length is set.
    """
    if not getattr(model, "remembers", False):
        raise ValueError(
            f"--task posenc_lm_memory is for posenc_transformer_lm and its sizes, not {type(model).__name__}: choose "
            "one with --arch, or --task language_modeling"
        )
    pos = model.decoder.pos
    for flag, length in lengths.items():
        if length and not pos.capabilities.memory:
            raise ValueError(
                f"{flag} {length}: --pos-enc {pos.name} has no memory, as it has no positions for earlier segments; "
                f"give {flag} 0, or a relative encoding"
            )
        if length and model.decoder.decoder_layerdrop:
            raise ValueError("--decoder-layerdrop leaves out layers, whose states memory needs: leave it out")
        if same_length and not length:
            raise ValueError(f"--same-length: a query sees as many keys as {flag}, which is 0; leave one of them out")


def positions(length: int, remembered: int, longest: Any) -> None:
    """Raise ValueError if memory and segment together are longer than the encoding defines."""
    if isinstance(longest, int | float) and length + remembered > longest:
        raise ValueError(
            f"memory of {remembered} and segments of {length} tokens: the encoding is defined up to {longest:.0f}; "
            "lower --eval-mem-length or --eval-segment-length, or train with longer ones"
        )


def warn_of_pieces(dictionary: Dictionary) -> None:
    """Warn if the dictionary consists of subword pieces, because each piece then counts as a word."""
    scheme = marked(dictionary.symbols)
    if scheme:
        logger.warning("pieces look like those of %s; without --subwords %s each counts as a word", scheme, scheme)
