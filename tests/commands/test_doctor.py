"""Test each check of doctor on invented values and stand-in modules, and the command as a user runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
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


TABLES: dict[str, Any] = tomllib.loads(Path(__file__).with_name("doctor.toml").read_text("utf-8"))
PROGRAMS = {"c++": "/bin/c++", "my-cxx": "/opt/cxx"}


def checks() -> Iterator[tuple[report.Check, str, str]]:
    """Yield checks of invented values, with their status and a part of what they find."""
    for module in (machine, stack):
        for name, words, *expected in TABLES[module.__name__.rpartition(".")[2]]:
            yield getattr(module, name)(*(None if word == "none" else word for word in words)), *expected
    for facts, gpu, *expected in TABLES["apex"]:
        yield check_apex(Apex(**facts), gpu=gpu), *expected
    yield machine.check_compiler({"CXX": "my-cxx -O2"}, PROGRAMS.get), "ok", "/opt/cxx"
    yield machine.check_compiler({"CXX": "gone"}, PROGRAMS.get), "warn", "tried gone"
    yield stack.check_extension(missing), "fail", "No module named 'fairseq.data.data_utils_fast'"


@pytest.mark.parametrize(("check", "status", "found"), [*checks()], ids=lambda value: getattr(value, "name", None))
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
