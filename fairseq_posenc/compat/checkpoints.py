"""Checkpoints are data: what may be in one, and what is said when something else is.

`torch.load(weights_only=True)` builds only what is on its allow-list. Whatever is added here must be unable
to run code when built from a file; nothing ever falls back to `weights_only=False`. What the configuration in a
checkpoint may name and say is in `checkpoint_names`.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import pickletools
import re
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from . import checkpoint_names
from .literals import evaluate_literals_only
from .patching import overlay, replace


class CheckpointError(RuntimeError):
    """A checkpoint that cannot be read; the message names the file and what to do."""


class UnsafeCheckpointError(CheckpointError):
    """A checkpoint that holds more than weights, numbers and harmless options; it was not loaded."""


def allowed_globals() -> list[Any]:
    """Return what fairseq saves beside what torch allows: options of old models, numpy numbers of metrics."""
    scalar = np.float64(0).__reduce__()[0]
    reconstruct = np.zeros(1).__reduce__()[0]
    named = [
        (function, f"{module}.multiarray.{name}")
        for function, name in ((scalar, "scalar"), (reconstruct, "_reconstruct"))
        for module in ("numpy._core", "numpy.core")  # as numpy 2 and numpy 1 write it
    ]
    numbers = [type(np.dtype(code)) for code in "?bhilqBHILQefdFD"]
    return [argparse.Namespace, np.dtype, np.ndarray, *dict.fromkeys(numbers), *named]


def mend() -> None:
    """Make fairseq's checkpoint loader explicit about `weights_only` and clear in its refusals.

    It covers checkpoint_utils.py:340 (train, generate, validate, hub) and :909 (EMA weights). torch itself
    gets the allow-list, so that a plain `torch.load` of such a checkpoint works too.
    """
    from fairseq import checkpoint_utils

    torch.serialization.add_safe_globals(allowed_globals())
    overlay(checkpoint_utils, "torch", load=safe_load)
    replace(checkpoint_utils, "load_checkpoint_to_cpu", _checked_again)
    evaluate_literals_only()


def _checked_again(original: Callable[..., Any], path: Any, *args: Any, **kwargs: Any) -> Any:
    """Check the configuration again after fairseq has converted old options, which can change names."""
    from omegaconf import DictConfig, OmegaConf

    state = original(path, *args, **kwargs)
    configuration = state.get("cfg")
    if isinstance(configuration, DictConfig):
        configuration = OmegaConf.to_container(configuration, resolve=False)
    _refuse_offence({"cfg": configuration}, path)
    return state


def safe_load(file: Any, map_location: Any = "cpu", **options: Any) -> Any:
    """Return what `torch.load` reads from a path or an open file, as data only.

    Raises:
        UnsafeCheckpointError: the file holds objects that could run code, or a configuration that could.
        CheckpointError: the file cannot be read.
    """
    if options.pop("weights_only", True) is not True:
        raise ValueError("checkpoints are loaded with weights_only=True only")
    torch.serialization.add_safe_globals(allowed_globals())
    try:
        state = torch.load(file, map_location=map_location, weights_only=True, **options)
    except (FileNotFoundError, IsADirectoryError, PermissionError, MemoryError):
        raise  # these name the file, or are not the file's fault
    except Exception as error:
        offending = _offending_global(str(error)) or _foreign_pickle(file, error)
        if offending is None:
            raise CheckpointError(_unreadable(file, error)) from error
        raise UnsafeCheckpointError(_refusal(file, offending)) from error
    _refuse_offence(state, file)
    return state


def load_model(file: Any) -> dict[str, Any]:
    """Return what `safe_load` reads of a checkpoint of fairseq's.

    Raises:
        CheckpointError: the file cannot be read, or holds no model.
    """
    state = safe_load(file)
    if not isinstance(state, dict) or not isinstance(state.get("model"), dict):
        raise CheckpointError(f"{file}: no fairseq checkpoint (it has no 'model')")
    return state


def settings_of(state: Mapping[str, Any], part: str) -> dict[str, Any]:
    """Return the options of a checkpoint's model or task: today's, or the flat ones of old checkpoints."""
    cfg = state.get("cfg")
    return as_dict(cfg[part] if cfg else state.get("args"))


def as_dict(settings: Any) -> dict[str, Any]:
    """Return a configuration, a dataclass or a namespace as a dictionary; nothing is an empty one."""
    if settings is None:
        return {}
    return dict(settings) if isinstance(settings, Mapping) else dict(vars(settings))


def _refuse_offence(state: Any, file: Any) -> None:
    if offence := checkpoint_names.offence(state):
        raise UnsafeCheckpointError(f"{_name(file)}: refused, because it holds {offence}.")


# The phrases of torch/_weights_only_unpickler.py and serialization.py: not on the list, never allowed, called
# or built though not on the list, a type of torch that takes an import, a program.
_OFFENCES = (
    r"Unsupported global: GLOBAL (\S+) was not",
    r"unsupported GLOBAL (\S+) whose module",
    r"reduce for unrecognized function (.+)",
    r"allowlisted via `add_safe_globals`,? but got (.+)",
    r"``(torch\.\S+)``.* must be imported to load",
    r"(TorchScript archives?)",
)


def _offending_global(message: str) -> str | None:
    found = (re.search(pattern, message) for pattern in _OFFENCES)
    return next((match.group(1).strip() for match in found if match), None)


def _foreign_pickle(file: Any, error: Exception) -> str | None:
    """Return the globals of a pickle that torch did not write, read from it without running anything.

    torch gives up at the first instruction that it never writes ('Unsupported operand'), before any name.
    """
    path = _name(file)
    if "Unsupported operand" not in str(error) or not os.path.isfile(path):
        return None
    names: list[str] = []
    words: list[str] = []
    with contextlib.suppress(ValueError, KeyError):  # no pickle to the end; what was read till there may tell
        for instruction, argument, _ in pickletools.genops(_pickle(path)):
            if instruction.name == "STACK_GLOBAL":
                names.append(".".join(words[-2:]))
            elif instruction.name in ("GLOBAL", "INST"):
                names.append(str(argument).replace(" ", "."))
            elif isinstance(argument, str):
                words.append(argument)
    return f"a foreign pickle with {', '.join(dict.fromkeys(names))}" if names else None


def _pickle(path: str) -> bytes:
    if not zipfile.is_zipfile(path):
        return Path(path).read_bytes()
    with zipfile.ZipFile(path) as archive:
        return archive.read(next((n for n in archive.namelist() if n.endswith("data.pkl")), "data.pkl"))


def _refusal(file: Any, offending: str) -> str:
    return (
        f"{_name(file)}: refused, because it holds {offending}. A checkpoint may hold weights, numbers, text "
        "and options, nothing that could run code. Where it comes from a stranger, do not use it; where you "
        "trust it, save it again in the program that wrote it, without that object."
    )


def _unreadable(file: Any, error: Exception) -> str:
    message = str(error).strip() or "it ends too early"
    told = re.search(r"WeightsUnpickler error:\s*(.+)", message)
    reason = told.group(1) if told else message.splitlines()[0]
    return (
        f"{_name(file)}: no readable checkpoint ({_size(file)}; {type(error).__name__}: {reason}). It may be "
        "cut off by a full disk or an interrupted copy: copy it again, or name an earlier one "
        "(checkpoint_best.pt, checkpointN.pt) where this one was named (--checkpoint, --path, --restore-file)."
    )


def _name(file: Any) -> str:
    if isinstance(file, (str, os.PathLike)):  # a Path too has a `name`, without its folder
        return os.fspath(file)
    return str(getattr(file, "name", "a checkpoint in memory"))


def _size(file: Any) -> str:
    path = _name(file)
    return f"{os.path.getsize(path):,} bytes" if os.path.isfile(path) else "size unknown"
