"""One self-attention that applies an encoding: cache, memory, padding, explicit and fused paths."""

from .cache import KeyValueCache
from .module import SelfAttention
from .paths import attend

__all__ = ["KeyValueCache", "SelfAttention", "attend"]
