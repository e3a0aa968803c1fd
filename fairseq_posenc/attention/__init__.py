"""One self-attention that applies an encoding: cache, memory, padding, explicit and fused paths."""

from .cache import KeyValueCache
from .module import SelfAttention
from .paths import Projected, attend

__all__ = ["KeyValueCache", "Projected", "SelfAttention", "attend"]
