"""Make processes end together with the run that started them."""

from __future__ import annotations

import os
import threading
from multiprocessing import connection, parent_process


def die_with_run() -> None:
    """Watch the parent process and exit when it ends, so that a killed run leaves no process that goes on writing.

    Call this function in the child process.
    """
    threading.Thread(target=_wait, daemon=True).start()


def _wait() -> None:
    run = parent_process()
    if run is not None:
        connection.wait([run.sentinel])
        os._exit(1)
