"""Two ways to mend fairseq: replace a function, or overlay what one module sees of another."""

from __future__ import annotations

import functools
import logging
import types
from collections.abc import Callable
from typing import Any

_MARK = "_fairseq_posenc_mend"
_said: set[str] = set()


def say_once(logger: logging.Logger, message: str) -> None:
    """Log `message` the first time that it is said in this process."""
    if message not in _said:
        _said.add(message)
        logger.info(message)


def replace(owner: Any, name: str, mend: Callable[..., Any]) -> None:
    """Let calls of `owner.name` call `mend` with the original and their arguments, once.

    The original stays reachable as `__wrapped__`. `functools.wraps` also carries over function attributes, such as
    `import_user_module.memo`.
    """
    original = getattr(owner, name)
    if hasattr(original, _MARK):
        return

    @functools.wraps(original)
    def mended(*args: Any, **kwargs: Any) -> Any:
        return mend(original, *args, **kwargs)

    setattr(mended, _MARK, True)
    setattr(owner, name, mended)


class Overlay(types.ModuleType):
    """A module seen through a few replaced names; everything else is the module itself.

    Set as a global of one fairseq module, it changes what that module sees and nothing for anyone else.
    """

    def __init__(self, module: types.ModuleType, **names: Any) -> None:
        super().__init__(module.__name__)
        self.__dict__.update(names, __wrapped__=module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["__wrapped__"], name)


def overlay(owner: types.ModuleType, name: str, **names: Any) -> None:
    """Let the module `owner` see its global module `name` with `names` replaced, once."""
    module = getattr(owner, name)
    if not hasattr(module, "__wrapped__"):
        setattr(owner, name, Overlay(module, **names))
