"""What is being measured, on stderr."""

from __future__ import annotations

import sys
from types import TracebackType

from tqdm import tqdm


class Progress:
    """A bar of groups; how many there will be is known a pass at a time."""

    def __init__(self) -> None:
        self._bar = tqdm(file=sys.stderr, unit="group", dynamic_ncols=True, leave=False)

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._bar.close()

    def tell(self, what: str, left: int) -> None:
        """A group begins, of which so many are left in this pass, itself included."""
        self._bar.update(bool(self._bar.desc))
        self._bar.total = self._bar.n + left
        self._bar.set_description(what)
