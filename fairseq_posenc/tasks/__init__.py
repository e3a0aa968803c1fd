"""Tasks that fairseq lacks. Importing this package registers them."""

from . import masked_lm  # noqa: F401
