"""Write tokenizers for exported models: files for Hugging Face's tokenizers, with the ids of fairseq's dictionary."""

from __future__ import annotations

from .fit import fitted
from .sources import FORMS, Tokenizer, beside, read
from .write import built, copy_sources, has_sources, write, write_byte_level

__all__ = [
    "FORMS",
    "Tokenizer",
    "beside",
    "built",
    "copy_sources",
    "fitted",
    "has_sources",
    "read",
    "write",
    "write_byte_level",
]
