"""Connect the encodings to fairseq's models. Importing this package registers the architectures."""

from . import classifier, finetuning, lm, masked_lm, question_generation, translation  # noqa: F401
