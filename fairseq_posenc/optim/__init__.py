"""Define optimizers that fairseq lacks. Importing this package registers the optimizers with fairseq."""

from . import lamb  # noqa: F401
