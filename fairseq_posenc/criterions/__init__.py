"""Define losses that fairseq lacks. Importing this package registers them with fairseq."""

from . import question_generation, sentence_prediction, squad  # noqa: F401
