"""Tasks that fairseq lacks. Importing this package registers them."""

from . import lm_memory, masked_lm  # noqa: F401
