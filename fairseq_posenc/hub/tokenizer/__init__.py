"""Read and write tokenizers: files for Hugging Face's tokenizers, with the ids of fairseq's dictionary."""

from __future__ import annotations

from .fit import fitted
from .read import FORMS, Tokenizer, beside, built, read
from .write import write, write_training_files

__all__ = ["FORMS", "Tokenizer", "beside", "built", "fitted", "read", "write", "write_training_files"]
