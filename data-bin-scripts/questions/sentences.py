"""Find the sentence that contains an answer."""

from __future__ import annotations

from functools import lru_cache
from itertools import accumulate

from sentencex import segment

#: languages without spaces between words; their text is compared and tokenised by characters
BY_CHARACTERS = ("zh", "ja")


def around(context: str, start: int, end: int, language: str) -> tuple[int, int]:
    """Return the start and end offsets of the sentences that contain the characters from `start` to `end`."""
    bounds = _bounds(context, language)
    first = max(begin for begin, _ in bounds if begin <= start)
    last = next((stop for _, stop in bounds if stop >= end), len(context))
    text = context[first:last]
    return first + len(text) - len(text.lstrip()), first + len(text.rstrip())


@lru_cache(maxsize=64)  # the questions of a context are consecutive
def _bounds(context: str, language: str) -> list[tuple[int, int]]:
    sentences = list(segment(language, context))
    if "".join(sentences) != context:  # the splitter changed the text, so treat it as a single sentence
        return [(0, len(context))]
    ends = [*accumulate(map(len, sentences))]
    return [*zip([0, *ends[:-1]], ends, strict=True)]


def language_of(texts: list[str]) -> str:
    """Return `zh` if more than a quarter of the letters are Chinese, otherwise `en`."""
    letters = [letter for text in texts for letter in text if letter.isalpha()]
    chinese = sum("\u4e00" <= letter <= "\u9fff" for letter in letters)
    return "zh" if 4 * chinese > len(letters) else "en"
