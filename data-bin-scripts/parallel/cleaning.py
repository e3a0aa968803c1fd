"""Clean training pairs; a pair that is left out is counted under the first rule that it breaks."""

from __future__ import annotations

import re
from argparse import Namespace
from typing import NamedTuple

from corpora.lines import is_seen, tidy

#: Reasons to leave a pair out, by the name of the step.
STEPS = {
    "encoding": "A side is not UTF-8, or contains the replacement character U+FFFD.",
    "empty": "A side has no visible character.",
    "long": "A side has more words than --longest-words.",
    "ratio": "One side has more than --ratio times as many words as the other side.",
    "identical": "Both sides are equal (--identical drop).",
    "duplicate": "The pair occurred before, in this corpus or in an earlier one.",
}
#: Words and single punctuation marks. They are similar to Moses' tokens, but found a hundred times faster.
WORD = re.compile(r"\w+|[^\w\s]")


class Kept(NamedTuple):
    """Hold a sentence pair that passed the cleaning.

    Args:
        texts: Both sides in NFC, with single spaces and without control characters.
        words: Number of words of each side.
        mended: Whether the texts differ from the original.
    """

    texts: tuple[str, str]
    words: tuple[int, int]
    mended: bool


def judge(options: Namespace, sides: tuple[bytes, bytes]) -> Kept | str:
    """Return the normalised pair, or the step that leaves it out.

    Args:
        options: The options of prepare_parallel.py; 0 words and a ratio of 0 mean no limit.
        sides: The lines of both languages.
    """
    try:
        originals = sides[0].decode("utf-8"), sides[1].decode("utf-8")
    except UnicodeDecodeError:
        return "encoding"
    if any("\ufffd" in text for text in originals):
        return "encoding"
    texts = tidy(originals[0]), tidy(originals[1])
    words = len(WORD.findall(texts[0])), len(WORD.findall(texts[1]))
    if not all(map(is_seen, texts)):
        return "empty"
    if options.longest_words and max(words) > options.longest_words:
        return "long"
    if options.ratio and max(words) > options.ratio * min(words):
        return "ratio"
    if options.identical == "drop" and texts[0] == texts[1]:
        return "identical"
    return Kept(texts, words, texts != originals)
