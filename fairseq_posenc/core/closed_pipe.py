"""End a program without an error if the reader of its output, such as `head`, has seen enough.

This file needs nothing but Python, so that recipes load it without torch.
"""

from __future__ import annotations

import os
import sys

CLOSED = 141  # exit status of a program that SIGPIPE ends: 128 + 13


def discard_output() -> int:
    """Discard what is still to be written to standard output, and return the exit status `CLOSED`.

    Python flushes standard output once more at its end, which would raise BrokenPipeError again.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return CLOSED
