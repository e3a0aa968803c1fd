"""Run the commands of recipes in forks, which saves the seconds that each needs to import torch.

PYTEST_DONT_REWRITE: it asserts nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import support_warm


@pytest.fixture(scope="module")
def forked_stages() -> Iterator[None]:
    """Let recipes that run in this process run their stages in forks."""
    from recipes.lib import tied

    support_warm.server()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tied, "start", support_warm.popen)
        yield


def pytest_sessionfinish() -> None:
    support_warm.stop()
