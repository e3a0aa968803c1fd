"""Let --replace-unk copy the source word to which an unknown word of a translation is aligned.

fairseq takes the flag without a file for a file with the name '@@ ' (dataclass/configs.py:889), and reads the alignment
as a list of source words, although it is empty without --print-alignment, and a list of pairs with it (utils.py:227).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from . import refusals
from .patching import replace

_WITHOUT_FILE = "@@ "


def mend() -> None:
    """Read the flag without a file as an empty dictionary, and find the source word in the pairs of the alignment."""
    from fairseq import utils

    replace(utils, "load_align_dict", _or_empty)
    replace(utils, "replace_unk", _by_pairs)


def check(options: argparse.Namespace) -> None:
    """End the command if --replace-unk cannot find source words with the other options."""
    if getattr(options, "replace_unk", None) is None:
        return
    if getattr(options, "print_alignment", None) != "hard":
        refusals.fail("--replace-unk needs to know which source word a word translates. Add --print-alignment hard.")
    if getattr(options, "post_process", None):
        problem = "the alignment counts pieces, but --post-process (--remove-bpe) joins them to words"
        refusals.fail(f"--replace-unk: {problem}. Leave out one of the two flags.")


def _or_empty(original: Callable[..., Any], path: str | None) -> Any:
    return {} if path == _WITHOUT_FILE else original(path)


def _by_pairs(
    original: Callable[..., str],
    hypothesis: str,
    source: str,
    alignment: Sequence[tuple[int, int]],
    dictionary: Mapping[str, str],
    unknown: str,
) -> str:
    end = len(source.split())  # fairseq adds <eos> after the source
    aligned = {target: word for word, target in alignment}
    by_place = [aligned.get(place, end) for place in range(len(hypothesis.split()))]
    return original(hypothesis, source, by_place, dictionary, unknown)
