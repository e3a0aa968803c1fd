"""The sentence of an answer."""

from __future__ import annotations

from functools import lru_cache
from itertools import accumulate

from sentencex import segment

#: languages without spaces between words are compared and cut by characters
BY_CHARACTERS = ("zh", "ja")


def around(context: str, start: int, end: int, language: str) -> tuple[int, int]:
    """Where the sentence begins and ends that holds characters `start` to `end`; of several, the first to the last."""
    bounds = _bounds(context, language)
    first = max(begin for begin, _ in bounds if begin <= start)
    last = next((stop for _, stop in bounds if stop >= end), len(context))
    text = context[first:last]
    return first + len(text) - len(text.lstrip()), first + len(text.rstrip())


@lru_cache(maxsize=64)  # the questions of a context follow each other
def _bounds(context: str, language: str) -> list[tuple[int, int]]:
    found = list(segment(language, context))
    if "".join(found) != context:  # where it changes what it cuts: one sentence
        return [(0, len(context))]
    ends = [*accumulate(map(len, found))]
    return [*zip([0, *ends[:-1]], ends, strict=True)]


def language_of(texts: list[str]) -> str:
    """`zh` where a fourth of the letters is Chinese, as a character is more than a letter; else `en`."""
    letters = [letter for text in texts for letter in text if letter.isalpha()]
    chinese = sum("\u4e00" <= letter <= "\u9fff" for letter in letters)
    return "zh" if 4 * chinese > len(letters) else "en"
