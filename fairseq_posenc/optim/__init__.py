"""Define optimizers that fairseq lacks. Importing this package registers the optimizers with fairseq."""

from ..compat.registration import register

register()  # before the modules below import fairseq, whose import is noisy

from . import lamb  # noqa: E402, F401
