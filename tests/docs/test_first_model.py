"""Test that the commands of a first model in docs/installation.md work in the order of the page, without changes."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "installation.md").read_text(encoding="utf-8")
SECTION = PAGE.partition("## A first model")[2].partition("\n## ")[0]
#: The test leaves this command out, because it takes minutes and downloads packages. It uses its own environment.
INSTALL = "make setup\n"


def copy_of_the_clone(folder: Path) -> Path:
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, files.split("\0")):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    (folder / ".venv").symlink_to(sys.prefix)
    return folder


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.skipif(sys.prefix == sys.base_prefix, reason="the page activates a virtual environment")
def test_a_newcomer_trains_and_scores_a_model(tmp_path: Path) -> None:
    commands = "\n".join(re.findall(r"```bash\n(.*?)```", SECTION, re.DOTALL))
    assert commands.startswith(INSTALL)
    subprocess.run(["make", "-n", "setup"], cwd=ROOT, check=True, capture_output=True)
    clone = copy_of_the_clone(tmp_path / "clone")
    environment = {**os.environ, "PYTHONPATH": str(clone)}
    ran = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", commands.removeprefix(INSTALL)],
        cwd=clone,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert "# Translation that needs word order" in ran.stdout
    scores = json.loads(ran.stdout[ran.stdout.rindex("[\n") :])
    assert [score["name"] for score in scores] == ["BLEU", "chrF2"]
    translations = (clone / "results" / "first-model" / "translations.txt").read_text(encoding="utf-8")
    assert len(translations.splitlines()) == 50
