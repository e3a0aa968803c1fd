"""Commands of recipes without the seconds that each takes to import torch.

PYTEST_DONT_REWRITE: it asserts nothing.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
import support_warm


@pytest.fixture(scope="module")
def forked_stages() -> Iterator[None]:
    """Recipes that are run in this process run their stages in forks."""
    from recipes.lib import runner

    support_warm.server()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "subprocess", SimpleNamespace(Popen=support_warm.popen, DEVNULL=subprocess.DEVNULL))
        yield


def pytest_sessionfinish() -> None:
    support_warm.stop()
