"""Write hints for misspelt names and vocabulary sizes, and escape characters that would control the user's terminal.

This file imports the standard library only: recipes and data scripts load it without the package, which needs torch.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping


def suggestion(
    word: str, known: Iterable[str], prefix: str = "", titles: Mapping[str, str] | None = None, cutoff: float = 0.5
) -> str:
    """Return a hint such as `; did you mean --seed?`, or an empty text if no known name resembles the word.

    Args:
        word: The misspelt name.
        known: The known names.
        prefix: Text to write before each name of the hint, for example `--`.
        titles: Known names by their titles, with which the word is compared, too.
        cutoff: How much a name must resemble the word, from 0 to 1.
    """
    names = {text.lower(): name for text, name in (titles or {}).items()} | {name.lower(): name for name in known}
    near = difflib.get_close_matches(word.lower(), names, n=1, cutoff=cutoff)
    return f"; did you mean {prefix}{names[near[0]]}?" if near else ""


def nearest(word: str, known: Iterable[str], prefix: str = "") -> str:
    """Return the `suggestion`, or a list such as `; choose from: --lr, --seed` if no known name resembles the word."""
    names = sorted(known)
    return suggestion(word, names, prefix) or f"; choose from: {', '.join(prefix + name for name in names)}"


def visible(text: object) -> str:
    """Return a text with visible escapes in place of characters that control a terminal, such as `\\x1b` for ESC.

    Names of files, results and other people's data may hold such characters, which could hide or forge lines of a
    message. Line ends and tabs stay.
    """
    shown = (c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode("ascii") for c in str(text))
    return "".join(shown)


def vocabulary_problem(error: str) -> str:
    """Return a sentence that says what is wrong with the size of a vocabulary.

    Args:
        error: Error message of SentencePiece, which quotes its source code in C++.
    """
    if match := re.search(r"required_chars\. \d+ vs (\d+)", error):
        return f"the characters of the text and the special symbols need more. Give at least --vocabulary {match[1]}."
    if match := re.search(r"set it to a value <= (\d+)", error):
        return f"the text is too short. Give at most --vocabulary {match[1]}."
    if "insert_id(" in error:
        return "the special symbols alone need more. Give a larger --vocabulary."
    return f"SentencePiece cannot learn it ({' '.join(error.split())}). Check the text."
