"""Download a file over HTTP from its mirrors in order, and retry as long as new bytes arrive.

The module is built on requests, which handles redirects, proxies, certificates and timeouts. pooch, the usual library
for corpora, neither resumes downloads nor tries mirrors. When pooch unpacks zip files, it does not check the paths in
them; on Python 3.11, it does not check the paths in tar files either.
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

PAUSE = 1.0  # seconds before the second attempt; doubled before each further one
LONGEST_PAUSE = 30.0


def download(source: Source, partial: Partial, policy: Policy, check: Callable[[Path], None]) -> str:
    """Try the addresses of `source` until one of them delivers a file that passes `check`, and return this address.

    Raises:
        FetchError: No mirror delivered the right file.
    """
    problems = []
    for url in source.urls:
        try:
            _persist(Transfer(url, source, partial, policy))
            check(partial.path)
            return url
        except MirrorError as error:
            problems.append(f"{url}: {error}")
    reasons = "; ".join(problems) or "no address is published"
    raise FetchError(f"{source.path}: {reasons}. Run the command again, or give your own copy with --from DIR.")


def _persist(transfer: Transfer) -> None:
    """Repeat the transfer until the file is complete.

    Raises:
        MirrorError: More than `retries` attempts in a row brought no new byte.
        FileNotFoundError: Somebody has removed the folder of the file.
    """
    partial, retries = transfer.partial, transfer.policy.retries
    fruitless, best = 0, partial.size()
    while True:
        try:
            return transfer.attempt()
        except CutError as error:
            partial.check_folder()
            fruitless, best = (0, partial.size()) if partial.size() > best else (fruitless + 1, best)
            if fruitless > retries:
                raise MirrorError(f"{error}; the {partial.size():,} bytes received so far are kept") from error
            tqdm.write(f"{transfer.source.path}: {error}; trying again", file=sys.stderr)
            time.sleep(min(LONGEST_PAUSE, PAUSE * 2**fruitless))
