"""Test recipes/lib/env.sh: which environment it activates, and which variables it sets."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

SHOW = "source recipes/lib/env.sh; command -v python; "
SHOW += 'echo "$POSENC_ROOT $MALLOC_MMAP_THRESHOLD_ ${PYTHONDONTWRITEBYTECODE-unset}"'


def fake_python(environment: Path, status: int = 0) -> Path:
    """Write a `python` that only answers the question of env.sh whether fairseq is installed."""
    python = environment / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f"#!/bin/sh\nexit {status}\n")
    python.chmod(0o755)
    return python


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    lib = tmp_path / "checkout" / "recipes" / "lib"
    lib.mkdir(parents=True)
    shutil.copy(Path(__file__).parents[3] / "recipes" / "lib" / "env.sh", lib)
    return tmp_path / "checkout"


def source(checkout: Path, active: Path | None = None, **env: str) -> subprocess.CompletedProcess[str]:
    path = "/usr/bin:/bin" if active is None else f"{active}/bin:/usr/bin:/bin"
    command = ["bash", "-euc", SHOW]
    return subprocess.run(command, cwd=checkout, env={"PATH": path, **env}, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("env", "is_mine"),
    [
        ({}, False),
        ({"VIRTUAL_ENV": "x"}, True),
        ({"CONDA_PREFIX": "x"}, True),
        ({"CONDA_PREFIX": "x", "CONDA_DEFAULT_ENV": "base"}, False),
        ({"VIRTUAL_ENV": "x", "POSENC_USE_VENV": "1"}, False),  # as make does
    ],
)
def test_an_active_environment_is_used_and_otherwise_that_of_the_repository(
    env: dict[str, str], is_mine: bool, checkout: Path, tmp_path: Path
) -> None:
    own, mine = fake_python(checkout / ".venv"), fake_python(tmp_path / "mine")
    shown, facts = source(checkout, tmp_path / "mine", **env).stdout.splitlines()
    assert shown == str(mine if is_mine else own)
    assert facts == f"{checkout} 1073741824 unset"


@pytest.mark.parametrize("status", [0, 1])
def test_without_fairseq_one_line_says_what_to_do(checkout: Path, tmp_path: Path, status: int) -> None:
    fake_python(tmp_path / "mine", status)
    result = source(checkout, tmp_path / "mine", VIRTUAL_ENV=str(tmp_path / "mine"))
    assert result.returncode == status
    assert ("Run 'make setup'" in result.stderr) == bool(status)
    assert len(result.stderr.splitlines()) == status


def test_settings_of_the_user_are_kept_except_for_one_that_makes_python_slow(checkout: Path) -> None:
    """Without stored compiled modules, every command would take seconds longer."""
    fake_python(checkout / ".venv")
    facts = source(checkout, MALLOC_MMAP_THRESHOLD_="5", PYTHONDONTWRITEBYTECODE="1").stdout.splitlines()[1]
    assert facts == f"{checkout} 5 unset"
