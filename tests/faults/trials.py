"""Run tests as the trials of a fault, and count them."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path
from xml.etree import ElementTree

from tests.faults import table


def count(fault: str, python: Path, *arguments: str) -> None:
    """Run the tests of a fault, and record how many there are and how many pass.

    Args:
        fault: Name of the fault in the table.
        python: The interpreter, whose environment has pytest.
        arguments: Arguments of pytest, as a shell reads them. Each string is a run of pytest of its own.
    """
    with tempfile.TemporaryDirectory() as folder:
        counts = [_counts(python, run, Path(folder) / f"{number}.xml") for number, run in enumerate(arguments)]
    tests, passed = (sum(numbers) for numbers in zip(*counts, strict=True))
    table.record(fault, tests, passed)


def _counts(python: Path, arguments: str, report: Path) -> tuple[int, int]:
    """Run tests, and return the number of tests that were not skipped, and of those that passed.

    A run that ends with an error although no test failed counts as one test that failed. Such a run found no test, for
    example, or pytest crashed.
    """
    command = f"{python} -m pytest -q -p no:cacheprovider -n 2 --dist loadscope --junitxml {report} {arguments}"
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "PYTHONPATH": str(table.ROOT)}
    ended = subprocess.run(command, shell=True, cwd=table.ROOT, env=environment, check=False)
    suite = next(ElementTree.parse(report).getroot().iter("testsuite")).attrib if report.exists() else {}
    tests, skipped, *failures = (int(suite.get(name, "0")) for name in ("tests", "skipped", "failures", "errors"))
    failed = max(sum(failures), int(ended.returncode != 0))
    tests = max(tests - skipped, failed)
    return tests, tests - failed
