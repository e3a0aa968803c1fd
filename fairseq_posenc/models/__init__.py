"""fairseq adapters. Importing this package registers the architectures."""

from . import lm, masked_lm, question_generation, translation  # noqa: F401
