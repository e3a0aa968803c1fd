"""Register the classes of this package with fairseq, and fix fairseq's faults.

Importing the package for its torch API does neither, and does not import fairseq. `register` is called when a program
needs fairseq's side of the package: fairseq loads it for --user-dir, a class of `models/`, `tasks/`, `criterions/` or
`optim/` is imported (also by unpickling), or the program has imported fairseq before this package.
"""

from __future__ import annotations

from importlib import import_module

from ..core.quiet import importing_fairseq
from . import apply

#: Modules whose import registers classes with fairseq. They are named in text, because they import this file.
_ROOMS = ("criterions", "models", "optim", "tasks", "generation.rouge_scorer")

_begun = False


def register() -> None:
    """Import fairseq, fix its faults and register this package's classes with it; a second call has no effect.

    Raises:
        ImportError: fairseq is not installed, or its import fails.
    """
    global _begun
    if _begun:  # also while the first call imports the rooms, which call this function
        return
    _import_fairseq()
    _begun = True
    try:
        apply()
        for name in _ROOMS:
            import_module(f"..{name}", __package__)
        import_module("..models.misfits", __package__).name_misfits()
    except BaseException:
        _begun = False
        raise


def _import_fairseq() -> None:
    try:
        with importing_fairseq():
            import fairseq  # noqa: F401
    except Exception as error:
        raise ImportError(
            f"fairseq cannot be imported ({type(error).__name__}: {error}). Run: python -m fairseq_posenc doctor"
        ) from error
