"""Prepare the process that runs the tests.

Hypothesis draws the same examples everywhere, unless HYPOTHESIS_PROFILE=search asks for new ones. This is set here and
not in laws/, because tests of other folders may import the laws first, and a law keeps the profile of its first import.

PYTEST_DONT_REWRITE: it asserts nothing.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from hypothesis import HealthCheck, Phase, settings

# Examples that are the same everywhere need no smaller ones: searching for them would take minutes in a broken law.
PHASES = [Phase.explicit, Phase.generate]
QUIET = [HealthCheck.too_slow, HealthCheck.differing_executors]
settings.register_profile("search", max_examples=40, deadline=None, suppress_health_check=QUIET)
settings.register_profile("same", settings.get_profile("search"), max_examples=4, derandomize=True, phases=PHASES)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))

with contextlib.suppress(ImportError):  # without fairseq, the tests of the core still run
    import fairseq_posenc.models  # noqa: F401  registers with fairseq, in whichever order the tests are imported

if sys.prefix != sys.base_prefix:  # `.venv/bin/python -m pytest` finds the programs of .venv, as if it were activated
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.prefix) / "bin"), os.environ.get("PATH", os.defpath)])
    os.environ["VIRTUAL_ENV"] = sys.prefix

# A shell that starts the tests with nohup or in the background lets them, and so their processes, ignore these.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--device",
        default="cpu",
        choices=("cpu", "cuda"),
        help="Device on which the laws run: `python -m pytest tests/laws --device cuda`.",
    )


def pytest_configure(config: pytest.Config) -> None:
    if (device := config.getoption("--device")) != "cpu":
        torch.set_default_device(device)


@pytest.fixture
def _new_memory_is_nan() -> Iterator[None]:
    """Fill memory that torch does not initialise with NaN, so that a test fails if a result depends on it."""
    torch.use_deterministic_algorithms(True, warn_only=True)
    yield
    torch.use_deterministic_algorithms(False)


def pytest_collection_finish() -> None:
    """Save time in all tests: collect garbage without what is imported now, and seed torch without tracebacks.

    Until a device is first used, each seed for it is stored with the traceback of its caller, which takes about a
    millisecond and is read only if the device fails. Even machines without the device store it.
    """
    gc.collect()
    gc.freeze()
    for device in ("cuda", "xpu", "mtia"):
        if module := sys.modules.get(f"torch.{device}"):
            module.traceback = SimpleNamespace(format_stack=list)  # type: ignore[attr-defined]
