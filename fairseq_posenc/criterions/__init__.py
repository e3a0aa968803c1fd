"""Define losses that fairseq lacks. Importing this package registers these losses with fairseq."""

from ..compat.registration import register

register()  # before the modules below import fairseq, whose import is noisy

from . import question_generation, sentence_prediction, squad  # noqa: E402, F401
