"""Test `gpu-check` on a CPU: every part runs, failures are reported, and runs are continued."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from test_rooms import PACKAGE, imported, imports, modules
from torch import Tensor

from fairseq_posenc.attention import PathRefusedError
from fairseq_posenc.commands import gpu_check, peer_layers
from fairseq_posenc.commands.gpu_check import cost, laws, results
from fairseq_posenc.commands.gpu_check.cost import Setting
from fairseq_posenc.commands.gpu_check.page import page
from fairseq_posenc.commands.gpu_check.results import Results, Task
from fairseq_posenc.commands.gpu_check.subjects import Sizes, Subject
from fairseq_posenc.commands.paths_page import LENGTH
from fairseq_posenc.core.terms import OfQuery
from fairseq_posenc.encodings import specs

QUICK = ["--device", "cpu", "--quick"]
CPU = torch.device("cpu")
SIZES, TRAIN = Sizes.quick(CPU), Setting("train", 16, 2)


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
    text = (tmp_path / "gpu.md").read_text()
    assert "not measured on a GPU" in text
    for name in cost.peer_names():
        assert f"| {name} |" in text or peer_layers.ORIGINS[name].missing()
    capsys.readouterr()
    assert gpu_check.main([*QUICK, "--output", str(tmp_path)]) == 0
    assert capsys.readouterr().err == ""
    assert rows_of(tmp_path) == rows


class Parts:
    """Provide two tasks that count how often they run; the first one fails as long as `broken` is true."""

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


def test_a_task_that_would_end_after_the_limit_is_not_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[float] = []
    clock = SimpleNamespace(monotonic=lambda: 0.6 * gpu_check.LIMIT * len(begun))
    monkeypatch.setattr(gpu_check, "time", clock)

    def run() -> list[dict[str, Any]]:
        begun.append(clock.monotonic())
        return [{"ok": True}]

    monkeypatch.setattr(gpu_check, "PARTS", {"laws": lambda sizes: [Task(name, run) for name in ("first", "second")]})
    assert gpu_check.main([*QUICK, "--output", str(tmp_path)]) == gpu_check.UNFINISHED
    assert len(begun) == 1


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


SHAW = Subject("shaw", "clip=4", causal=True)


def failed(rows: list[dict[str, Any]]) -> list[str]:
    return [row["law"] for row in rows if not row["ok"]]


@pytest.mark.parametrize(
    ("error", "broken"),
    [
        (PathRefusedError("no Triton"), ["auto", "explicit"]),
        (ValueError("a fault"), ["auto", "explicit", "fused", "flex"]),
    ],
    ids=["refused", "fault"],
)
def test_only_a_refused_path_that_is_forced_breaks_no_law(
    error: ValueError, broken: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def run(self: laws.Scene, stack: Any, dtype: torch.dtype) -> Any:
        if stack is self.exact:
            return torch.ones(1), {}
        raise error

    monkeypatch.setattr(laws.Scene, "run", run)
    rows = laws.check(SHAW, SIZES, torch.float32)
    assert failed(rows) == [f"equals float64, {path}" for path in broken]
    assert {"causality", "padding"} <= {row["law"] for row in rows}  # the other laws go on
    found = Results(tmp_path, CPU, quick=True)
    found.add("laws", Task("shaw", lambda: rows))
    assert ("no Triton (2 cases: shaw, shaw)" in page(found)) is (len(broken) == 2)


def test_a_path_that_differs_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    original = OfQuery.at

    def at(self: OfQuery, numbers: Tensor, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        return 2 * original(self, numbers, b, h, i, j)

    monkeypatch.setattr(OfQuery, "at", at)
    rows = laws.check(SHAW, SIZES, torch.float32)
    assert failed(rows) == ["equals float64, flex"]


def test_costs_are_relative_to_the_fused_path_without_positions(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a CPU, auto would take the explicit path in training."""
    built, original = [], cost.step_of

    def step_of(subject: Subject, setting: Setting, sizes: Sizes, path: str) -> Any:
        built.append((subject, path))
        return original(subject, setting, sizes, path)

    monkeypatch.setattr(cost, "step_of", step_of)
    (row,) = cost.measured(SHAW, TRAIN, SIZES)
    assert row["ratio"] > 0
    assert built == [(SHAW, "auto"), (Subject("none", "", causal=True), "fused")]


def test_a_training_step_has_gradients() -> None:
    """The sum of a layer norm's outputs would have none. The bias of the keys may have none: softmax ignores it."""
    gradients: Any = cost.step_of(SHAW, TRAIN, SIZES, "auto")()
    assert sum(g is None or not bool(g.abs().max() > 1e-4) for g in gradients) <= 1


def test_a_path_that_is_refused_or_fails_does_not_stop_the_other_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = replace(SIZES, paths=("auto", "explicit", "flex"))
    rows = cost.measured(SHAW, TRAIN, sizes)
    assert [("ratio" in row, "refused" in row) for row in rows] == [(True, False), (True, False), (False, True)]
    assert "trains on a GPU only" in rows[2]["refused"]
    monkeypatch.setattr(cost, "_costs", lambda *given: 1 / 0)
    rows = cost.measured(SHAW, TRAIN, sizes)
    assert [row["ok"] for row in rows] == [False] * 3
    assert rows[0]["text"] == "auto: ZeroDivisionError: division by zero"


def test_an_error_of_another_package_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer_layers.Origin, "label", lambda self: "transformers 4.46.3")
    monkeypatch.setitem(peer_layers.LAYERS, "hf-t5", lambda size: 1 / 0)
    (row,) = cost.measured_peer("hf-t5", TRAIN, SIZES)
    assert row["ok"]
    assert row["refused"] == "hf-t5: ZeroDivisionError: division by zero"


def test_packages_that_are_not_installed_are_named_on_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(peer_layers.Origin, "missing", lambda self: f"{self.package} is not installed")
    assert not {task.name.split()[0] for task in cost.tasks(SIZES)} & set(cost.peer_names())
    line = "x-t5, x-rotary, x-alibi (x-transformers is not installed)."
    assert line in page(Results(tmp_path, CPU, quick=True))


def test_no_encoding_that_compresses_keys_decodes() -> None:
    decoding = [task.name for task in cost.tasks(replace(SIZES, few=False)) if " decode " in task.name]
    assert any(name.startswith("m4m ") for name in decoding)
    assert not any(name.startswith(("linformer ", "diet-abs-lin ")) for name in decoding)


def test_results_of_other_code_are_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def rows() -> int:
        return len(Results(tmp_path, CPU, quick=True).rows)

    Results(tmp_path, CPU, quick=True).add("laws", Task("first", lambda: [{"ok": True}]))
    assert rows() == 1
    monkeypatch.setattr(results, "_code", lambda: "another")
    assert rows() == 0


def test_every_task_forgets_the_kernels_of_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Torch raises an error if a process compiles too many versions of one kernel."""
    resets: list[int] = []
    monkeypatch.setattr(torch._dynamo, "reset", lambda: resets.append(1))
    Parts(monkeypatch).broken = False
    gpu_check.main([*QUICK, "--output", str(tmp_path)])
    assert len(resets) == 2


def test_the_length_of_the_targets_is_measured_first() -> None:
    assert [length for length, _ in Sizes.of(CPU).batches] == [LENGTH, 128, 2048]


def test_the_full_check_has_every_encoding() -> None:
    assert {subject.encoding for subject in Sizes.of(torch.device("cpu")).subjects()} == set(specs())


def test_it_needs_torch_and_numpy_only() -> None:
    """This includes every file that the command imports."""
    known, used = imports(PACKAGE), set[str]()
    todo = [f"fairseq_posenc.{name}" for name in ("commands.gpu_check", "__main__", "commands.doctor.imported")]
    while todo:
        module = todo.pop()
        if module not in used:
            used.add(module)
            others = {*known.get(module, ()), module.rpartition(".")[0]}
            todo += others - {"fairseq_posenc"}
    assert "fairseq_posenc.attention.flex" in used
    files = modules(PACKAGE)
    for module in used & files.keys():
        packages = {name.partition(".")[0] for name, _ in imported(files[module])}
        packages -= {"__future__", "fairseq_posenc", "numpy", "torch"}
        if module == "fairseq_posenc.commands.peer_layers":  # imports a package only to build its layer
            packages -= {"fairseq", "transformers", "x_transformers"}
        assert packages <= set(sys.stdlib_module_names), module
