"""Test that setup.py, README.md and CITATION.cff name the versions of the code, and the packages that it imports."""

from __future__ import annotations

import ast
import re
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import setuptools

import fairseq_posenc
from fairseq_posenc.commands.doctor.machine import TESTED_PYTHONS
from fairseq_posenc.commands.doctor.stack import TESTED_FAIRSEQ

ROOT = Path(__file__).parents[1]


@pytest.fixture
def setup_arguments(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return the arguments that setup.py gives to setuptools."""
    arguments: dict[str, Any] = {}
    monkeypatch.setattr(setuptools, "setup", arguments.update)
    monkeypatch.setattr(setuptools, "find_packages", lambda **_: [])
    runpy.run_path(str(ROOT / "setup.py"))
    return arguments


def test_the_versions_stand_in_one_place(setup_arguments: dict[str, Any]) -> None:
    cited = re.findall(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)
    assert [setup_arguments["version"], *cited] == [fairseq_posenc.__version__] * 2
    assert f"fairseq-fixed=={TESTED_FAIRSEQ}" in setup_arguments["install_requires"]
    assert f"[fairseq-fixed {TESTED_FAIRSEQ}](" in (ROOT / "README.md").read_text(encoding="utf-8")
    tested = [f"{major}.{minor}" for major, minor in TESTED_PYTHONS]
    checks = (ROOT / "recipes" / "lib" / "setup_checks.sh").read_text("utf-8")
    assert f'TESTED_PYTHONS="{" ".join(tested)}"' in checks
    prefix = "Programming Language :: Python :: "
    classifiers = setup_arguments["classifiers"]
    assert [text.removeprefix(prefix) for text in classifiers if text.startswith(prefix)] == tested
    assert setup_arguments["python_requires"] == f">={min(tested)}"


def imported_at_once(tree: ast.AST) -> Iterator[str]:
    """Yield the packages that Python imports with a module. Imports that only type checkers read do not count."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield str(node.module).partition(".")[0]
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        elif not isinstance(node, (ast.FunctionDef, ast.Lambda)):
            yield from imported_at_once(node)


def test_the_package_imports_only_what_it_installs(setup_arguments: dict[str, Any]) -> None:
    """Training needs no packages of the scores, and export-hf imports one file only if transformers is installed."""
    needed = {re.split(r"[^\w.-]", requirement)[0] for requirement in setup_arguments["install_requires"]}
    of_fairseq = {"fairseq", "fairseq_cli", "omegaconf", "hydra"}
    files = {*(ROOT / "fairseq_posenc").rglob("*.py")} - {ROOT / "fairseq_posenc" / "hub" / "transformers_models.py"}
    imported = {name for file in files for name in imported_at_once(ast.parse(file.read_text("utf-8")))}
    assert imported - sys.stdlib_module_names - needed - of_fairseq == set()
    extras = setup_arguments["extras_require"]
    assert [name for name, packages in extras.items() if "fastBPE" in packages] == ["fastbpe"], "it needs a compiler"
