"""fairseq adapters. Importing this package registers the architectures."""

from . import lm, masked_lm, translation  # noqa: F401
