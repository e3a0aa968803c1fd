"""Define tasks that fairseq lacks. Importing this package registers the tasks with fairseq."""

from ..compat.registration import register

register()  # before the modules below import fairseq, whose import is noisy

from . import answers, lm_memory, masked_lm, question_generation, sentence_prediction, squad, translation  # noqa: E402, F401
