"""Load fairseq's checkpoints as data, so that they run no code, and notice damage to them.

`torch.load(weights_only=True)` builds only objects whose types are on its allow-list. Building a type that this file
adds to the allow-list must never run code. No function of this package loads a file with `weights_only=False`.
`literals` keeps fairseq from running the options in a checkpoint as code.

torch.save writes zip archives, which have a CRC-32 of each part. torch.load ignores these checksums, so this file
compares them. Files in the old format have no checksums.
"""

from __future__ import annotations

import argparse
import logging
import os
import pickle
import re
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ..core.refusal import InputError, RefusedError
from . import older_options
from .patching import overlay, replace, say_once

logger = logging.getLogger(__name__)

_MAGIC = b"PK\x03\x04"  # the first bytes by which torch.load recognises a zip archive
_WEIGHTS = re.compile(r"/data/\d+$")  # names of the parts that hold tensors
_CHUNK = 1 << 20  # bytes
_REASON = re.compile(r"WeightsUnpickler error:\s*(.+?)(?:\. |$)", re.MULTILINE)


class CheckpointError(RefusedError, RuntimeError):
    """Raised if a checkpoint cannot be used; the message names the file and says what to do."""


class UnsafeCheckpointError(CheckpointError):
    """Raised if a checkpoint is refused, because it may contain more than weights, numbers and harmless options."""


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
    """Make fairseq load checkpoints with `safe_load`, and name files of another kind.

    fairseq loads checkpoints in checkpoint_utils.py:340 (train, generate, validate, hub) and :909 (EMA weights), and
    other files in four modules. The types are also added to torch's own allow-list, so that a plain `torch.load` of
    such a checkpoint works.
    """
    from fairseq import checkpoint_utils
    from fairseq.data import codedataset
    from fairseq.models.speech_to_text import xm_transformer
    from fairseq.models.text_to_speech import vocoder
    from fairseq.modules.quantization.pq import em

    torch.serialization.add_safe_globals(allowed_globals())
    # The options in a checkpoint may name files that some of these modules load; torch before 2.6 would run their code.
    for module in (checkpoint_utils, codedataset, em, vocoder, xm_transformer):
        overlay(module, "torch", load=safe_load)
    replace(checkpoint_utils, "load_checkpoint_to_cpu", _with_all_parts)


def safe_load(file: Any, map_location: Any = "cpu", **options: Any) -> Any:
    """Load a checkpoint from a path or an open file with `torch.load`, without running any code in the file.

    The checksums are checked first. With `mmap=True`, the tensors are not checked, because they may never be read.

    Raises:
        UnsafeCheckpointError: The file contains objects that could run code, or torch cannot read it as data.
        CheckpointError: The file cannot be read, or does not match its checksums.
    """
    torch.serialization.add_safe_globals(allowed_globals())
    name = os.fspath(file) if isinstance(file, str | os.PathLike) else getattr(file, "name", None)
    try:
        if isinstance(name, str) and not has_checksums(name, weights=not options.get("mmap")):
            options.pop("mmap", None)  # files in the old format cannot be memory-mapped
            say_once(logger, f"{name}: the file has no checksums, so damage to its weights cannot be noticed.")
        state = torch.load(file, map_location=map_location, weights_only=True, **options)
    except (FileNotFoundError, IsADirectoryError, PermissionError, MemoryError):
        raise  # these errors name the file or have another cause
    except Exception as error:
        raise _refusal(name or "a checkpoint in memory", error) from error
    older_options.rename(state)
    return state


def has_checksums(path: str | Path, *, weights: bool = True) -> bool:
    """Return whether a file has checksums, that is, is not in the old format, after comparing its parts with them.

    torch.save never compresses a part, and torch.load uncompresses parts without a limit, so a small file could fill
    the memory. Therefore compressed parts are refused.

    Args:
        path: A checkpoint.
        weights: Whether to check the tensors, too, which takes nearly all of the time.

    Raises:
        zipfile.BadZipFile: A checksum is wrong, or a part is compressed. Damage to the list of parts may cause other
            errors of zipfile.
        OSError: The file cannot be opened.
    """
    with open(path, "rb") as file:
        if file.read(len(_MAGIC)) != _MAGIC:
            return False
    with zipfile.ZipFile(path) as archive:
        for part in archive.infolist():
            if part.compress_type != zipfile.ZIP_STORED:
                raise zipfile.BadZipFile(f"its part {part.filename} is compressed, which torch.save never does")
            if weights or not _WEIGHTS.search(part.filename):
                with archive.open(part) as content:
                    while content.read(_CHUNK):
                        pass
    return True


def _refusal(name: str, error: Exception) -> CheckpointError:
    match = _REASON.search(str(error))
    reason = match[1] if match else f"{type(error).__name__}: {str(error).strip()}".splitlines()[0]
    size = f"{os.path.getsize(name):,} bytes" if os.path.isfile(name) else "size unknown"
    problem = f"{name}: the file is refused, because it cannot be read as plain data ({size}; {reason})."
    advice = "It may be incomplete or damaged: copy it again, or give another checkpoint of its folder"
    if not isinstance(error, pickle.UnpicklingError):
        return CheckpointError(f"{problem} {advice}.")
    return UnsafeCheckpointError(
        f"{problem} A checkpoint may contain weights, numbers, text and options, but nothing that could run code, so "
        f"do not use a file whose source you do not trust. {advice}."
    )


def _with_all_parts(original: Callable[..., Any], path: Any, *args: Any, **kwargs: Any) -> Any:
    """Name a file that holds no checkpoint of a training; fairseq raises errors such as KeyError('model')."""
    try:
        state = original(path, *args, **kwargs)
        if not isinstance(state["model"], Mapping) or (state.get("cfg") or state.get("args")) is None:
            raise ValueError("it has no weights or no settings")
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise CheckpointError(
            f"{path}: this is not a checkpoint of fairseq-train, because its parts cannot be read "
            f"({type(error).__name__}: {error}). Give a file that fairseq-train wrote."
        ) from error
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


def data_beside(checkpoint: str | Path) -> Path | None:
    """Return the folder of a checkpoint's training data, if it lies in or beside a folder that holds the checkpoint.

    A checkpoint holds this path as the training gave it, often relative to the folder in which the training ran. So
    each folder above the checkpoint is tried in the place of that one.
    """
    data = str(settings_of(safe_load(checkpoint, mmap=True), "task").get("data") or "").split(os.pathsep)[0]
    inside = Path(*(part for part in Path(data).parts if part != os.pardir))
    is_relative = bool(data) and not os.path.isabs(data)
    folders = (parent / inside for parent in Path(checkpoint).resolve().parents) if is_relative else ()
    return next((folder for folder in folders if any(folder.glob("dict*.txt"))), None)


def as_dict(settings: Any) -> dict[str, Any]:
    """Convert a configuration, a dataclass or a namespace to a dictionary, and None to an empty dictionary."""
    if settings is None:
        return {}
    return dict(settings) if isinstance(settings, Mapping) else dict(vars(settings))
