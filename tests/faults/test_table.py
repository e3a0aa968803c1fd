"""A failure reaches the table and is repeated: a test that fails, a crash, a run that finds no test."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from tests.faults import table, trials

FAULT, OTHER = "damage: a file", "| kill: another | 1 | 1 |\n"
TESTS = """import pytest

@pytest.mark.parametrize("n", range(3))
def test_n(n):
    assert n < 2

def test_skipped():
    pytest.skip()
"""


@pytest.fixture(autouse=True)
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Provide a page on which all trials survived."""
    page = tmp_path / "reliability.md"
    page.write_text(f"{table.HEAD}| {FAULT} | 3 | 3 |\n{OTHER}", encoding="utf-8")
    monkeypatch.setattr(table, "PAGE", page)
    monkeypatch.setattr(table, "RESULTS", tmp_path / "results")
    return page


def rows(page: Path) -> str:
    return page.read_text(encoding="utf-8").removeprefix(table.HEAD)


def python(folder: Path, status: int, report: str) -> Path:
    """Return a program that stands for Python: it ends like pytest, with a report unless `report` is empty."""
    program = folder / "python"
    write = f"while test $1 != --junitxml; do shift; done\necho '<testsuite {report}/>' > $2\n" if report else ""
    program.write_text(f"#!/bin/sh\n{write}exit {status}\n", encoding="utf-8")
    program.chmod(0o700)
    return program


def test_a_failed_test_is_written(tmp_path: Path, page: Path) -> None:
    tests = tmp_path / "test_numbers.py"
    tests.write_text(TESTS, encoding="utf-8")
    trials.count(FAULT, Path(sys.executable), f"-n 0 {tests}")
    assert rows(page) == f"| {FAULT} | 3 | 2 |\n{OTHER}"
    assert not table.done(FAULT)


@pytest.mark.parametrize(
    ("status", "report", "row", "done"),
    [
        (0, 'tests="3" skipped="1"', "2 | 2", True),
        (1, 'tests="3" failures="1" errors="1"', "3 | 1", False),
        (5, 'tests="0"', "1 | 0", False),
        (5, 'tests="2" skipped="2"', "1 | 0", False),
        (3, "", "1 | 0", False),
        (0, 'tests="0"', "0 | 0", False),
    ],
)
def test_only_a_fault_without_failures_is_done(
    status: int, report: str, row: str, done: bool, tmp_path: Path, page: Path
) -> None:
    trials.count(FAULT, python(tmp_path, status, report), "tests")
    assert rows(page) == f"| {FAULT} | {row} |\n{OTHER}"
    assert table.done(FAULT) is done


def test_the_runs_of_a_fault_are_added(tmp_path: Path, page: Path) -> None:
    """The second run leaves no report of its own."""
    once = python(tmp_path, 1, 'tests="3"').read_text("utf-8")
    (tmp_path / "python").write_text(once.replace("#!/bin/sh\n", f"#!/bin/sh\nmkdir {tmp_path}/ran || exit 1\n"))
    trials.count(FAULT, tmp_path / "python", "tests", "others")
    assert f"| {FAULT} | 4 | 2 |\n" in rows(page)


def test_a_command_prints_its_rows_and_its_minutes(capsys: pytest.CaptureFixture[str]) -> None:
    header = "| fault | trials | survived |\n|---|---|---|\n"
    table.record(FAULT, 3, 3)
    table.record("kill: another", 7, 7)
    capsys.readouterr()
    assert table.show([FAULT], time.monotonic() - 90) == 0
    assert capsys.readouterr().out == f"{header}| {FAULT} | 3 | 3 |\nThis run took 1.5 minutes.\n"
    assert table.show([FAULT, "never run"], time.monotonic()) == 1
    table.record(FAULT, 3, 2)
    assert table.show([FAULT], time.monotonic()) == 1
