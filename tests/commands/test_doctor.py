"""Test each check of doctor on invented values, and the command as a user runs it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from support_processes import without_fairseq

from fairseq_posenc.commands import doctor
from fairseq_posenc.commands.doctor import machine, plugin, report, stack


def missing(module: str) -> object:
    raise ImportError(f"No module named {module!r}")


@pytest.mark.parametrize(
    ("version", "status"),
    [((3, 11, 7), "ok"), ((3, 12, 1), "ok"), ((3, 13, 0), "warn"), ((3, 10, 0), "fail")],
)
def test_python(version: tuple[int, ...], status: str) -> None:
    check = machine.check_python(version)
    assert check.status == status
    assert ("untested" in check.found) == (status == "warn")
    assert bool(check.mend) == (status != "ok")


def test_the_compiler_in_cxx_comes_first() -> None:
    paths = {"c++": "/bin/c++", "my-cxx": "/opt/my-cxx"}
    assert machine.check_compiler({}, paths.get).found == "/bin/c++"
    assert machine.check_compiler({"CXX": "my-cxx -O2"}, paths.get).found == "/opt/my-cxx"
    assert machine.check_compiler({"CXX": "gone"}, paths.get).status == "warn"
    assert "g++" in machine.check_compiler({}, {}.get).mend


def test_gpu() -> None:
    assert machine.check_gpu("13.0", ["H100", "H100"], True).found == "2 x H100"
    assert machine.check_gpu(None, [], False).status == "ok"
    assert "CPU build" in machine.check_gpu(None, [], True).found
    assert "sees no GPU" in machine.check_gpu("13.0", [], True).found


@pytest.mark.parametrize(("free", "status"), [(100e9, "ok"), (2e9, "warn"), (1e8, "fail")])
def test_disk(free: float, status: str) -> None:
    assert machine.check_disk(int(free), "/somewhere").status == status


def test_allocator() -> None:
    tuned = {"MALLOC_MMAP_THRESHOLD_": "1", "MALLOC_TRIM_THRESHOLD_": "1"}
    assert machine.check_allocator(tuned, "glibc").status == "ok"
    assert machine.check_allocator({}, "glibc").status == "warn"
    assert machine.check_allocator({}, "musl").status == "ok"


@pytest.mark.parametrize(
    ("version", "status"),
    [("2.13.0+cpu", "ok"), ("2.13.0+cu130", "ok"), ("2.9.1", "warn"), ("2.4.0", "fail"), (None, "fail")],
)
def test_torch(version: str | None, status: str) -> None:
    assert stack.check_torch(version, None).status == status


def test_a_torch_that_cannot_be_imported() -> None:
    check = stack.check_torch("2.13.0", None, "OSError: libcudart.so.13: cannot open")
    assert check.status == "fail"
    assert "libcudart" in check.found


@pytest.mark.parametrize(("version", "status"), [("2.4.6", "ok"), ("1.26.4", "ok"), ("2.1.0", "warn"), (None, "fail")])
def test_numpy(version: str | None, status: str) -> None:
    assert stack.check_numpy(version).status == status


@pytest.mark.parametrize(
    ("fixed", "stock", "error", "status", "says"),
    [
        ("0.12.3.1", None, "", "ok", "0.12.3.1"),
        ("0.12.9", None, "", "warn", "untested"),
        ("0.12.3.1", "0.12.2", "", "fail", "both installed"),
        (None, "0.12.2", "", "fail", "instead of fairseq-fixed"),
        (None, None, "", "fail", "not installed"),
        ("0.12.3.1", None, "ValueError: mutable default", "fail", "mutable default"),
    ],
)
def test_fairseq(fixed: str | None, stock: str | None, error: str, status: str, says: str) -> None:
    check = stack.check_fairseq(fixed, stock, error)
    assert check.status == status
    assert says in check.found


def test_extension() -> None:
    assert stack.check_extension().status == "ok"
    assert stack.check_extension(missing).status == "fail"


def test_import_error_names_what_was_raised() -> None:
    assert stack.import_error("x", missing) == "ImportError: No module named 'x'"
    assert stack.import_error("json") == ""


def test_packages() -> None:
    assert stack.check_package("p", "p", "needed", True, "", "1.0").status == "ok"
    assert stack.check_package("p", "p", "needed", True, "ImportError: p", None).status == "fail"
    broken = stack.check_package("p", "p", "needed for x", False, "OSError: q", "1.0")
    assert broken.status == "warn"
    assert "OSError: q" in broken.found


def copy_at(folder: Path) -> Path:
    package = folder.resolve() / plugin.NAME
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    return package


def test_two_copies_of_the_plugin_are_found(tmp_path: Path) -> None:
    first, second = copy_at(tmp_path / "one"), copy_at(tmp_path / "two")
    (tmp_path / "link").symlink_to(tmp_path / "one")
    once = plugin.on_path([str(first.parent), str(tmp_path / "link"), str(tmp_path), "/nowhere"])
    assert once == {first}
    assert plugin.check_plugin(first, once, True).status == "ok"
    both = plugin.check_plugin(first, plugin.on_path([str(first.parent), str(second.parent)]), True)
    assert both.status == "fail"
    assert str(second) in both.found


def test_text_has_a_line_per_repair_and_counts() -> None:
    text = report.as_text([report.Check("a", "ok", "1"), report.Check("b", "fail", "broken", "do this")])
    assert "-> do this" in text
    assert text.endswith("1 ok, 0 warn, 1 fail")


def test_command_prints_one_json_list_and_nothing_else(capfd: pytest.CaptureFixture[str]) -> None:
    status = doctor.main(["--json"])
    checks = json.loads(capfd.readouterr().out)
    assert status == int(any(check["status"] == "fail" for check in checks))
    assert all(check.keys() == {"name", "status", "found", "mend"} for check in checks)
    assert all(isinstance(value, str) for check in checks for value in check.values())
    names = [check["name"] for check in checks]
    assert len(names) == len(set(names))
    assert {"python", "torch", "fairseq", "compiler", "gpu", "apex", "disk", "plugin"} <= set(names)
    assert {"sacrebleu", "scikit-learn", "scipy", "rapidfuzz"} <= set(names)


def test_command_works_with_a_broken_fairseq(tmp_path: Path) -> None:
    (tmp_path / "fairseq").mkdir()
    (tmp_path / "fairseq" / "__init__.py").write_text("raise ValueError('mutable default')\n")
    code = "from fairseq_posenc.commands import doctor; sys.exit(doctor.main(sys.argv[1:]))"
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    result = subprocess.run(without_fairseq(code, "--json"), env=env, capture_output=True, text=True, check=False)
    checks = {check["name"]: check for check in json.loads(result.stdout)}
    assert result.returncode == 1
    assert "mutable default" in checks["fairseq"]["found"]


def test_importing_doctor_imports_neither_torch_nor_fairseq() -> None:
    code = "import fairseq_posenc.commands.doctor\nassert not {'torch', 'fairseq'} & set(sys.modules)"
    subprocess.run(without_fairseq(code), check=True)
