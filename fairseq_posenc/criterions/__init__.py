"""Define losses that fairseq lacks. Importing this package registers these losses with fairseq."""

from . import question_generation, sentence_prediction, squad  # noqa: F401
