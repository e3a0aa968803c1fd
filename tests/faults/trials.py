"""Run tests as the trials of a fault, and count them."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from xml.etree import ElementTree

from tests.faults import table


def survives(fault: str, python: Path, *arguments: str) -> bool:
    """Run the tests of a fault, and return whether all of them pass; if so, record their number.

    Args:
        fault: Name of the fault in the table.
        python: The interpreter, whose environment has pytest.
        arguments: Arguments of pytest, as a shell reads them. Each string is a run of pytest of its own.
    """
    with tempfile.TemporaryDirectory() as folder:
        counts = [_counts(python, run, Path(folder) / "report.xml") for run in arguments]
    tests, passed = (sum(numbers) for numbers in zip(*counts, strict=True))
    if not tests or passed < tests:
        print(f"{fault}: {passed} of {tests} tests passed", file=sys.stderr, flush=True)
        return False
    table.record(fault, tests, passed)
    return True


def _counts(python: Path, arguments: str, report: Path) -> tuple[int, int]:
    """Run tests, and return the number of tests that were not skipped, and of those that passed."""
    command = f"{python} -m pytest -q -p no:cacheprovider -n 2 --dist loadscope --junitxml {report} {arguments}"
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "PYTHONPATH": str(table.ROOT)}
    subprocess.run(command, shell=True, cwd=table.ROOT, env=environment, check=False)
    suite = next(ElementTree.parse(report).getroot().iter("testsuite"))
    tests, skipped, *failed = (int(suite.get(name, "0")) for name in ("tests", "skipped", "failures", "errors"))
    return tests - skipped, tests - skipped - sum(failed)
