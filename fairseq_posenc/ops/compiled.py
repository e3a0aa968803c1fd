"""Compile formulas over all query-key pairs into loops that need no temporary tensor larger than the result.

Compiled loops are used on a CPU with a C++ compiler if the formula takes so many multiplications that compiling it
saves time. Without a compiler, `usable` logs a warning once, and the callers compute the formula in another way.
"""

from __future__ import annotations

import functools
import inspect
import logging
import os
import shutil
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.utils._python_dispatch import _get_current_dispatch_mode

logger = logging.getLogger(__name__)

#: Maximum number of compiled versions of one kernel, which torch's own limit allows for a process. Torch compiles a new
#: version, for example, for another encoding, another dtype or a size of 1. Beyond the limit, torch raises an error
#: because of fullgraph=True. Without fullgraph=True, torch would silently run the formula uncompiled and allocate a
#: vector for every pair.
VERSIONS = 256
_LIMIT: Any = {"recompile_limit": VERSIONS} if "recompile_limit" in inspect.signature(torch.compile).parameters else {}


def usable(products: int, least: int, device: torch.device) -> bool:
    """Return whether to use compiled loops.

    Compiled loops are used for at least `least` products, on a CPU with a working C++ compiler. Compiled loops are not
    used under a torch dispatch mode, for example one that counts operations, because torch.compile does not work under
    such a mode.
    """
    # Sizes are compared after `eagerly()`, so that an exported graph does not depend on the sizes of its example.
    return device.type == "cpu" and eagerly() and products >= least and _compiler_works()


def eagerly() -> bool:
    """Return whether torch runs operations eagerly.

    Torch does not run operations eagerly while it traces or transforms a function (vmap, forward gradients) or under a
    dispatch mode.
    """
    traced = torch.compiler.is_compiling() or torch.jit.is_tracing()
    return not (traced or _transformed()) and _get_current_dispatch_mode() is None


def _transformed() -> bool:
    """Return whether torch transforms a function (vmap, torch.func.grad, forward gradients)."""
    return torch._C._functorch.peek_interpreter_stack() is not None or forward_ad._current_level >= 0


def exporting() -> bool:
    """Return whether torch.export is tracing. Older versions of torch cannot tell torch.export from torch.compile.

    The flag is read directly, because `torch.compiler.is_exporting()` is always true in code that torch.compile of
    torch 2.11 traces.
    """
    flag = getattr(torch.compiler, "_is_exporting_flag", None)
    return torch.compiler.is_compiling() if flag is None else bool(flag)


def own_gradients() -> bool:
    """Return whether an autograd function may compute gradients by its own formula.

    torch.func, torch.export and torch.jit.trace need operations that torch can transform.
    """
    if torch.compiler.is_compiling():
        return not exporting()
    return not (torch.jit.is_tracing() or _transformed())


@functools.cache
def compiled(kernel: Callable[..., Any], *, backend: Any = "inductor") -> Callable[..., Any]:
    """Return a version of the function `kernel` for tensors of any size, which torch compiles at its first call."""
    if not _LIMIT:  # an older torch has only one limit for the whole process
        torch._dynamo.config.cache_size_limit = max(VERSIONS, torch._dynamo.config.cache_size_limit)
    return torch.compile(kernel, dynamic=True, fullgraph=True, backend=backend, **_LIMIT)


def compiler() -> str:
    """Return the path of the C++ compiler, or an empty text if there is none."""
    paths = (shutil.which(name) for name in (os.environ.get("CXX", ""), "g++", "clang++") if name)
    return next((path for path in paths if path), "")


@functools.cache
def _compiler_works() -> bool:
    """Return whether torch.compile works; find out once per process, by compiling a tiny function."""
    reason = ""
    if not compiler():
        reason = "there is no C++ compiler; install g++ or clang++, or set CXX"
    else:
        try:
            if not compiled(_probe)(torch.ones(4)):
                reason = "torch.compile is switched off, for example by TORCHDYNAMO_DISABLE"
        except Exception as error:  # noqa: BLE001 - callers work without torch.compile, whatever the error
            reason = f"torch.compile fails: {str(error).splitlines()[0] if str(error) else type(error).__name__}"
    if reason:
        logger.warning("torch.compile is not used, so the position encoding m3 is slower: %s", reason)
    return not reason


def _probe(x: Tensor) -> Tensor:
    """Return the sum of x if this function runs compiled, or 0 if torch.compile is switched off."""
    return x.sum() if torch.compiler.is_compiling() else torch.zeros(())
