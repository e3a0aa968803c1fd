"""Test that the recipes accept the commands on the pages: each is planned with --dry-run."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def commands() -> list[str]:
    """Return the commands of recipes in the code blocks of all pages, each once, without comments."""
    blocks = (block for page in PAGES for block in re.findall(r"```(?:bash)?\n(.*?)```", page.read_text("utf-8"), re.S))
    lines = (re.sub(r"\s+# .*$", "", line) for block in blocks for line in block.replace("\\\n", " ").splitlines())
    return list(dict.fromkeys(line.strip() for line in lines if re.match(r"recipes/\w+/run\.sh ", line)))


def test_pages_show_commands_of_recipes() -> None:
    assert len(commands()) > 50


@pytest.mark.parametrize("command", [line for line in commands() if "--help" not in line])
def test_a_recipe_accepts_the_command(command: str) -> None:
    process = subprocess.run(["bash", "-c", f"{command} --dry-run"], cwd=ROOT, capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
