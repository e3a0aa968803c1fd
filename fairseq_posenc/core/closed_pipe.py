"""End a program without an error if the reader of its output, such as `head`, stops reading.

This file imports the standard library only, so that recipes can load it without torch.
"""

from __future__ import annotations

import os
import sys

CLOSED = 141  # exit status of a program that SIGPIPE ends: 128 + 13


def discard_output() -> int:
    """Discard the output that is still in the buffer of standard output, and return the exit status `CLOSED`.

    Python flushes standard output once more when it exits, which would raise BrokenPipeError again.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return CLOSED
