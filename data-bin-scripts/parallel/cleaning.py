"""What a pair of training must be; one that is left out is counted by the first rule that it breaks."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from corpora.errors import CorpusError
from corpora.lines import is_seen, tidy

#: what is left out, by the name of the step
STEPS = {
    "encoding": "not UTF-8, or with U+FFFD, which stands for bytes that were none",
    "empty": "a side with nothing that can be seen",
    "long": "more words on a side than --longest-words",
    "ratio": "more than --ratio times the words of one side on the other",
    "identical": "the same text on both sides (--identical drop)",
    "language": "a side in another language, by py3langid (--language-id)",
    "duplicate": "a pair that came before, in this corpus or an earlier one",
}
#: words and single marks: near to Moses' tokens, which take a hundred times as long
WORD = re.compile(r"\w+|[^\w\s]")
#: tells languages apart (Lui and Baldwin 2012), and brings its model
PACKAGE = "py3langid"
Sides = tuple[bytes, bytes]


@dataclass(frozen=True)
class Rules:
    """longest_words: of a side. ratio: of the longer side's words to the shorter one's. 0: any."""

    longest_words: int
    ratio: float
    identical: str
    language_id: bool


class Kept(NamedTuple):
    """mended: the text is not quite the one that was given."""

    texts: tuple[str, str]
    words: tuple[int, int]
    mended: bool


class Cleaner:
    """Args:
    languages: of the two sides.
    """

    def __init__(self, rules: Rules, languages: tuple[str, str]) -> None:
        self.rules, self.languages = rules, languages
        self._identify = identifier() if rules.language_id else None

    def judge(self, sides: Sides) -> Kept | str:
        """Return the pair as it is kept (NFC, no control characters, single spaces), or the step that leaves it out."""
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


# --- languages


def check_language(languages: tuple[str, str]) -> None:
    """Raises:
    CorpusError: it is not installed, or does not know one of the languages.
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
    """Return a function that names the language of a text by its ISO 639-1 code."""
    import py3langid

    def identify(text: str) -> str:
        found: str = py3langid.classify(text)[0]
        return found

    identify("language")  # loads its model, before processes are forked
    return identify
