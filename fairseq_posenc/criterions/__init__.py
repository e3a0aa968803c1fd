"""Losses that fairseq lacks. Importing this package registers them."""

from . import question_generation, sentence_prediction, squad  # noqa: F401
