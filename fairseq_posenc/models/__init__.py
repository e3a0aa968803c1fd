"""fairseq adapters. Importing this package registers the architectures."""

from . import masked_lm, translation  # noqa: F401
