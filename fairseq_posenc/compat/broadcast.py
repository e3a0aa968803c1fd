"""Let several processes resume training: rank 0 reads the checkpoint, and the others receive it with torch.load."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import torch
from omegaconf import DictConfig, OmegaConf

from .checkpoints import safe_load
from .patching import overlay, replace, say_once

logger = logging.getLogger(__name__)

_CONFIG = "__fairseq_posenc_config__"


def mend() -> None:
    """Send checkpoints without OmegaConf's objects, and let the receivers build fairseq's `_TensorPlaceholder`.

    A receiver reads the checkpoint with torch.load (distributed/utils.py:805). Configurations are sent as plain
    dictionaries, so that OmegaConf need not be on the allow-list for all checkpoints. fairseq sends tensors separately,
    and puts a `_TensorPlaceholder`, a frozen dataclass with one integer, in the place of each tensor. Checkpoint files
    never contain a `_TensorPlaceholder`, so it is on the allow-list of receivers only.
    """
    from fairseq.distributed import utils

    def load(file: Any, map_location: Any = None) -> Any:
        with torch.serialization.safe_globals([utils._TensorPlaceholder]):
            return safe_load(file, map_location=map_location)

    overlay(utils, "torch", load=load)
    replace(utils, "_broadcast_object_slow", _plain)


def _plain(original: Callable[..., Any], obj: Any, *args: Any) -> Any:
    """Send each configuration of a checkpoint as a plain dictionary, and convert it back when it is received."""
    plain = obj
    if isinstance(obj, dict) and any(isinstance(value, DictConfig) for value in obj.values()):
        say_once(logger, "The checkpoint's configuration is sent to the other processes as plain data.")
        plain = {key: _strip(value) for key, value in obj.items()}
    received = original(plain, *args)
    if received is plain:
        return obj
    return {key: _restore(value) for key, value in received.items()} if isinstance(received, dict) else received


def _strip(value: Any) -> Any:
    if not isinstance(value, DictConfig):
        return value
    return {_CONFIG: OmegaConf.to_container(value, resolve=False, enum_to_str=True)}


def _restore(value: Any) -> Any:
    if not isinstance(value, dict) or value.keys() != {_CONFIG}:
        return value
    # Build the config as checkpoint_utils.py:361 does on rank 0.
    return OmegaConf.create(value[_CONFIG], flags={"allow_objects": True})
