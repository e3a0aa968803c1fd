"""Test the files of the project that tools read, and that its sdist and wheel work in an empty folder."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import fairseq_posenc
from fairseq_posenc.encodings import names

ROOT = Path(__file__).parents[1]
USE = """
import sys, torch, fairseq_posenc
from fairseq_posenc.encodings import StackShape, names
from fairseq_posenc.papers.reading import tables
from fairseq_posenc.stack import Stack
assert fairseq_posenc.__file__.startswith(sys.argv[1]), fairseq_posenc.__file__
for name in ("shaw", "m4m", "rope"):
    Stack(name, None, StackShape(layers=1, heads=2, dim=8, max_length=8))
print(len(names()), fairseq_posenc.__version__)
"""


def test_the_version_stands_in_one_place() -> None:
    assert "__version__" in (ROOT / "setup.py").read_text(encoding="utf-8")
    asked = [sys.executable, "setup.py", "--version"]
    told = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()[-1]
    cited = re.findall(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)
    assert [told, *cited] == [fairseq_posenc.__version__] * 2


def test_the_citation_has_the_papers_that_are_compared() -> None:
    cited = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    with (ROOT / "fairseq_posenc" / "papers" / "citations.toml").open("rb") as file:
        titles = [paper["title"] for paper in tomllib.load(file).values()]
    assert titles
    assert [title for title in titles if title not in cited] == []


@pytest.mark.long
def test_sdist_and_wheel_work_in_an_empty_folder(tmp_path: Path) -> None:
    def run(*command: str, where: Path, **more: str) -> str:
        environment = {**{k: v for k, v in os.environ.items() if k != "PYTHONPATH"}, **more}
        ran = subprocess.run(command, cwd=where, env=environment, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stderr[-2000:]
        return ran.stdout

    source, built, target, empty = (tmp_path / name for name in ("source", "built", "target", "empty"))
    files = run("git", "ls-files", "fairseq_posenc", "setup.py", "README.md", "LICENSE", where=ROOT).split()
    for name in files:
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, source / name)
    empty.mkdir()
    run(sys.executable, "setup.py", "-q", "sdist", "-d", str(built), where=source)
    (sdist,) = built.iterdir()
    pip = [sys.executable, "-m", "pip", "-q"]
    run(*pip, "wheel", str(sdist), "--no-deps", "--no-build-isolation", "-w", str(built), where=empty)
    (wheel,) = built.glob("*.whl")
    run(*pip, "install", "--no-deps", "--target", str(target), str(wheel), where=empty)
    printed = run(sys.executable, "-c", USE, str(target), where=empty, PYTHONPATH=str(target))
    assert printed.split() == [str(len(names())), fairseq_posenc.__version__]
    installed = {str(path.relative_to(target)) for path in (target / "fairseq_posenc").rglob("*")}
    assert [name for name in files if name.startswith("fairseq_posenc/") and name not in installed] == []
