"""Is NVIDIA apex there, and will fairseq use it? See docs/apex.md.

fairseq decides by import alone (modules/layer_norm.py, optim/fused_adam.py) and looks for ImportError only,
so three things can be wrong: another project named apex (the one that PyPI has), an apex without its compiled
kernels (imports, then fails when the first model is built on a GPU), an apex that raises something else.
"""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import sys

from .report import Check
from .stack import import_error, installed

BUILD = "docs/apex.md says how to build it"


@dataclasses.dataclass(frozen=True)
class Apex:
    """What was found. `error` is what importing raised when that was not an ImportError."""

    present: bool = False
    version: str | None = None
    error: str = ""
    is_nvidia: bool = False
    layer_norm: bool = False
    adam: bool = False


def probe() -> Apex:
    """Looks for what fairseq would import, by importing it."""
    if importlib.util.find_spec("apex") is None:
        return Apex()
    error = import_error("apex.normalization")
    is_nvidia = not error and hasattr(sys.modules["apex.normalization"], "FusedLayerNorm")
    return Apex(
        present=True,
        version=installed("apex"),
        error="" if error.startswith(("ImportError", "ModuleNotFoundError")) else error,
        is_nvidia=is_nvidia,
        # FusedLayerNorm imports its kernel when the first module is made, not before.
        layer_norm=is_nvidia and not import_error("fused_layer_norm_cuda"),
        adam=has_fused_adam(),
    )


def has_fused_adam() -> bool:
    """The same question as fairseq's get_fused_adam_class, which cannot be asked when fairseq is broken."""
    if not import_error("fused_adam_cuda"):
        return True
    if import_error("apex.optimizers") or import_error("apex.multi_tensor_apply"):
        return False
    applier = getattr(sys.modules["apex.multi_tensor_apply"], "multi_tensor_applier", None)
    return hasattr(sys.modules["apex.optimizers"], "FusedAdam") and getattr(applier, "available", False)


def check_apex(apex: Apex, gpu: bool) -> Check:
    """Optional: its absence is no fault. `gpu`: torch can use one, without which fairseq never uses apex."""
    if not apex.present:
        return Check("apex", "ok", "not installed (optional, speeds up training on NVIDIA GPUs)")
    name = f"apex {apex.version}" if apex.version else "apex (no version)"
    if apex.error:
        mend = "pip uninstall apex: fairseq itself cannot be imported beside it"
        return Check("apex", "fail", f"{name} raises {apex.error}", mend)
    if not apex.is_nvidia:
        mend = f"pip uninstall apex: the one on PyPI is another project; {BUILD}"
        return Check("apex", "warn", f"{name} is not NVIDIA's apex: no FusedLayerNorm", mend)
    if not apex.layer_norm:
        found = f"{name} without its CUDA kernels: fairseq models fail to build on a GPU"
        return Check("apex", "fail" if gpu else "warn", found, f"pip uninstall apex, or build it whole: {BUILD}")
    used = "FusedLayerNorm and FusedAdam" if apex.adam else "FusedLayerNorm (no FusedAdam)"
    return Check("apex", "ok", f"{name}: {used}, {'used' if gpu else 'unused without a GPU'} by fairseq")
