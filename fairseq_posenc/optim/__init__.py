"""Optimizers that fairseq lacks. Importing this package registers them."""

from . import lamb  # noqa: F401
