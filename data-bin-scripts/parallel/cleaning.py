"""Clean training pairs; a pair that is left out is counted under the first rule that it breaks."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from corpora.errors import CorpusError
from corpora.lines import is_seen, tidy

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
#: Package for language identification (Lui and Baldwin 2012); it contains the model.
PACKAGE = "py3langid"
Sides = tuple[bytes, bytes]


@dataclass(frozen=True)
class Settings:
    """Hold the options that, together with the input files, determine the bytes of the result.

    Args:
        pair: The two languages, for example en-de.
        longest_words: Maximum number of words of a side; 0: no limit.
        ratio: Maximum number of words of the longer side per word of the shorter one; 0: no limit.
        identical: `keep` or `drop` pairs whose two sides are equal.
        duplicates: `keep` or `drop` duplicate pairs.
        language_id: Whether to leave out pairs that are not in the languages of --pair.
        limit: Maximum number of pairs to read from each corpus; 0: all.
    """

    longest_words: int
    ratio: float
    identical: str
    language_id: bool
    pair: str
    duplicates: str
    limit: int

    @property
    def languages(self) -> tuple[str, str]:
        source, target = self.pair.split("-")
        return source, target

    @property
    def steps(self) -> list[str]:
        """Return the cleaning steps that are enabled."""
        off = {"long": not self.longest_words, "ratio": not self.ratio, "language": not self.language_id}
        off |= {"identical": self.identical == "keep", "duplicate": self.duplicates == "keep"}
        return [step for step in STEPS if not off.get(step)]


class Kept(NamedTuple):
    """Hold a sentence pair that passed the cleaning.

    Args:
        texts: Both sides, normalised.
        words: Number of words of each side.
        mended: Whether the normalised text differs from the original.
    """

    texts: tuple[str, str]
    words: tuple[int, int]
    mended: bool


class Cleaner:
    """Normalise training pairs, and decide which pairs to keep."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._identify = identifier() if settings.language_id else None

    def judge(self, sides: Sides) -> Kept | str:
        """Return the pair in NFC with single spaces and no control characters, or the step that leaves it out."""
        try:
            originals = sides[0].decode("utf-8"), sides[1].decode("utf-8")
        except UnicodeDecodeError:
            return "encoding"
        if any("\ufffd" in text for text in originals):
            return "encoding"
        texts = tidy(originals[0]), tidy(originals[1])
        words = len(WORD.findall(texts[0])), len(WORD.findall(texts[1]))
        return self._broken_rule(texts, words) or Kept(texts, words, texts != originals)

    def _broken_rule(self, texts: tuple[str, str], words: tuple[int, int]) -> str | None:
        rules = self.settings
        if not all(map(is_seen, texts)):
            return "empty"
        if rules.longest_words and max(words) > rules.longest_words:
            return "long"
        if rules.ratio and max(words) > rules.ratio * min(words):
            return "ratio"
        if rules.identical == "drop" and texts[0] == texts[1]:
            return "identical"
        if self._identify and tuple(map(self._identify, texts)) != rules.languages:
            return "language"
        return None


# --- language identification


def check_language(languages: tuple[str, str]) -> None:
    """Check that py3langid is installed and supports both languages.

    Raises:
        CorpusError: The package is not installed, or does not support one of the languages.
    """
    if importlib.util.find_spec(PACKAGE) is None:
        cure = f"Install it with `pip install {PACKAGE}`, or leave out --language-id."
        raise CorpusError(f"--language-id: the package {PACKAGE} is not installed. {cure}")
    import py3langid

    known = {code for code, _ in py3langid.rank("language")}
    for language in languages:
        if language not in known:
            what = f"{PACKAGE} does not know {language!r}; it knows {', '.join(sorted(known))}"
            raise CorpusError(f"--language-id: {what}. Leave out --language-id.")


def identifier() -> Callable[[str], str]:
    """Return a function that identifies the language of a text as an ISO 639-1 code."""
    import py3langid

    def identify(text: str) -> str:
        language: str = py3langid.classify(text)[0]
        return language

    identify("language")  # load the model before processes are forked
    return identify
