"""Clean training pairs; a pair that is left out is counted under the first rule that it breaks."""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Callable
from typing import NamedTuple

from corpora.lines import is_seen, tidy
from shared import CorpusError

#: Reasons to leave a pair out, by the name of the step.
STEPS = {
    "encoding": "A side is not UTF-8, or contains the replacement character U+FFFD.",
    "empty": "A side has no visible character.",
    "long": "A side has more words than --longest-words.",
    "ratio": "One side has more than --ratio times as many words as the other side.",
    "identical": "Both sides are equal (--identical drop).",
    "language": "According to py3langid (--language-id), a side is not in the language that --pair names.",
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


def judge(options: Namespace, identify: Callable[[str], str] | None, sides: tuple[bytes, bytes]) -> Kept | str:
    """Return the normalised pair, or the step that leaves it out.

    Args:
        options: The options of prepare_parallel.py; 0 words and a ratio of 0 mean no limit.
        identify: Function that identifies the language of a text (None: the languages are not checked).
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
    if identify and tuple(map(identify, texts)) != options.pair:
        return "language"
    return Kept(texts, words, texts != originals)


def identifier(languages: tuple[str, str]) -> Callable[[str], str]:
    """Return a function that identifies the language of a text (Lui and Baldwin 2012) as an ISO 639-1 code.

    Raises:
        CorpusError: py3langid is not installed, or does not know one of the languages.
    """
    try:
        import py3langid
    except ImportError:
        cure = "Install it with `pip install py3langid`, or leave out --language-id."
        raise CorpusError(f"--language-id: the package py3langid is not installed. {cure}") from None
    known = {code for code, _ in py3langid.rank("language")}  # loads the model before processes are forked
    if unknown := {*languages} - known:
        raise CorpusError(f"--language-id: py3langid does not know {', '.join(sorted(unknown))}. Leave it out.")
    return lambda text: str(py3langid.classify(text)[0])
