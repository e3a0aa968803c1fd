"""Self-attention with a position encoding: the cache, segment memory, padding, and the explicit and fused paths."""

from .cache import KeyValueCache
from .module import SelfAttention
from .paths import Projected, attend

__all__ = ["KeyValueCache", "Projected", "SelfAttention", "attend"]
