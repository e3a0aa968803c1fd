"""Losses that fairseq lacks. Importing this package registers them."""

from . import question_generation  # noqa: F401
