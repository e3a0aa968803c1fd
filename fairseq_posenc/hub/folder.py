"""Read and write folders in the format of Hugging Face: config.json, weights in one or more files, vocabulary."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from torch import Tensor

from ..compat.checkpoints import CheckpointError, safe_load
from ..core.reading import read_utf8
from ..core.writing import whole_folder
from . import sums

SAFE, BINARY = "model.safetensors", "pytorch_model.bin"
CHECKPOINT = "checkpoint.pt"  # the file that import-hf writes beside dict.txt


def read_config(folder: Path) -> dict[str, Any]:
    """Read config.json.

    Raises:
        CheckpointError: The folder or the file does not exist, or the file is not valid.
    """
    path = folder / "config.json"
    if not folder.is_dir():
        raise CheckpointError(f"{folder} is not a folder. Give a folder with config.json and {SAFE} or {BINARY}.")
    if not path.exists():
        advice = "Give the folder of a Hugging Face model, or the file of a checkpoint that fairseq-train wrote"
        raise CheckpointError(f"{folder} has no config.json. {advice}.")
    settings = read_json(path)
    sums.check(path)
    return settings


def read_json(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file; raise CheckpointError if the file is not valid."""
    try:
        content = json.loads(path.read_text("utf-8"))
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path} is not valid JSON ({error}). Download the file again.") from None
    if not isinstance(content, dict):
        raise CheckpointError(f"{path} is not a JSON object. Download the file again.")
    return content


def read_weights(folder: Path) -> dict[str, Tensor]:
    """Read all weights, from safetensors if possible, otherwise from .bin without running code from the file.

    Raises:
        CheckpointError: There are no weights, a file cannot be read, or a file that the index names is missing.
    """
    readers: tuple[tuple[str, Callable[[Path], Any]], ...] = ((SAFE, _safetensors), (BINARY, safe_load))
    for name, read in readers:
        if (folder / name).is_file():
            return _tensors(folder / name, read)
        if (folder / f"{name}.index.json").is_file():
            return _parts(folder, f"{name}.index.json", read)
    raise CheckpointError(
        f"{folder} has no weights. The folder must contain {SAFE} or {BINARY}, or an index of several such files."
    )


def _parts(folder: Path, index: str, read: Callable[[Path], Any]) -> dict[str, Tensor]:
    try:
        names = list(read_json(folder / index)["weight_map"].values())
    except (KeyError, TypeError, AttributeError):
        raise CheckpointError(f"{folder / index} is not an index of weights. Download the file again.") from None
    tensors: dict[str, Tensor] = {}
    for name in dict.fromkeys(names):
        if Path(name).name != name:
            raise CheckpointError(
                f"{folder / index} names {name}, which is outside of the folder. Download the file again."
            )
        if not (folder / name).is_file():
            raise CheckpointError(f"{folder} has no {name}, which {index} names. Download this file.")
        tensors.update(_tensors(folder / name, read))
    return tensors


def _tensors(path: Path, read: Callable[[Path], Any]) -> dict[str, Tensor]:
    sums.check(path)
    tensors = read(path)
    if not isinstance(tensors, dict) or not all(isinstance(value, Tensor) for value in tensors.values()):
        raise CheckpointError(f"{path} contains something other than weights. Give a file that contains only weights.")
    return tensors


def _safetensors(path: Path) -> dict[str, Tensor]:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        tensors: dict[str, Tensor] = load_file(path)
    except (SafetensorError, OSError) as error:
        size = f"{path.stat().st_size:,} bytes"
        raise CheckpointError(f"{path} cannot be read ({size}; {error}). Download the file again.") from None
    return tensors


def read_vocabulary(folder: Path) -> list[str] | None:
    """Return the pieces in the order of their ids, from the vocabulary file; None if there is no such file."""
    if (folder / "vocab.txt").is_file():
        sums.check(folder / "vocab.txt")
        return read_utf8(folder / "vocab.txt").rstrip("\n").split("\n")
    paths = (folder / name for name in ("vocab.json", "tokenizer.json"))
    return next((_by_id(path) for path in paths if path.is_file()), None)


def _by_id(path: Path) -> list[str]:
    """Return the pieces of vocab.json or tokenizer.json in the order of their ids."""
    ids = read_json(path)
    try:
        if path.name == "tokenizer.json":
            pieces, added = ids["model"]["vocab"], ids.get("added_tokens", ())
            if isinstance(pieces, list):  # with their scores
                pieces = {piece: i for i, (piece, _) in enumerate(pieces)}
            ids = {**pieces, **{token["content"]: token["id"] for token in added}}
        by_id = {number: str(piece) for piece, number in ids.items()}
        return [by_id[i] for i in range(len(by_id))]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        problem = f"{path} does not give the pieces the ids 0, 1, 2 and so on ({type(error).__name__}: {error})"
        raise CheckpointError(f"{problem}. Download the file again.") from None


def new_folder(output: Path) -> AbstractContextManager[Path]:
    """Return a context manager with a temporary folder, which becomes `output` at the end of the `with` block.

    Raises:
        CheckpointError: `output` exists and is not an empty folder; its contents are never changed.
    """
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise CheckpointError(f"{output} already exists. Give another --output, or remove this folder.")
    return whole_folder(output)
