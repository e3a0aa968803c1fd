"""Patch fairseq in two ways: replace a function, or change names of a module for one of the modules that import it."""

from __future__ import annotations

import functools
import logging
import sys
import types
from collections.abc import Callable
from typing import Any

_MARK = "_fairseq_posenc_mend"
_said: set[str] = set()


def say_once(logger: logging.Logger, message: str) -> None:
    """Log `message` unless this process has already logged it."""
    if message not in _said:
        _said.add(message)
        logger.info(message)


def replace(owner: Any, name: str, mend: Callable[..., Any]) -> None:
    """Replace the function `owner.name` by a function that calls `mend` with the original function and the arguments.

    A second call with the same `mend` has no effect. After a call with another `mend`, the later `mend` runs first. The
    replaced function stays available as `__wrapped__`. `functools.wraps` also copies attributes of the function, such
    as `import_user_module.memo`.
    """
    original = getattr(owner, name)
    mends = getattr(original, _MARK, ())
    own_name = f"{mend.__module__}.{mend.__qualname__}"  # a module that is imported anew has other functions
    if own_name in mends:
        return

    @functools.wraps(original)
    def mended(*args: Any, **kwargs: Any) -> Any:
        return mend(original, *args, **kwargs)

    setattr(mended, _MARK, (*mends, own_name))
    setattr(owner, name, mended)


def running(name: str) -> types.ModuleType | None:
    """Return the module `name`, such as fairseq_cli.generate, if this process runs it as a command, otherwise None."""
    cli_main = getattr(sys.modules["__main__"], "cli_main", None)
    module = sys.modules.get(getattr(cli_main, "__module__", ""))
    spec = getattr(module, "__spec__", None)
    return module if spec is not None and spec.name == name else None


def overlay(owner: types.ModuleType, name: str, **names: Any) -> None:
    """Replace `names` in the module that `owner` imports as `name`, so that no other module sees the replaced names."""
    setattr(owner, name, types.SimpleNamespace(**{**vars(getattr(owner, name)), **names}))
