"""Tokenizers beside exported models: what Hugging Face's tokenizers read, with the ids of fairseq's dictionary."""

from __future__ import annotations

from .fit import fitted
from .sources import FORMS, Tokenizer, beside, read
from .write import copy_sources, write

__all__ = ["FORMS", "Tokenizer", "beside", "copy_sources", "fitted", "read", "write"]
