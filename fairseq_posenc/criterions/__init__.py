"""Losses that fairseq lacks. Importing this package registers the losses with fairseq."""

from . import question_generation, sentence_prediction, squad  # noqa: F401
