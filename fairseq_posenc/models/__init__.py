"""fairseq adapters. Importing this package registers the architectures."""

from . import translation  # noqa: F401
