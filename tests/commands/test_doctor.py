"""Test each check of doctor on invented values and stand-in modules, and the command as a user runs it."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from support_processes import without_fairseq

from fairseq_posenc.commands import doctor
from fairseq_posenc.commands.doctor import machine, plugin, report, stack
from fairseq_posenc.commands.doctor.apex import Apex, check_apex, probe


def missing(module: str) -> object:
    raise ImportError(f"No module named {module!r}")


WHOLE = Apex(present=True, version="0.1", is_nvidia=True, layer_norm=True)
WITHOUT_KERNELS = dataclasses.replace(WHOLE, layer_norm=False)
TUNED = {"MALLOC_MMAP_THRESHOLD_": "1", "MALLOC_TRIM_THRESHOLD_": "1"}
BROKEN = "OSError: libcudart.so.13: cannot open"
#: Checks of invented values, with their status and a part of what they find.
CHECKS = [
    (machine.check_python((3, 11, 7)), "ok", "3.11.7"),
    (machine.check_python((3, 13, 0)), "warn", "untested"),
    (machine.check_python((3, 10, 0)), "fail", "3.10.0"),
    (machine.check_compiler({"CXX": "my-cxx -O2"}, {"c++": "/bin/c++", "my-cxx": "/opt/cxx"}.get), "ok", "/opt/cxx"),
    (machine.check_compiler({"CXX": "gone"}, {"c++": "/bin/c++"}.get), "warn", "tried gone"),
    (machine.check_gpu("13.0", ["H100", "H100"], True), "ok", "2 x H100"),
    (machine.check_gpu(None, [], False), "ok", "no GPU"),
    (machine.check_gpu(None, [], True), "warn", "CPU build"),
    (machine.check_disk(100_000_000_000, "/here"), "ok", "100.0 GB free in /here"),
    (machine.check_disk(100_000_000, "/here"), "fail", "0.1 GB"),
    (machine.check_allocator(TUNED, "glibc"), "ok", "MALLOC_TRIM_THRESHOLD_=1"),
    (machine.check_allocator({}, "glibc"), "warn", "twice as long"),
    (stack.check_torch("2.13.0+cu130", "13.0"), "ok", "CUDA 13.0"),
    (stack.check_torch("2.9.1", None), "warn", "untested"),
    (stack.check_torch("2.4.0", None), "fail", "2.4.0"),
    (stack.check_torch("2.13.0", None, BROKEN), "fail", "libcudart"),
    (stack.check_numpy("1.26.4"), "ok", "1.26.4"),
    (stack.check_numpy("2.1.0"), "warn", "untested"),
    (stack.check_fairseq("0.12.3.1", None), "ok", "0.12.3.1"),
    (stack.check_fairseq("0.12.9", None), "warn", "untested"),
    (stack.check_fairseq("0.12.3.1", "0.12.2"), "fail", "both installed"),
    (stack.check_fairseq(None, "0.12.2"), "fail", "instead of fairseq-fixed"),
    (stack.check_fairseq("0.12.3.1", None, "ValueError: mutable default"), "fail", "mutable default"),
    (stack.check_extension(missing), "fail", "No module named 'fairseq.data.data_utils_fast'"),
    (stack.check_package("p", "p", "needed", True, "ImportError: p", None), "fail", "not installed; needed"),
    (stack.check_package("p", "p", "needed for x", False, BROKEN, "1.0"), "warn", "libcudart"),
    (check_apex(WHOLE, gpu=True), "ok", "fairseq uses FusedLayerNorm"),
    (check_apex(WITHOUT_KERNELS, gpu=True), "fail", "no CUDA kernels"),
    (check_apex(WITHOUT_KERNELS, gpu=False), "warn", "no CUDA kernels"),
    (check_apex(Apex(present=True), gpu=True), "warn", "not NVIDIA's apex"),
    (check_apex(Apex(present=True, error=BROKEN), gpu=False), "fail", "libcudart"),
]


@pytest.mark.parametrize(("check", "status", "found"), CHECKS, ids=lambda value: getattr(value, "name", None))
def test_a_check_says_what_it_finds_and_how_to_repair_it(check: report.Check, status: str, found: str) -> None:
    assert check.status == status
    assert found in check.found
    assert bool(check.mend) == (status != "ok")
    assert (f"-> {check.mend}" in report.as_text([check])) == bool(check.mend)


# The parts of NVIDIA apex that fairseq uses. Another project is named apex, too.
NVIDIA = {"apex/__init__.py": "", "apex/normalization.py": "class FusedLayerNorm: pass\n"}


@pytest.mark.parametrize(
    ("modules", "expected"),
    [
        pytest.param({**NVIDIA, "fused_layer_norm_cuda.py": ""}, (True, True, ""), id="nvidia"),
        pytest.param(NVIDIA, (True, False, ""), id="no-kernel"),
        pytest.param({"apex/__init__.py": "", "apex/forms.py": ""}, (False, False, ""), id="pypi"),
        pytest.param({"apex/__init__.py": "raise RuntimeError('x')\n"}, (False, False, "RuntimeError: x"), id="raises"),
    ],
)
def test_doctor_recognises_each_kind_of_apex(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, modules: dict[str, str], expected: tuple[Any]
) -> None:
    for name, text in modules.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    with mock.patch.dict(sys.modules):
        facts = probe()
    assert (facts.present, facts.is_nvidia, facts.layer_norm, facts.error) == (True, *expected)


def test_two_copies_of_the_plugin_are_found(tmp_path: Path) -> None:
    first, second = (tmp_path / name / plugin.NAME for name in ("one", "two"))
    for package in (first, second):
        package.mkdir(parents=True)
        (package / "__init__.py").touch()
    (tmp_path / "link").symlink_to(tmp_path / "one")
    once = plugin.on_path([str(first.parent), str(tmp_path / "link"), str(tmp_path), "/nowhere"])
    assert once == {first}
    assert plugin.check_plugin(first, once, True).status == "ok"
    both = plugin.check_plugin(first, plugin.on_path([str(first.parent), str(second.parent)]), True)
    assert both.status == "fail"
    assert str(second) in both.found


def test_command_works_with_a_broken_fairseq(tmp_path: Path) -> None:
    """It prints one JSON list and nothing else."""
    (tmp_path / "fairseq").mkdir()
    (tmp_path / "fairseq" / "__init__.py").write_text("raise ValueError('mutable default')\n")
    code = "from fairseq_posenc.commands import doctor; assert not {'torch', 'fairseq'} & set(sys.modules)\n"
    code += "sys.exit(doctor.main(sys.argv[1:]))"
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    result = subprocess.run(without_fairseq(code, "--json"), env=env, capture_output=True, text=True, check=False)
    checks = {check["name"]: check for check in json.loads(result.stdout)}
    assert result.returncode == 1
    assert "mutable default" in checks["fairseq"]["found"]


def test_command_in_a_working_environment(capfd: pytest.CaptureFixture[str]) -> None:
    status = doctor.main(["--json"])
    checks = json.loads(capfd.readouterr().out)
    assert {"python", "torch", "fairseq", "compiler", "gpu", "apex", "disk"} <= {check["name"] for check in checks}
    assert status == int(any(check["status"] == "fail" for check in checks))
    assert all(check.keys() == {"name", "status", "found", "mend"} for check in checks)
