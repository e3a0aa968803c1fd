"""Load checkpoints as data only, and explain why a file was refused.

`torch.load(weights_only=True)` builds only objects whose types are on its allow-list. Building a type that this file
adds to the allow-list must never run code. No function of this package loads a file with `weights_only=False`.
`checkpoint_names` checks the configuration in a checkpoint.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import pickletools
import re
import shlex
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ..core.refusal import RefusedError
from . import checkpoint_names, checkpoint_parts, checksums, older_options
from .literals import evaluate_literals_only
from .patching import overlay, replace, say_once

logger = logging.getLogger(__name__)


class CheckpointError(RefusedError, RuntimeError):
    """Raised if a checkpoint cannot be used; the message names the file and says what to do."""


class UnsafeCheckpointError(CheckpointError):
    """Raised if a checkpoint is refused, because it contains more than weights, numbers and harmless options."""


def allowed_globals() -> list[Any]:
    """Return the types that fairseq saves but torch does not allow: Namespace (old options) and numpy's types."""
    scalar = np.float64(0).__reduce__()[0]
    reconstruct = np.zeros(1).__reduce__()[0]
    named = [
        (function, f"{module}.multiarray.{name}")
        for function, name in ((scalar, "scalar"), (reconstruct, "_reconstruct"))
        for module in ("numpy._core", "numpy.core")  # numpy 2, numpy 1
    ]
    numbers = [type(np.dtype(code)) for code in "?bhilqBHILQefdFD"]
    return [argparse.Namespace, np.dtype, np.ndarray, *dict.fromkeys(numbers), *named]


def mend() -> None:
    """Make fairseq load checkpoints with `weights_only=True`, and explain each refusal.

    fairseq loads checkpoints in checkpoint_utils.py:340 (train, generate, validate, hub) and :909 (EMA weights). The
    types are also added to torch's own allow-list, so that a plain `torch.load` of such a checkpoint works.
    """
    from fairseq import checkpoint_utils

    torch.serialization.add_safe_globals(allowed_globals())
    overlay(checkpoint_utils, "torch", load=_load_for_fairseq)
    replace(checkpoint_utils, "load_checkpoint_to_cpu", _checked_again)
    evaluate_literals_only()


def _checked_again(original: Callable[..., Any], path: Any, *args: Any, **kwargs: Any) -> Any:
    """Check the configuration again after fairseq has converted old options, which may change the names in it."""
    from omegaconf import DictConfig, OmegaConf

    state = original(path, *args, **kwargs)
    configuration = state.get("cfg")
    if isinstance(configuration, DictConfig):
        configuration = OmegaConf.to_container(configuration, resolve=False)
    _refuse_offence({"cfg": configuration}, path)
    return state


def _load_for_fairseq(file: Any, map_location: Any = "cpu", **options: Any) -> Any:
    """Load a checkpoint with `safe_load`, and raise CheckpointError if fairseq could not read its parts."""
    state = safe_load(file, map_location, **options)
    if problem := checkpoint_parts.problem(state):
        raise CheckpointError(
            f"{_name(file)}: this is not a checkpoint of fairseq-train, because {problem}. Give a file that "
            "fairseq-train wrote."
        )
    return state


def safe_load(file: Any, map_location: Any = "cpu", **options: Any) -> Any:
    """Load a checkpoint from a path or an open file with `torch.load`, without running any code in the file.

    The checksums are checked first. With `mmap=True`, the tensors are not checked, because they may never be read.

    Raises:
        UnsafeCheckpointError: The file contains objects or a configuration that could run code.
        CheckpointError: The file cannot be read, or does not match its checksums.
    """
    if options.pop("weights_only", True) is not True:
        raise ValueError(
            "weights_only: checkpoints can only be loaded with weights_only=True. Leave out the argument weights_only."
        )
    torch.serialization.add_safe_globals(allowed_globals())
    try:
        has_checksums = checksums.check(file, weights=not options.get("mmap"))
        if not has_checksums:
            options.pop("mmap", None)  # files in the old format cannot be memory-mapped
        state = torch.load(file, map_location=map_location, weights_only=True, **options)
    except (FileNotFoundError, IsADirectoryError, PermissionError, MemoryError):
        raise  # these errors name the file or have another cause
    except Exception as error:
        offending = _offending_global(str(error)) or _foreign_pickle(file, error)
        if offending is None:
            raise CheckpointError(_unreadable(file, error)) from error
        raise UnsafeCheckpointError(_refusal(file, offending)) from error
    _refuse_offence(state, file)
    older_options.rename(state)
    if not has_checksums:
        text = (
            "the file has no checksums, so damage to its weights cannot be noticed. Compare the file with its source."
        )
        say_once(logger, f"{_name(file)}: {text}")
    return state


def load_model(file: Any) -> dict[str, Any]:
    """Load a fairseq checkpoint with `safe_load`.

    Raises:
        CheckpointError: The file cannot be read, or contains no model.
    """
    state = safe_load(file)
    if not isinstance(state, dict) or not isinstance(state.get("model"), dict):
        raise CheckpointError(
            f"{file}: this is not a fairseq checkpoint, because it has no 'model'. Give a checkpoint of fairseq-train."
        )
    return state


def settings_of(state: Mapping[str, Any], part: str) -> dict[str, Any]:
    """Return the options of a checkpoint's part `model` or `task`; for an old checkpoint, return all its options."""
    cfg = state.get("cfg")
    return as_dict(cfg[part] if cfg else state.get("args"))


def as_dict(settings: Any) -> dict[str, Any]:
    """Convert a configuration, a dataclass or a namespace to a dictionary, and None to an empty dictionary."""
    if settings is None:
        return {}
    return dict(settings) if isinstance(settings, Mapping) else dict(vars(settings))


def _refuse_offence(state: Any, file: Any) -> None:
    if offence := checkpoint_names.offence(state):
        raise UnsafeCheckpointError(f"{_name(file)}: the file is refused, because it contains {offence}.")


# Error messages of torch/_weights_only_unpickler.py and serialization.py, in this order: an object is not on the list;
# it is never allowed; it is called although not on the list; it is built although not on the list; a type of torch
# needs an import; the file is a program.
_OFFENCES = (
    r"Unsupported global: GLOBAL (\S+) was not",
    r"unsupported GLOBAL (\S+) whose module",
    r"reduce for unrecognized function (.+)",
    r"allowlisted via `add_safe_globals`,? but got (.+)",
    r"``(torch\.\S+)``.* must be imported to load",
    r"(TorchScript archives?)",
)


def _offending_global(message: str) -> str | None:
    matches = (re.search(pattern, message) for pattern in _OFFENCES)
    return next((match.group(1).strip() for match in matches if match), None)


def _foreign_pickle(file: Any, error: Exception) -> str | None:
    """Return which functions and classes are named in a pickle that torch did not write, without running the pickle.

    torch.load itself does not report these names: it stops with 'Unsupported operand' at the first pickle instruction
    that torch.save never writes, before it reads any name.
    """
    path = _name(file)
    if "Unsupported operand" not in str(error) or not os.path.isfile(path):
        return None
    names: list[str] = []
    words: list[str] = []
    with contextlib.suppress(ValueError, KeyError):  # a truncated pickle may still contain names
        for instruction, argument, _ in pickletools.genops(_pickle(path)):
            if instruction.name == "STACK_GLOBAL":
                names.append(".".join(words[-2:]))
            elif instruction.name in ("GLOBAL", "INST"):
                names.append(str(argument).replace(" ", "."))
            elif isinstance(argument, str):
                words.append(argument)
    return f"a pickle that torch did not write, with {', '.join(dict.fromkeys(names))}" if names else None


def _pickle(path: str) -> bytes:
    if not zipfile.is_zipfile(path):
        return Path(path).read_bytes()
    with zipfile.ZipFile(path) as archive:
        return archive.read(next((n for n in archive.namelist() if n.endswith("data.pkl")), "data.pkl"))


def _refusal(file: Any, offending: str) -> str:
    return (
        f"{_name(file)}: the file is refused, because it contains {offending}. A checkpoint may contain weights, "
        "numbers, text and options, but nothing that could run code. Do not use a file whose source you do not trust. "
        "If you trust the file, save it again without that object, with the program that wrote it."
    )


def _unreadable(file: Any, error: Exception) -> str:
    message = str(error).strip() or "it ends too early"
    match = re.search(r"WeightsUnpickler error:\s*(.+)", message)
    reason = match.group(1) if match else message.splitlines()[0]
    if not isinstance(error, checksums.DamagedError):
        reason = f"{type(error).__name__}: {reason}"
    return (
        f"{_name(file)}: the checkpoint cannot be read ({_size(file)}; {reason}). The file may be incomplete or "
        f"damaged because of a full disk, a failing disk or an interrupted copy. {_cure(Path(_name(file)))}"
    )


def _cure(damaged: Path) -> str:
    """Return what to do about a file that cannot be read; name the newest undamaged checkpoint beside it."""
    flags = "--checkpoint, --path or --restore-file"
    other = checksums.newest_undamaged(damaged.parent, besides=damaged) if damaged.is_file() else None
    if other is None:
        named = "such as checkpoint_best.pt or checkpointN.pt"
        return f"Copy the file again, or give another checkpoint, {named}, to {flags}."
    copy = f"cp {shlex.quote(str(other))} {shlex.quote(str(damaged))}"
    return (
        f"The newest undamaged checkpoint in this folder is {other}. Give this checkpoint to {flags}. To continue the "
        f"training from this checkpoint, give --restore-previous, or run: {copy}"
    )


def _name(file: Any) -> str:
    if isinstance(file, (str, os.PathLike)):  # a Path also has a `name`, which lacks the folder
        return os.fspath(file)
    return str(getattr(file, "name", "a checkpoint in memory"))


def _size(file: Any) -> str:
    path = _name(file)
    return f"{os.path.getsize(path):,} bytes" if os.path.isfile(path) else "size unknown"
