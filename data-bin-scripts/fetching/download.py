"""A file over HTTP: mirrors in order, attempts as long as they bring something.

On requests, which brings redirects, proxies, certificates and time-outs. pooch, the usual library for corpora,
neither resumes nor knows mirrors, and unpacks zip files and (on Python 3.11) tar files without a filter: all
that is asked for here would have remained to be written beside it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

from tqdm import tqdm

from .errors import FetchError, MirrorError
from .partial import Partial
from .sources import Source
from .transfer import CutError, Policy, Transfer

PAUSE = 1.0  # seconds before the second attempt, twice as long before each further one
LONGEST_PAUSE = 30.0


def download(source: Source, partial: Partial, policy: Policy, check: Callable[[Path], None]) -> str:
    """Fill `partial` with what passes `check`; the address that gave it."""
    problems = []
    for url in source.urls:
        try:
            _persist(Transfer(url, source, partial, policy))
            check(partial.path)
            return url
        except MirrorError as error:
            problems.append(f"{url}: {error}")
    told = "; ".join(problems) or "no address is published: get it by hand and name its folder with --from"
    raise FetchError(f"{source.path}: {told}")


def _persist(transfer: Transfer) -> None:
    """Attempts until it is whole, or `retries` of them in a row brought nothing new."""
    partial, retries = transfer.partial, transfer.policy.retries
    fruitless, best = 0, partial.size()
    while True:
        try:
            return transfer.attempt()
        except CutError as error:
            fruitless, best = (0, partial.size()) if partial.size() > best else (fruitless + 1, best)
            if fruitless > retries:
                raise MirrorError(f"{error}; {partial.size():,} bytes are kept, run it again to go on") from error
            tqdm.write(f"{transfer.source.path}: {error}; trying again", file=sys.stderr)
            time.sleep(min(LONGEST_PAUSE, PAUSE * 2**fruitless))
