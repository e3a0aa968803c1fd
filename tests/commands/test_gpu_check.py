"""Test `gpu-check` on a CPU: every part runs, failures are reported, and runs are continued."""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from test_rooms import PACKAGE, imports, modules
from torch import Tensor

from fairseq_posenc.commands import gpu_check
from fairseq_posenc.commands.gpu_check import laws
from fairseq_posenc.commands.gpu_check.results import Task
from fairseq_posenc.commands.gpu_check.subjects import Sizes, Subject
from fairseq_posenc.core.terms import OfQuery
from fairseq_posenc.encodings import names

QUICK = ["--device", "cpu", "--quick"]


def rows_of(folder: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads((folder / "gpu.json").read_text())["rows"]
    return rows


def test_every_part_runs_on_a_cpu_and_a_second_run_has_nothing_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert gpu_check.main([*QUICK, "--output", str(tmp_path)]) == 0
    rows = rows_of(tmp_path)
    assert {row["part"] for row in rows} == set(gpu_check.PARTS)
    assert all(row["ok"] for row in rows)
    done = {row["law"] for row in rows if row["part"] == "laws"}
    assert done == {*(f"equals float64, {path}" for path in ("auto", "explicit", "fused", "flex")), *laws.LAWS}
    page = (tmp_path / "gpu.md").read_text()
    assert "not measured on a GPU" in page
    capsys.readouterr()
    assert gpu_check.main([*QUICK, "--output", str(tmp_path)]) == 0
    assert capsys.readouterr().err == ""
    assert rows_of(tmp_path) == rows


class Parts:
    """Two tasks that count how often they run; the first one fails as long as `broken`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.runs: list[str] = []
        self.broken = True
        monkeypatch.setattr(gpu_check, "PARTS", {"laws": self.tasks})

    def tasks(self, sizes: Sizes) -> list[Task]:
        return [Task("first", self.first), Task("second", self.second)]

    def first(self) -> list[dict[str, Any]]:
        self.runs.append("first")
        if self.broken:
            raise RuntimeError("an illegal access\nmore")
        return [{"ok": True}]

    def second(self) -> list[dict[str, Any]]:
        self.runs.append("second")
        return [{"ok": True}]


def test_a_failure_sets_the_status_does_not_stop_the_rest_and_is_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    parts, arguments = Parts(monkeypatch), [*QUICK, "--output", str(tmp_path)]
    assert gpu_check.main(arguments) == 1
    assert parts.runs == ["first", "second"]
    assert "first: RuntimeError: an illegal access\n" in capsys.readouterr().err
    assert "first: RuntimeError: an illegal access" in (tmp_path / "gpu.md").read_text()
    parts.broken = False
    assert gpu_check.main(arguments) == 0
    assert parts.runs == ["first", "second", "first"]


def test_a_run_that_lacks_time_is_continued(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    parts, arguments = Parts(monkeypatch), [*QUICK, "--output", str(tmp_path)]
    parts.broken = False
    monkeypatch.setattr(gpu_check, "LIMIT", -1)
    assert gpu_check.main(arguments) == gpu_check.UNFINISHED
    assert "run the same command again" in capsys.readouterr().err
    monkeypatch.undo()
    parts.__init__(monkeypatch)  # type: ignore[misc]
    parts.broken = False
    assert gpu_check.main(arguments) == 0
    assert parts.runs == ["first", "second"]


def test_results_of_other_settings_are_replaced_with_a_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Parts(monkeypatch).broken = False
    old = {"setting": {"device": "another"}, "rows": [{"part": "laws", "task": "first", "ok": True}]}
    (tmp_path / "gpu.json").write_text(json.dumps(old))
    gpu_check.main([*QUICK, "--output", str(tmp_path)])
    assert "another" in capsys.readouterr().err
    assert len(rows_of(tmp_path)) == 2


def test_a_missing_gpu_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(SystemExit):
        gpu_check.main(["--output", str(tmp_path)])
    assert "torch sees no GPU" in capsys.readouterr().err


def test_a_path_that_differs_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    original = OfQuery.at

    def at(self: OfQuery, numbers: Tensor, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        return 2 * original(self, numbers, b, h, i, j)

    monkeypatch.setattr(OfQuery, "at", at)
    sizes = Sizes.quick(torch.device("cpu"))
    rows = laws.check(Subject("shaw", "clip=4", causal=True), sizes, torch.float32)
    failed = [row["law"] for row in rows if not row["ok"]]
    assert failed == ["equals float64, flex"]


def test_the_full_check_has_every_encoding() -> None:
    assert {subject.encoding for subject in Sizes.of(torch.device("cpu")).subjects()} == set(names())


def test_it_needs_torch_and_numpy_only() -> None:
    """This includes every file that the command imports."""
    known, used, todo = imports(PACKAGE), set[str](), ["commands.gpu_check", "__main__", "commands.doctor.imported"]
    while todo:
        module = todo.pop()
        if module not in used:
            used.add(module)
            parents = [module.rpartition(".")[0]] if "." in module else []
            todo += [other for other in (*known.get(module, ()), *parents) if other != "__init__"]
    assert "attention.flex" in used
    files = modules(PACKAGE)
    for module in used & files.keys():
        for node in ast.walk(ast.parse(files[module].read_text("utf-8"))):
            packages = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            packages += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            own = {package.partition(".")[0] for package in packages} - {"__future__", "torch", "numpy"}
            assert own <= set(sys.stdlib_module_names), module
