"""Which language a text is in, where it is asked for: by py3langid (Lui and Baldwin 2012), which brings its model."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable

from corpora.errors import CorpusError

PACKAGE = "py3langid"


def check(languages: tuple[str, str]) -> None:
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
    """The ISO 639-1 code of a text, of all that it knows."""
    import py3langid

    def identify(text: str) -> str:
        found: str = py3langid.classify(text)[0]
        return found

    identify("language")  # loads its model, before processes are forked
    return identify
