"""Connect the encodings to fairseq's models. Importing this package registers the architectures."""

from ..compat.registration import register

register()  # before the modules below import fairseq, whose import is noisy

from . import classifier, finetuning, lm, masked_lm, question_generation, translation  # noqa: E402, F401
