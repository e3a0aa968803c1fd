"""Clean training pairs; a pair that is left out is counted under the first rule that it breaks."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from corpora.errors import CorpusError
from corpora.lines import is_seen, tidy

#: reasons to leave a pair out, by the name of the step
STEPS = {
    "encoding": "not UTF-8, or with U+FFFD, which stands for bytes that were none",
    "empty": "a side with nothing that can be seen",
    "long": "more words on a side than --longest-words",
    "ratio": "more than --ratio times the words of one side on the other",
    "identical": "the same text on both sides (--identical drop)",
    "language": "a side in another language, by py3langid (--language-id)",
    "duplicate": "a pair that came before, in this corpus or an earlier one",
}
#: words and single punctuation marks, similar to Moses' tokens, which take a hundred times as long
WORD = re.compile(r"\w+|[^\w\s]")
#: language identification (Lui and Baldwin 2012), whose package contains its model
PACKAGE = "py3langid"
Sides = tuple[bytes, bytes]


@dataclass(frozen=True)
class Rules:
    """The options of the cleaning.

    Args:
        longest_words: Maximum number of words of a side; 0: no limit.
        ratio: Maximum number of words of the longer side per word of the shorter one; 0: no limit.
        identical: Keep or drop pairs of equal sides.
        language_id: Leave out pairs in other languages.
    """

    longest_words: int
    ratio: float
    identical: str
    language_id: bool


class Kept(NamedTuple):
    """A pair that is kept.

    Args:
        texts: Both sides, normalised.
        words: Number of words of each side.
        mended: The normalised text differs from the original.
    """

    texts: tuple[str, str]
    words: tuple[int, int]
    mended: bool


class Cleaner:
    """Judge and normalise training pairs.

    Args:
        languages: Languages of the two sides.
    """

    def __init__(self, rules: Rules, languages: tuple[str, str]) -> None:
        self.rules, self.languages = rules, languages
        self._identify = identifier() if rules.language_id else None

    def judge(self, sides: Sides) -> Kept | str:
        """Return the pair in NFC, without control characters and with single spaces, or the step that drops it."""
        try:
            given = sides[0].decode("utf-8"), sides[1].decode("utf-8")
        except UnicodeDecodeError:
            return "encoding"
        if any("\ufffd" in text for text in given):
            return "encoding"
        texts = tidy(given[0]), tidy(given[1])
        words = len(WORD.findall(texts[0])), len(WORD.findall(texts[1]))
        return self._broken(texts, words) or Kept(texts, words, texts != given)

    def _broken(self, texts: tuple[str, str], words: tuple[int, int]) -> str | None:
        rules = self.rules
        if not all(map(is_seen, texts)):
            return "empty"
        if rules.longest_words and max(words) > rules.longest_words:
            return "long"
        if rules.ratio and max(words) > rules.ratio * min(words):
            return "ratio"
        if rules.identical == "drop" and texts[0] == texts[1]:
            return "identical"
        if self._identify and tuple(map(self._identify, texts)) != self.languages:
            return "language"
        return None


# --- language identification


def check_language(languages: tuple[str, str]) -> None:
    """Check that py3langid is installed and knows both languages.

    Raises:
        CorpusError: It is not installed, or does not know one of the languages.
    """
    if importlib.util.find_spec(PACKAGE) is None:
        raise CorpusError(
            f"--language-id: {PACKAGE} is not installed, and not part of the recipes' environment: pip install "
            f"{PACKAGE}, or leave the option out"
        )
    import py3langid

    known = {code for code, _ in py3langid.rank("language")}
    for one in languages:
        if one not in known:
            raise CorpusError(f"--language-id: {PACKAGE} does not know {one!r}; it knows {', '.join(sorted(known))}")


def identifier() -> Callable[[str], str]:
    """Return a function that identifies the language of a text as an ISO 639-1 code."""
    import py3langid

    def identify(text: str) -> str:
        found: str = py3langid.classify(text)[0]
        return found

    identify("language")  # load the model before processes are forked
    return identify
