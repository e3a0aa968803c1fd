"""Loops that torch.compile makes of a formula: one pass over the pairs, and no tensor larger than what goes in or out.

Where a CPU has enough of them to do, and a C++ compiler; without one `usable` says so once, and what asks takes another
way.
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

#: versions of a kernel, as a size of 1 or another dtype makes them. Beyond that torch raises, as the same without
#: compiling would silently take a tensor the size of all pairs' vectors
_VERSIONS: Any = {"recompile_limit": 64} if "recompile_limit" in inspect.signature(torch.compile).parameters else {}


def usable(products: int, least: int, device: torch.device) -> bool:
    """Whether compiled loops serve: `least` products or more, as a call costs too, on a CPU with a compiler.

    Not under a mode that looks at each operation, such as a counter of them: torch compiles nothing there.
    """
    return products >= least and device.type == "cpu" and eagerly() and _compiler_works()


def eagerly() -> bool:
    """Whether operations run one by one, unseen: not traced, not transformed (vmap, forward gradients), not watched."""
    traced = torch.compiler.is_compiling() or torch.jit.is_tracing()
    transformed = torch._C._functorch.peek_interpreter_stack() is not None or forward_ad._current_level >= 0
    return not (traced or transformed) and _get_current_dispatch_mode() is None


@functools.cache
def compiled(kernel: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Return the compiled kernel, for all shapes; it is compiled at its first call."""
    if not _VERSIONS:  # an older torch has a limit for the whole process only
        torch._dynamo.config.cache_size_limit = max(64, torch._dynamo.config.cache_size_limit)
    return torch.compile(kernel, dynamic=True, fullgraph=True, **_VERSIONS)


def compiler() -> str:
    """Return the path of the C++ compiler; empty where there is none."""
    paths = (shutil.which(name) for name in (os.environ.get("CXX", ""), "g++", "clang++") if name)
    return next((path for path in paths if path), "")


@functools.cache
def _compiler_works() -> bool:
    """Return whether a kernel of a few numbers can be compiled; this is tried once."""
    reason = ""
    if not compiler():
        reason = "there is no C++ compiler (g++ or clang++, or set CXX)"
    else:
        try:
            if not compiled(_probe)(torch.ones(4)):
                reason = "torch.compile is switched off (TORCHDYNAMO_DISABLE or the like)"
        except Exception as error:  # noqa: BLE001 - whatever stops torch.compile on this machine, the other way works
            reason = f"torch.compile fails: {str(error).splitlines()[0] if str(error) else type(error).__name__}"
    if reason:
        logger.warning("products of a vector a pair are made without compiled loops, which is slower: %s", reason)
    return not reason


def _probe(x: Tensor) -> Tensor:
    """Return 0 unless this runs compiled: torch.compile may be told to do nothing."""
    return x.sum() if torch.compiler.is_compiling() else torch.zeros(())
