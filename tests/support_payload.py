"""Build files that run code if they are unpickled."""

from __future__ import annotations

import io
import os
import pickle
from pathlib import Path
from typing import Any

import torch


class Payload:
    """Write the file `mark` when an object of this class is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch '{self.mark}'",)


def written(value: Any, **options: Any) -> bytes:
    """Return the content of a file that torch.save writes."""
    file = io.BytesIO()
    torch.save(value, file, **options)
    return file.getvalue()


def malicious(mark: Path, state: dict[str, Any] | None = None) -> dict[str, bytes]:
    """Return files in each form of torch, and a plain pickle, that write the file `mark` if they are unpickled.

    Args:
        state: The other content of the files (default: nothing).
    """
    payload, rest = Payload(mark), state or {}
    return {
        "zip": written({**rest, "extra_state": payload}),
        "zip, protocol 4": written({**rest, "last_optimizer_state": [payload]}, pickle_protocol=4),
        "old format": written({**rest, "model": {"w": payload}}, _use_new_zipfile_serialization=False),
        "pickle": pickle.dumps(payload),
    }
