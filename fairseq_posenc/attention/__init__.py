"""Compute self-attention with a position encoding, a key-value cache and segment memory."""

from .cache import KeyValueCache
from .module import SelfAttention
from .paths import Projected, attend

__all__ = ["KeyValueCache", "Projected", "SelfAttention", "attend"]
