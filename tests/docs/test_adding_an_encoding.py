"""Test that the encoding of docs/adding-an-encoding.md works, with the line in the registry that the page names."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest
from laws.cases import Case
from laws.compare import assert_refused
from laws.scene import Scene
from laws.test_causality import check_causality
from laws.test_incremental import STEPS, check_incremental
from laws.test_memory import check_memory
from laws.test_padding import check_padding
from laws.test_reference import EXPLICIT, Forward, check_fused, check_gradients, check_reference

from fairseq_posenc import encodings
from fairseq_posenc.encodings import build
from fairseq_posenc.encodings.registry import ENCODINGS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "adding-an-encoding.md").read_text(encoding="utf-8")


def examples(page: str) -> list[tuple[str, str, str]]:
    """Return the name, the name of the file and the code of each encoding of a page."""
    codes = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    places = re.findall(r'`"([a-z-]+)": "([a-z]+):[A-Za-z]+",`', page)
    return [(name, stem, code) for (name, stem), code in zip(places, codes, strict=True)]


def add_encodings(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Add the encodings of a page: their modules as if they were in the package, and their lines of the registry."""
    for name, stem, code in examples(page):
        module = types.ModuleType(f"{encodings.__name__}.{stem}")
        module.__package__ = encodings.__name__
        monkeypatch.setitem(sys.modules, module.__name__, module)
        monkeypatch.setitem(ENCODINGS, name, f"{stem}:{name.title()}")
        exec(compile(code, f"docs/adding-an-encoding.md, {name}", "exec"), module.__dict__)


def check(case: Case) -> None:
    """Check an encoding by the laws that an encoding of one number per distance could break."""
    scene = Scene(before=2, side="left")
    check_reference(case, scene)
    check_fused(case, scene)
    check_gradients(Forward(case, scene), "explicit", EXPLICIT)
    check_padding(case, "left", "auto")
    check_memory(case, "auto")
    if case.causal:
        check_causality(case, "auto")
        check_incremental(case, STEPS["in chunks"], "left", "auto")


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("args", [{}, {"share": "none"}])
def test_the_encoding_of_the_page_works(args: dict[str, object], causal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    add_encodings(PAGE, monkeypatch)
    check(Case("root", args, causal))


def test_the_learned_example_has_one_number_per_head(monkeypatch: pytest.MonkeyPatch) -> None:
    add_encodings(PAGE, monkeypatch)
    shape = Case("root").shape(layers=3, heads=2)
    assert {name: tuple(p.shape) for name, p in build("root", None, shape).named_parameters()} == {"root.slope": (1, 2)}
    assert build("root", "share=none", shape).members["root"].slope.shape == (3, 2)
    assert build("root", None, shape).members["root"].slope.eq(1).all()
    assert_refused(lambda: build("root", "init_std=0.5", shape), "init_std", "no effect")


def test_a_wrong_example_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    right = "return -slope *"
    assert right in PAGE
    add_encodings(PAGE.replace(right, "return slope *"), monkeypatch)
    with pytest.raises(AssertionError, match="differs by"):
        check(Case("root"))


# --- the commands of the page


def run(*words: str, cwd: Path = ROOT, **kwargs: Any) -> None:
    """Run a Python module, with the package of the folder `cwd`."""
    env = {**os.environ, "PYTHONPATH": str(cwd)}
    done = subprocess.run([sys.executable, "-m", *words], cwd=cwd, env=env, capture_output=True, text=True, **kwargs)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]


@pytest.mark.parametrize(("stem", "code"), [(stem, code) for _, stem, code in examples(PAGE)])
def test_the_examples_are_formatted(stem: str, code: str) -> None:
    for command in ("check", "format --check"):
        run("ruff", *command.split(), "--stdin-filename", f"fairseq_posenc/encodings/{stem}.py", "-", input=code)


@pytest.mark.long
def test_the_examples_are_annotated(tmp_path: Path) -> None:
    """The files are copies outside of the package, so they import the package by its name."""
    for _, stem, code in examples(PAGE):
        (tmp_path / f"{stem}.py").write_text(code.replace("from ..", "from fairseq_posenc."), encoding="utf-8")
    run("mypy", *map(str, tmp_path.glob("*.py")))


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_an_encoding_needs_only_a_file_and_a_line_to_pass_its_tests(tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    not_copied = shutil.ignore_patterns(".git", ".venv*", ".*_cache", "__pycache__", "results", "_build")
    shutil.copytree(ROOT, clone, ignore=not_copied)
    folder = clone / "fairseq_posenc" / "encodings"
    for name, stem, code in examples(PAGE):
        (folder / f"{stem}.py").write_text(code, encoding="utf-8")
        text = (folder / "registry.py").read_text(encoding="utf-8")
        line = f'    "{name}": "{stem}:{name.title()}",\n'
        (folder / "registry.py").write_text(text.replace("\n}\n", f"\n{line}}}\n", 1), encoding="utf-8")
    subprocess.run([sys.executable, "docs/_generate"], cwd=clone, check=True)
    selected = " or ".join(name for name, _, _ in examples(PAGE))
    run("pytest", "-q", "-p", "no:cacheprovider", "-n", "2", "-k", selected, "tests", cwd=clone)
