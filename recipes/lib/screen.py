"""Show the progress on the terminal: one line per finished stage, and a status line that is rewritten."""

from __future__ import annotations

import shutil
import sys
import threading
import time

from .package import visible

QUIET_SECONDS = 10.0  # seconds between two status lines if a line cannot be rewritten (in a file or a CI log)


class Screen:
    """Print lines that begin with the time since the start. Several threads may print."""

    def __init__(self) -> None:
        self.started = time.monotonic()
        self.rewrites = sys.stdout.isatty()
        self.lock = threading.Lock()
        self.last_status = self.started

    def line(self, text: str) -> None:
        """Print a line that stays on the screen above the status line."""
        with self.lock:
            print(f"{self._erase()}[{self._elapsed():4.0f}s] {visible(text)}", flush=True)

    def error(self, text: str) -> None:
        """Print an error to standard error, in place of the status line."""
        with self.lock:
            print(self._erase(), end="", flush=True)
            print(text, file=sys.stderr, flush=True)

    def status(self, text: str) -> None:
        """Replace the status line."""
        with self.lock:
            shown = f"[{self._elapsed():4.0f}s] ... {visible(text)}"
            if self.rewrites:
                print(self._erase() + shown[: shutil.get_terminal_size().columns - 1], end="", flush=True)
            elif time.monotonic() - self.last_status >= QUIET_SECONDS:
                print(shown, flush=True)
                self.last_status = time.monotonic()

    def _elapsed(self) -> float:
        return time.monotonic() - self.started

    def _erase(self) -> str:
        return "\r\033[K" if self.rewrites else ""
