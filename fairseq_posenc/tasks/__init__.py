"""Define tasks that fairseq lacks. Importing this package registers the tasks with fairseq."""

from . import answers, lm_memory, masked_lm, question_generation, sentence_prediction, squad, translation  # noqa: F401
