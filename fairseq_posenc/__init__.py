"""Use any position encoding in fairseq through one flag: `--user-dir fairseq_posenc --pos-enc NAME`.

The encodings need only torch: `import fairseq_posenc as pe` gives everything that your own model needs
(docs/python.md), and does not import fairseq. If fairseq is imported already, as it is when fairseq imports this
package for --user-dir, the import also registers the models, tasks, criterions and optimizers with fairseq. In other
programs, `import fairseq_posenc.models` does so (see compat/registration.py).
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .attention import KeyValueCache, SelfAttention
    from .encodings import Composition, StackShape, build, names
    from .hub import LanguageModel
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
    return getattr(import_module(f".{_MODULES[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})


def load(source: str | Path) -> LanguageModel:
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


class _Folders(list[str]):
    """Hold the `__path__` of this package, and register with fairseq when fairseq looks for --user-dir in it.

    If a program has imported this package before fairseq, fairseq imports nothing for --user-dir. It only asks whether
    the folder is in the `__path__` of the imported package (utils.py:500), which Python itself never asks.
    """

    def __contains__(self, folder: object) -> bool:
        if not _fairseq_is_imported():
            return super().__contains__(folder)
        _register()
        return bool(import_module(".compat.commands", __name__).is_this_copy(Path(str(folder))))


def _fairseq_is_imported() -> bool:
    return sys.modules.get("fairseq") is not None


def _register() -> None:
    from .compat.registration import register

    register()


__path__ = _Folders(__path__)
if _fairseq_is_imported():
    _register()
