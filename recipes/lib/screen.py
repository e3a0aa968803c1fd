"""Show the progress on the terminal: one line per finished stage, and a status line that is rewritten."""

from __future__ import annotations

import shutil
import sys
import threading
import time

from .package import visible

# Seconds between two status lines if a line cannot be rewritten (in a file or a CI log): a different one, the same one.
QUIET_SECONDS, SAME_SECONDS = 10.0, 60.0


class Screen:
    """Print lines that begin with the time since the start. Several threads may print."""

    def __init__(self) -> None:
        self.started = time.monotonic()
        self.rewrites = sys.stdout.isatty()
        self.lock = threading.Lock()
        self.last_status, self.last_text = self.started, ""

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
            elif self._is_due(text):
                print(shown, flush=True)
                self.last_status, self.last_text = time.monotonic(), text

    def _is_due(self, text: str) -> bool:
        seconds = SAME_SECONDS if text == self.last_text else QUIET_SECONDS
        return time.monotonic() - self.last_status >= seconds

    def _elapsed(self) -> float:
        return time.monotonic() - self.started

    def _erase(self) -> str:
        return "\r\033[K" if self.rewrites else ""
