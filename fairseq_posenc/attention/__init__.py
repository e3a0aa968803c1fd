"""Compute self-attention with a position encoding, a key-value cache and segment memory."""

from .cache import KeyValueCache
from .choice import PATHS, PathRefusedError, Projected
from .module import SelfAttention
from .paths import attend

__all__ = ["PATHS", "KeyValueCache", "PathRefusedError", "Projected", "SelfAttention", "attend"]
