"""Resuming in several processes: rank 0 reads the checkpoint and sends it on through torch.load."""

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
    """Send a state without OmegaConf containers, and allow the stand-ins of its tensors.

    The receiver reads with torch.load (distributed/utils.py:805). Plain dicts travel in place of configs, so
    that OmegaConf need not be on the allow-list of every checkpoint. The stand-in, a frozen dataclass of one
    int, is in no file; it is allowed for as long as the receiver reads.
    """
    from fairseq.distributed import utils

    def load(file: Any, map_location: Any = None) -> Any:
        with torch.serialization.safe_globals([utils._TensorPlaceholder]):
            return safe_load(file, map_location=map_location)

    overlay(utils, "torch", load=load)
    replace(utils, "_broadcast_object_slow", _plain)


def _plain(original: Callable[..., Any], obj: Any, *args: Any) -> Any:
    """Send a state with each of its configs as a plain container, and restore them on arrival."""
    plain = obj
    if isinstance(obj, dict) and any(isinstance(value, DictConfig) for value in obj.values()):
        say_once(logger, "the checkpoint's configuration is sent to the other processes as plain data")
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
    # As checkpoint_utils.py:361 builds it on rank 0.
    return OmegaConf.create(value[_CONFIG], flags={"allow_objects": True})
