"""Use any position encoding in fairseq through one flag: `--user-dir fairseq_posenc --pos-enc NAME`.

If fairseq is installed, importing this package registers the models, tasks, criterions and optimizers with it. The
package registers these classes itself, because fairseq's --user-dir imports `models/` only if the package was not
imported before. Registration therefore also works in spawned workers, with Hydra, and after a plain `import
fairseq_posenc`. The encodings themselves need only torch: `import fairseq_posenc as pe` gives everything that your own
model needs (docs/python.md).
"""

from __future__ import annotations

import importlib
import importlib.util
import logging
from typing import TYPE_CHECKING, Any

from .core.quiet import unchanged, without

if TYPE_CHECKING:
    from pathlib import Path

    from .attention import KeyValueCache, SelfAttention
    from .encodings import Composition, StackShape, build, names
    from .hub import CausalLM, MaskedLM
    from .positions import Positions
    from .stack import Norms, Stack

__all__ = [
    "Composition",
    "KeyValueCache",
    "Norms",
    "Positions",
    "SelfAttention",
    "Stack",
    "StackShape",
    "__version__",
    "build",
    "load",
    "names",
]
__version__ = "0.1.0"

#: The module of each name that is imported at its first use, so that commands that need no torch start at once.
_MODULES = {
    "Composition": "encodings",
    "KeyValueCache": "attention",
    "Norms": "stack",
    "Positions": "positions",
    "SelfAttention": "attention",
    "Stack": "stack",
    "StackShape": "encodings",
    "build": "encodings",
    "names": "encodings",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f".{_MODULES[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})


def load(source: str | Path) -> MaskedLM | CausalLM:
    """Load a masked language model or a language model in plain torch, in evaluation mode.

    `model(input_ids, attention_mask)` returns logits. `fairseq_posenc.hub.load` says which ids the model takes.

    Args:
        source: A folder written by `export-hf` or `import-hf`, a folder with Hugging Face's BERT, RoBERTa or GPT-2,
            or a fairseq checkpoint of a masked language model or a language model.
    Raises:
        CheckpointError: The source cannot be read. The error names the file and says what to do.
    """
    from .hub import load

    return load(source)


def _fairseq_works() -> bool:
    """Return whether fairseq can be imported. If fairseq is installed but its import fails, log the error."""
    if importlib.util.find_spec("fairseq") is None:
        return False
    # One task of fairseq asks every user for tensorboardX, which only that task needs.
    logging.getLogger("fairseq.tasks.text_to_speech").setLevel(logging.WARNING)
    try:
        # torch.jit.script warns since torch 2.14, and the import of fairseq calls it (models/model_utils.py:12).
        with unchanged(), without("`torch.jit.script` is deprecated", FutureWarning):
            importlib.import_module("fairseq")
    except Exception:
        text = "fairseq cannot be imported, so no models are registered with it. Run: python -m fairseq_posenc doctor"
        logging.getLogger(__name__).exception(text)
        return False
    return True


if _fairseq_works():
    from . import compat

    compat.apply()
    from . import criterions, models, optim, tasks  # noqa: F401
    from .generation import rouge_scorer  # noqa: F401
    from .models.misfits import name_misfits

    name_misfits()
