"""Test that the encoding of docs/adding-an-encoding.md works, with the line in the registry that the page names."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import types
from pathlib import Path

import pytest
from laws.cases import Case
from laws.scene import Scene
from laws.test_causality import check_causality
from laws.test_incremental import STEPS, check_incremental
from laws.test_reference import check_fused, check_reference

from fairseq_posenc import encodings
from fairseq_posenc.encodings.registry import ENCODINGS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "adding-an-encoding.md").read_text(encoding="utf-8")
NAME, FILE, CLASS = re.findall(r'`"([a-z-]+)": "([a-z]+):([A-Za-z]+)",`', PAGE)[0]
CODE = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)[0]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("args", [{}, {"share": "none"}])
def test_the_encoding_of_the_page_works(args: dict[str, object], causal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType(f"{encodings.__name__}.{FILE}")
    module.__package__ = encodings.__name__
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(ENCODINGS, NAME, f"{FILE}:{CLASS}")
    exec(compile(CODE, "docs/adding-an-encoding.md", "exec"), module.__dict__)
    case, scene = Case(NAME, args, causal), Scene(before=2, side="left")
    check_reference(case, scene)
    check_fused(case, scene)
    if causal:
        check_causality(case, "auto")
        check_incremental(case, STEPS["in chunks"], "left", "auto")


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_an_encoding_needs_only_a_file_and_a_line_to_pass_its_tests(tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    not_copied = shutil.ignore_patterns(".git", ".venv*", ".*_cache", "__pycache__", "results", "_build")
    shutil.copytree(ROOT, clone, ignore=not_copied)
    folder = Path("fairseq_posenc") / "encodings"
    (clone / folder / f"{FILE}.py").write_text(CODE, encoding="utf-8")
    registry = clone / folder / "registry.py"
    text = registry.read_text(encoding="utf-8").replace("\n}\n", f'\n    "{NAME}": "{FILE}:{CLASS}",\n}}\n', 1)
    registry.write_text(text, encoding="utf-8")
    file = str(folder / f"{FILE}.py")
    tests = ["pytest", "-q", "-p", "no:cacheprovider", "-n", "2", "-k", NAME, "tests"]
    checks = [["ruff", "check", file], ["ruff", "format", "--check", file], ["mypy", file]]
    for command in (["docs/_generate"], *(["-m", *words] for words in (*checks, tests))):
        env = {**os.environ, "PYTHONPATH": str(clone)}
        done = subprocess.run([sys.executable, *command], cwd=clone, env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]
