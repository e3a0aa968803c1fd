"""Check whether NVIDIA's apex is installed, and whether fairseq will use it. See docs/installation.md.

fairseq uses apex if it can import it (in modules/layer_norm.py and optim/fused_adam.py), and catches only ImportError.
An installed apex can cause errors for three reasons. The installed apex may be another project, such as the one on
PyPI. Apex may lack its compiled kernels: then it can be imported, but fails when the first model is built on a GPU. The
import of apex may raise an error that is not an ImportError.
"""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import sys

from .report import Check
from .stack import import_error, installed

BUILD = "docs/installation.md says how to build NVIDIA's apex"


@dataclasses.dataclass(frozen=True)
class Apex:
    """Hold what is known about the installed apex.

    Args:
        error: Error that importing apex raised; empty if there was none or if it was an ImportError.
        is_nvidia: Whether it is NVIDIA's apex.
        layer_norm: Whether fairseq can use FusedLayerNorm.
    """

    present: bool = False
    version: str | None = None
    error: str = ""
    is_nvidia: bool = False
    layer_norm: bool = False


def probe() -> Apex:
    """Import the parts of apex that fairseq uses, and return which parts work."""
    if importlib.util.find_spec("apex") is None:
        return Apex()
    error = import_error("apex.normalization")
    is_nvidia = not error and hasattr(sys.modules["apex.normalization"], "FusedLayerNorm")
    return Apex(
        present=True,
        version=installed("apex"),
        error="" if error.startswith(("ImportError", "ModuleNotFoundError")) else error,
        is_nvidia=is_nvidia,
        # FusedLayerNorm imports its kernel only when the first module is created.
        layer_norm=is_nvidia and not import_error("fused_layer_norm_cuda"),
    )


def check_apex(apex: Apex, gpu: bool) -> Check:
    """Check apex, which is optional and may be absent.

    Args:
        apex: What is known about the installed apex.
        gpu: Whether torch can use a GPU. Without a GPU, fairseq never uses apex.
    """
    if not apex.present:
        return Check("apex", "ok", "not installed (it is optional, and speeds up training on NVIDIA GPUs)")
    name = f"apex {apex.version}" if apex.version else "apex (no version)"
    if apex.error:
        mend = "run pip uninstall apex, because fairseq cannot be imported while this apex is installed"
        return Check("apex", "fail", f"importing {name} raises {apex.error}", mend)
    if not apex.is_nvidia:
        mend = f"run pip uninstall apex, because the apex on PyPI is another project; {BUILD}"
        return Check("apex", "warn", f"{name} is not NVIDIA's apex: it has no FusedLayerNorm", mend)
    if not apex.layer_norm:
        state = f"{name} has no CUDA kernels, so that fairseq cannot build models on a GPU"
        return Check("apex", "fail" if gpu else "warn", state, f"run pip uninstall apex, or rebuild it: {BUILD}")
    return Check("apex", "ok", f"{name}: fairseq uses FusedLayerNorm{'' if gpu else ', but only on a GPU'}")
