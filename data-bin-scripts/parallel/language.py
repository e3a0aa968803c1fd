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
    known = _model().nb_classes
    for one in languages:
        if one not in known:
            raise CorpusError(f"--language-id: {PACKAGE} does not know {one!r}; it knows {', '.join(sorted(known))}")


def identifier() -> Callable[[str], str]:
    """The ISO 639-1 code of a text, of all that it knows."""
    model = _model()

    def identify(text: str) -> str:
        found: str = model.classify(text)[0]
        return found

    return identify


def _model():  # type: ignore[no-untyped-def]  # a class of a package that may not be there
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_pickled_model(MODEL_FILE)
