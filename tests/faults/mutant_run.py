"""Run tests in a fork: with coverage, or with one module of the package replaced by a mutant.

The fork has imported torch and pytest before, but nothing of fairseq_posenc. This saves seconds for each mutant.
PYTEST_DONT_REWRITE: it asserts nothing.
"""

from __future__ import annotations

import functools
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import resource
import sys
import tempfile
import types
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import coverage
import pytest

from tests.faults import table

CACHE = "TORCHINDUCTOR_CACHE_DIR"  # torch.compile keeps compiled loops there
MEMORY = 6 << 30  # bytes; a mutant may ask for tensors of any size
TEST_SECONDS = 40  # of one test; a mutant may loop forever


class MutantLoader(importlib.machinery.SourceFileLoader):
    """Load a module from a text instead of its file."""

    def __init__(self, name: str, path: str, text: str) -> None:
        super().__init__(name, path)
        self.text = text

    def get_code(self, fullname: str) -> types.CodeType:
        return compile(self.text, self.path, "exec", dont_inherit=True)


class MutantFinder(importlib.abc.MetaPathFinder):
    """Find one module as a mutant, and leave the other modules to the finders of Python."""

    def __init__(self, path: Path, text: str) -> None:
        parts = path.relative_to(table.ROOT).with_suffix("").parts
        self.name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        self.loader = MutantLoader(self.name, str(path), text)

    def find_spec(self, fullname: str, *_: object) -> importlib.machinery.ModuleSpec | None:
        if fullname != self.name:
            return None
        return importlib.util.spec_from_file_location(fullname, self.loader.path, loader=self.loader)


class Chosen:
    """Keep the chosen tests in the chosen order, and store the name of the first that fails."""

    def __init__(self, tests: Sequence[str], killer: Path) -> None:
        self.rank = {test: rank for rank, test in enumerate(tests)}
        self.killer = killer

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = sorted((x for x in items if x.nodeid in self.rank), key=lambda item: self.rank[item.nodeid])

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed and not self.killer.exists():
            self.killer.write_text(f"import of {report.nodeid}", encoding="utf-8")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.killer.exists():
            self.killer.write_text(report.nodeid, encoding="utf-8")


class Covered:
    """Note for each test its seconds, whether it passed, and the lines that it ran."""

    def __init__(self, measured: coverage.Coverage) -> None:
        self.measured = measured
        self.seconds: dict[str, float] = {}
        self.failed: set[str] = set()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.measured.switch_context(item.nodeid)
        result = yield
        self.measured.switch_context("")
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] = round(self.seconds.get(report.nodeid, 0) + report.duration, 4)
        if not report.passed:
            self.failed.add(report.nodeid)


def prepare(folder: Path) -> None:
    """Give this process its own temporary folder and limits, and write its output to a file."""
    output = os.open(folder / "output.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for number in (1, 2):
        os.dup2(output, number)
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.environ.update(TMPDIR=str(folder), HYPOTHESIS_STORAGE_DIRECTORY=str(folder / "hypothesis"))
    tempfile.tempdir = None
    os.chdir(table.ROOT)


def arguments(folder: Path, files: Sequence[str]) -> list[str]:
    options = ["-q", "-x", "--tb=short", "-p", "no:cacheprovider", "-p", "no:xdist", "-o", f"timeout={TEST_SECONDS}"]
    return [*options, f"--basetemp={folder / 'pytest'}", *files]


def run_mutant(folder: Path, path: Path, text: str, tests: Sequence[str]) -> int:
    """Run tests with a mutant, and return 0 if it survives them.

    A test that fails is run again, alone. If it then passes, it failed because of the tests before it and not because
    of the mutant, and the tests behind it are run.
    """
    prepare(folder)
    os.environ[CACHE] = str(folder / "cache")
    sys.meta_path.insert(0, MutantFinder(path, text))
    killer = folder / "killer.txt"
    remaining = list(tests)
    while remaining:
        status = in_fork(functools.partial(attempt, folder, remaining, killer))
        failed = killer.read_text(encoding="utf-8") if killer.exists() else ""
        if status == 0 or failed not in remaining:
            return status
        killer.unlink()
        if again := in_fork(functools.partial(attempt, folder, [failed], killer)):
            return again
        remaining = remaining[remaining.index(failed) + 1 :]
    return 0


def attempt(folder: Path, tests: Sequence[str], killer: Path) -> int:
    files = list(dict.fromkeys(test.partition("::")[0] for test in tests))
    return int(pytest.main(arguments(folder, files), plugins=[Chosen(tests, killer)]))


def in_fork(run: Callable[[], int]) -> int:
    """Run a function in a fork, and return its exit status, which is negative after a signal."""
    pid = os.fork()
    if pid == 0:
        status = 70
        try:
            status = run()
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def run_covered(folder: Path, cache: Path, file: str, sources: Sequence[Path], out: Path) -> int:
    """Run the tests of a file, and store their seconds and lines."""
    prepare(folder)
    os.environ[CACHE] = str(cache)
    measured = coverage.Coverage(data_file=None, include=list(map(str, sources)), config_file=False)
    covered = Covered(measured)
    measured.start()
    words = [word for word in arguments(folder, [file]) if word != "-x"]
    pytest.main(words, plugins=[covered])
    measured.stop()
    if not covered.seconds:
        return 1
    tests = sorted(set(covered.seconds) - covered.failed)
    number = {test: place for place, test in enumerate(tests)}
    lines: dict[str, dict[int, list[int]]] = {}
    data = measured.get_data()
    for source in data.measured_files():
        by_line = data.contexts_by_lineno(source).items()
        places = {line: sorted(number[test] for test in names if test in number) for line, names in by_line}
        lines[str(Path(source).relative_to(table.ROOT))] = {line: found for line, found in places.items() if found}
    stored: dict[str, Any] = {"tests": tests, "seconds": [covered.seconds[test] for test in tests], "lines": lines}
    out.write_text(json.dumps({**stored, "failed": sorted(covered.failed)}), encoding="utf-8")
    return 0
