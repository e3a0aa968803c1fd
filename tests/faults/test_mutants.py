"""Test `make mutants`: which changes count, which tests are tried, and that a fork ends a change that loops."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults import changes, mutant_run, mutants, table
from tests.faults.changes import Mutant
from tests.faults.mutants import Job

SOURCE = """
from __future__ import annotations
def least(a: int | None, b: int) -> int | None:
    smaller: int | float = a if a < b else b
    return smaller
"""


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        ("a: int | None", "a: int + None", True),
        ("-> int | None", "-> int % None", True),
        ("int | float", "int & float", True),
        ("a < b", "a > b", False),
        ("return smaller", "return -smaller", False),
    ],
)
def test_annotations_in_functions_are_not_executed(before: str, after: str, same: bool) -> None:
    changed = SOURCE.replace(before, after)
    assert changed != SOURCE
    assert (changes.program(changed) == changes.program(SOURCE)) is same


def test_a_text_that_does_not_compile_is_no_program() -> None:
    assert changes.program("def least(a, b) return a") is None


PACKAGE = table.ROOT / "fairseq_posenc"


def test_a_mutant_says_what_it_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "sources", lambda: [PACKAGE / "core" / "words.py"])
    number = next(mutant for mutant in changes.changes() if mutant.operator == "NumberReplacer")
    line, before, after = number.change
    assert number.path.read_text("utf-8").splitlines()[line - 1].strip() == before
    assert before != after
    assert number.key == f"{number.file} | {before} | NumberReplacer 1"
    assert changes.is_executed(number)


def test_an_edit_of_a_line_leaves_the_names_of_other_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names distinguish equal changes of equal lines by their order."""
    monkeypatch.setattr(changes, "sources", lambda: [tmp_path / "source.py"])
    monkeypatch.setattr(table, "ROOT", tmp_path)
    names = []
    for text in ("a = 1\nb = 2\nb = 2\n", "# new\nc = a + 3\na = 1  # why\nb = 2\nb = 2\n"):
        (tmp_path / "source.py").write_text(text, encoding="utf-8")
        changes.read.cache_clear()
        names.append({mutant.key for mutant in changes.changes()})
    assert names[0] == {f"source.py | {line}" for line in ("a = 1 | NumberReplacer 1", "a = 1 | NumberReplacer 2")} | {
        f"source.py | b = 2 | NumberReplacer {number}" for number in (1, 2, 3, 4)
    }
    assert names[0] < names[1]


def test_an_operator_that_fails_makes_no_mutant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cosmic Ray cannot replace an exception that is an attribute of a module."""
    (tmp_path / "source.py").write_text("try:\n    a = 1\nexcept (OSError, subprocess.SubprocessError):\n    a = 2\n")
    monkeypatch.setattr(changes, "sources", lambda: [tmp_path / "source.py"])
    monkeypatch.setattr(table, "ROOT", tmp_path)
    failing = [mutant for mutant in changes.changes() if mutant.operator == "ExceptionReplacer" and not mutant.text]
    assert len(failing) == 1
    assert not changes.is_executed(failing[0])


def test_the_finder_replaces_one_module() -> None:
    path = PACKAGE / "core" / "words.py"
    finder = mutant_run.MutantFinder(path, "planted = 7\n")
    assert finder.find_spec("fairseq_posenc.core.base") is None
    spec = finder.find_spec("fairseq_posenc.core.words")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.planted == 7


def test_a_package_stays_a_package() -> None:
    path = PACKAGE / "metrics" / "__init__.py"
    spec = mutant_run.MutantFinder(path, "planted = 7\n").find_spec("fairseq_posenc.metrics")
    assert spec is not None
    assert spec.submodule_search_locations == [str(path.parent)]


def test_forks_report_their_status_and_end_in_time() -> None:
    ended: list[int | None] = []

    def loop(folder: Path) -> int:
        while True:
            pass

    def job(run: mutants.Run, seconds: float) -> Job:
        return Job(run, lambda folder, status: ended.append(status), seconds)

    mutants.run_all(iter([job(loop, 0.2), job(lambda folder: 3, 20)]), workers=1)
    assert ended == [None, 3]


@pytest.fixture
def measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mutant:
    """Provide a source of which line 2 is measured, and a mutant of it."""
    source = tmp_path / "source.py"
    source.write_text("def f(a):\n    return a + 1\nLIMIT = 2\n", encoding="utf-8")
    stored = {"tests": ["slow", "fast", "other"], "seconds": [2.0, 0.1, 0.2], "lines": {str(source): {"2": [0, 1]}}}
    monkeypatch.setattr(mutants, "coverage_path", lambda file: tmp_path / f"{file}.json")
    monkeypatch.setattr(mutants, "coverage_of", lambda file: json.loads((tmp_path / f"{file}.json").read_text("utf-8")))
    for file in ("one", "two"):
        stored["tests"] = [f"{file}::{name}" for name in ("slow", "fast", "other")]
        (tmp_path / f"{file}.json").write_text(json.dumps(stored), encoding="utf-8")
    return Mutant(str(source), "ReplaceBinaryOperator_Add_Sub", 0)


def test_the_fastest_tests_of_the_line_come_first(measured: Mutant) -> None:
    assert measured.change == (2, "return a + 1", "return a - 1")
    names = [test for _, test in mutants.selection(measured, ["one", "two"])]
    assert names == ["one::fast", "two::fast", "one::slow", "two::slow"]
    assert [test for _, test in mutants.selection(measured, ["one"], budget=1)] == ["one::fast"]


def test_files_that_run_the_line_are_tried_first(measured: Mutant, tmp_path: Path) -> None:
    """The third file runs another line only, but its test is the fastest."""
    stored = {"tests": ["three::fast"], "seconds": [0.0], "lines": {measured.file: {"1": [0]}}}
    (tmp_path / "three.json").write_text(json.dumps(stored), encoding="utf-8")
    assert sorted(mutants.likely(measured, ["three", "one", "two"])) == ["one", "two"]
    assert mutants.likely(measured, ["three"]) == ["three"]


def test_a_line_outside_of_functions_has_the_tests_of_the_file(measured: Mutant) -> None:
    limit = Mutant(measured.file, "NumberReplacer", 2)
    assert limit.change[0] == 3
    assert [test for _, test in mutants.selection(limit, ["one"])] == ["one::fast", "one::slow"]


def test_every_note_says_what_was_done() -> None:
    for key, note in mutants.notes().items():
        assert note.startswith(("equivalent: ", "test added: ", "accepted: ")), key
        assert (table.ROOT / key.partition(" | ")[0]).exists(), key


def test_the_page_counts_the_kills_before_tests_were_added(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of five changes, two survive, and two survived until a test was added; the note of a survivor does not count."""
    monkeypatch.setattr(changes, "sources", lambda: [PACKAGE / "core" / "words.py"])
    some = changes.changes()[:5]
    kinds = (None, "test", "test", "test", None)
    monkeypatch.setattr(mutants, "chosen", lambda: some)
    found = {mutant.key: {"killer": killer} for mutant, killer in zip(some, kinds, strict=True)}
    monkeypatch.setattr(mutants, "results", lambda: found)
    notes = ("equivalent: same", "test added: one", "test added: two", "", "test added: in vain")
    written = {mutant.key: note for mutant, note in zip(some, notes, strict=True) if note}
    monkeypatch.setattr(mutants, "notes", lambda: written)
    text = " ".join(mutants.page().split())
    assert "Tests killed 1 of 5 changes (20.0%) before tests were added for survivors" in text
    assert "3 of 5 (60.0%) after." in text
    assert "`VariableReplacer` and `VariableInserter`" in text


def test_a_test_counts_only_if_it_also_fails_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second test fails because of the first one, and the fourth one because of the mutant."""
    runs: list[list[str]] = []

    def attempt(folder: Path, tests: list[str], killer: Path) -> int:
        bad = [test for place, test in enumerate(tests) if test == "fourth" or (test == "second" and place)]
        if bad:
            killer.write_text(bad[0], encoding="utf-8")
        return len(bad[:1])

    def run(function: Callable[[], int]) -> int:
        runs.append(function.args[1])  # type: ignore[attr-defined]
        return function()

    monkeypatch.setattr(mutant_run, "prepare", lambda folder: None)
    monkeypatch.setattr(mutant_run, "attempt", attempt)
    monkeypatch.setattr(mutant_run, "in_fork", run)
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    monkeypatch.setenv(mutant_run.CACHE, "")
    path = PACKAGE / "core" / "words.py"
    names = ["first", "second", "third", "fourth"]
    assert mutant_run.run_mutant(tmp_path, path, "", names) == 1
    assert runs == [names, ["second"], ["third", "fourth"], ["fourth"]]
    assert (tmp_path / "killer.txt").read_text(encoding="utf-8") == "fourth"
    assert mutant_run.run_mutant(tmp_path, path, "", names[:3]) == 0
