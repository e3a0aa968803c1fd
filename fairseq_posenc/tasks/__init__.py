"""Tasks that fairseq lacks. Importing this package registers them."""

from . import lm_memory, masked_lm, question_generation, translation  # noqa: F401
