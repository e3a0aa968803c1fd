"""Change the code of the package in 300 places, one at a time, and count the changes that a test notices.

`make mutants` runs this file. Cosmic Ray makes the changes. A change is killed if a test fails, crashes or takes too
long. For each change, the tests that run the changed line are tried, the fastest of each file first.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import functools
import hashlib
import importlib
import itertools
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.faults import mutant_run, table
from tests.faults.changes import NAMED, NUMBER, ROOMS, SEED, Mutant, chosen, read, sources

#: Files with tests of these folders. test_compiled.py and test_exported.py would take minutes for each mutant.
TESTS = ("core", "ops", "attention", "metrics", "encodings", "laws", "test_positions.py")
TOO_SLOW = ("test_compiled.py", "test_exported.py")
BUDGET = 30.0  # seconds of tests for each mutant, as measured with coverage
LIKELY = 2  # files of tests that a mutant is tried with before all others
PRELOADED = ["torch", "numpy", "fairseq", "scipy.stats", "hypothesis", "sacrebleu", "transformers", "x_transformers"]
FOLDER = table.RESULTS / "mutants"
NOTES = Path(__file__).with_name("survivors.json")


# -- choice of the tests ------------------------------------------------------------------------------------


def test_files() -> list[str]:
    paths = [table.ROOT / "tests" / name for name in TESTS]
    files = [file for path in paths for file in ([path] if path.is_file() else sorted(path.glob("test_*.py")))]
    return [str(file.relative_to(table.ROOT)) for file in files if file.name not in TOO_SLOW]


@functools.cache
def digest(file: str) -> str:
    return hashlib.sha256((table.ROOT / file).read_bytes()).hexdigest()[:16]


def coverage_path(file: str) -> Path:
    return FOLDER / "coverage" / f"{file.replace('/', '-')}-{digest(file)}.json"


@functools.cache
def coverage_of(file: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(coverage_path(file).read_text("utf-8"))
    return loaded


@functools.cache
def statement_lines(source: str, line: int) -> tuple[int, int] | None:
    """Return the first and last line of the statement of a function at this line, and None outside of functions.

    For a line between the decorators and the body of a function, this is the whole function.
    """
    smallest, inside = None, False
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.stmt):
            continue
        decorators = [x.lineno for x in getattr(node, "decorator_list", [])]
        first, last = min([node.lineno, *decorators]), node.end_lineno or node.lineno
        if first <= line <= last:
            inside = inside or isinstance(node, ast.FunctionDef)
            if smallest is None or last - first <= smallest[1] - smallest[0]:
                smallest = first, last
    return smallest if inside else None


Tests = list[tuple[float, str]]  # seconds and names, the fastest first


def covering(mutant: Mutant, file: str) -> tuple[Tests, Tests]:
    """Return the tests of a file that run the changed line, and those that run other lines of the source only.

    The others count, too: coverage sees neither functions that torch compiles nor results that an earlier test has
    cached, and lines outside of functions run before the tests.
    """
    stored = coverage_of(file)
    tests_by_line = {int(line): tests for line, tests in stored["lines"].get(mutant.file, {}).items()}
    line = mutant.change[0]
    span = statement_lines(read(mutant.path), line)
    lines = [line] if line in tests_by_line else [] if span is None else range(span[0], span[1] + 1)
    places = {place for number in lines for place in tests_by_line.get(number, [])}
    others = {place for tests in tests_by_line.values() for place in tests} - places
    first, second = (
        sorted((stored["seconds"][place], stored["tests"][place]) for place in part) for part in (places, others)
    )
    return first, second


def selection(mutant: Mutant, files: list[str], budget: float = BUDGET) -> list[tuple[float, str]]:
    """Return tests for a mutant in the order in which they run: the fastest of each file first."""
    by_file = [itertools.chain(*covering(mutant, file)) for file in files]
    tests = [test for row in itertools.zip_longest(*by_file) for test in row if test]
    taken, spent = [], 0.0
    for seconds, test in tests:
        if seconds <= mutant_run.TEST_SECONDS / 2 and spent + seconds <= budget:
            taken.append((seconds, test))
            spent += seconds
    return taken


def likely(mutant: Mutant, files: list[str]) -> list[str]:
    """Return the files of which the most tests per second run the changed line."""
    tests_by_file = {file: covering(mutant, file) for file in files}
    run_the_line = {file: first for file, (first, _) in tests_by_file.items() if first}
    by_file = run_the_line or {file: second for file, (_, second) in tests_by_file.items() if second}
    rates = [(len(tests) / (sum(seconds for seconds, _ in tests) + 0.01), file) for file, tests in by_file.items()]
    return [file for _, file in sorted(rates, reverse=True)[:LIKELY]]


# -- forks --------------------------------------------------------------------------------------------------


#: What a fork does in its folder; it returns the exit status.
Run = Callable[[Path], int]


@dataclass
class Job:
    """Something that runs in a fork, with a folder of its own."""

    run: Run
    ended: Callable[[Path, int | None], None]  # takes the folder and the exit status, None if the time was over
    seconds: float


def fork(job: Job, folder: Path) -> int:
    if pid := os.fork():
        return pid
    status = 70
    os.setsid()  # a group of its own, so that what the tests start can be ended, too
    try:
        status = job.run(folder)
    finally:
        os._exit(status)


def run_all(jobs: Iterator[Job], workers: int) -> None:
    """Run jobs in forks, several at a time, and end those whose time is over."""
    running: dict[int, tuple[Job, tempfile.TemporaryDirectory[str], float]] = {}
    waiting: Job | None = next(jobs, None)
    while waiting or running:
        while waiting and len(running) < workers:
            folder = tempfile.TemporaryDirectory(prefix="mutant-", ignore_cleanup_errors=True)
            running[fork(waiting, Path(folder.name))] = waiting, folder, time.monotonic() + waiting.seconds
            waiting = next(jobs, None)
        for pid, (job, folder, deadline) in list(running.items()):
            over = time.monotonic() > deadline
            if over:
                os.kill(pid, signal.SIGKILL)
            ended, status = os.waitpid(pid, 0 if over else os.WNOHANG)
            if ended:
                _kill_group(pid)  # what the tests have started and left
                del running[pid]
                job.ended(Path(folder.name), None if over else os.waitstatus_to_exitcode(status))
                folder.cleanup()
        time.sleep(0.02)


def _kill_group(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def coverage_jobs(files: list[str]) -> Iterator[Job]:
    """Measure the files of tests that are new or changed since they were measured."""
    cache = FOLDER / "cache"
    cache.mkdir(parents=True, exist_ok=True)
    cache.chmod(0o700)
    for file in files:
        out = coverage_path(file)
        if out.exists():
            continue
        out.parent.mkdir(parents=True, exist_ok=True)

        def ended(folder: Path, status: int | None, file: str = file) -> None:
            if status != 0:
                output = (folder / "output.txt").read_text("utf-8", errors="replace")
                raise SystemExit(f"{output[-3000:]}\n{file}: the tests did not run")
            stored = coverage_of(file)
            total = sum(stored["seconds"])
            print(f"{file}: {len(stored['tests'])} tests, {total:.0f} s; failed: {stored['failed']}", flush=True)

        run = functools.partial(mutant_run.run_covered, cache=cache, file=file, sources=sources(), out=out)
        yield Job(run, ended, 1200)


# -- results ------------------------------------------------------------------------------------------------


def results() -> dict[str, dict[str, Any]]:
    """Return the results of earlier runs by the mutant's key."""
    path = FOLDER / "results.jsonl"
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []
    return {row["key"]: row for row in rows}


def store(mutant: Mutant, tried: dict[str, str], killer: str | None) -> None:
    row = {"key": mutant.key, "killer": killer, "tried": tried}
    with (FOLDER / "results.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(row, ensure_ascii=False) + "\n")
    print(f"{'killed' if killer else 'SURVIVED'}: {mutant.key}  [{killer or ''}]", flush=True)
    write_page()


def mutant_jobs(files: list[str], budget: float, quickly: bool) -> Iterator[Job]:
    """Run each mutant that no test has killed with the tests that it has not yet been tried with.

    Importing a file of tests takes longer than most tests, so `quickly` tries new mutants with a few files only.
    """
    for mutant in chosen():
        earlier = results().get(mutant.key, {"killer": None, "tried": {}})
        new = [file for file in files if earlier["tried"].get(file) != digest(file)]
        if earlier["killer"] or not new or (quickly and earlier["tried"]):
            continue
        if quickly:
            new = likely(mutant, new)
        tried = {**earlier["tried"], **{file: digest(file) for file in new}}
        tests = selection(mutant, new, budget)
        if not tests:
            store(mutant, tried, None)
            continue

        def run(folder: Path, mutant: Mutant = mutant, tests: list[tuple[float, str]] = tests) -> int:
            shutil.copytree(FOLDER / "cache", folder / "cache")
            return mutant_run.run_mutant(folder, mutant.path, mutant.text, [test for _, test in tests])

        def ended(folder: Path, status: int | None, mutant: Mutant = mutant, tried: dict[str, str] = tried) -> None:
            named = folder / "killer.txt"
            killer = named.read_text("utf-8") if named.exists() else None
            if status is None:
                killer = "time limit"
            elif status != 0 and killer is None:
                killer = f"exit status {status}"
            store(mutant, tried, killer)

        yield Job(run, ended, 60 + 4 * sum(seconds for seconds, _ in tests))


def notes() -> dict[str, str]:
    """Return what was done about each survivor, by the mutant's key."""
    loaded: dict[str, str] = json.loads(NOTES.read_text("utf-8"))
    return loaded


def page() -> str:
    """Return the part of docs/reliability.md about mutants."""
    found, written = results(), notes()
    tried = [mutant for mutant in chosen() if mutant.key in found]
    killed = [mutant for mutant in tried if found[mutant.key]["killer"] is not None]
    before = len(killed) - sum(written.get(mutant.key, "").startswith(ADDED) for mutant in killed)
    shares = {"share": len(killed) / max(len(tried), 1), "share_before": before / max(len(tried), 1)}
    return TEXT.format(tried=len(tried), killed=len(killed), before=before, **shares)


ADDED = "test added: "  # how the note of a change begins that survived until a test was added
TEXT = f"""Changed code

`make mutants` changes the Python code of {", ".join(f"`{room}`" for room in ROOMS)} in {NUMBER} places, one at a time,
and runs the tests that reach the changed line. The changes are drawn with the seed {SEED} from all changes that Cosmic
Ray can make, except those of {" and ".join(f"`{name}`" for name in NAMED)}, which choose at random.
`tests/faults/drawn.json` lists the changes, and `tests/faults/{NOTES.name}` says what was done about survivors. Tests
killed {{before}} of {{tried}} changes ({{share_before:.1%}}) before tests were added for survivors, and
{{killed}} of {{tried}} ({{share:.1%}}) after.
"""


def write_page() -> None:
    table.add("mutants", page())


def main() -> int:
    """Run all mutants that no earlier run has finished, and return 1 if fewer than 85 % are killed."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.mutants", description=__doc__)
    parser.add_argument("--workers", type=int, default=2, metavar="N", help="Number of mutants that run at a time.")
    parser.add_argument(
        "--budget", type=float, default=BUDGET, metavar="SECONDS", help="Seconds of tests for each mutant."
    )
    parser.add_argument("files", nargs="*", metavar="FILE", help="Files of tests that are tried (default: all).")
    options = parser.parse_args()
    files = options.files or test_files()
    for module in PRELOADED:
        importlib.import_module(module)
    run_all(coverage_jobs(files), options.workers)
    for quickly in (True, False):
        run_all(mutant_jobs(files, options.budget, quickly), options.workers)
    found = results()
    return int(sum(found[mutant.key]["killer"] is not None for mutant in chosen()) < 0.85 * NUMBER)


if __name__ == "__main__":
    sys.exit(main())
