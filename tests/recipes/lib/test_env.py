"""Test recipes/lib/env.sh: which environment it activates, and which variables it sets."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

SHOW = 'source recipes/lib/env.sh; echo "$(command -v python)"; echo "$POSENC_ROOT $MALLOC_MMAP_THRESHOLD_"'


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


def test_the_repositorys_environment_is_the_default(checkout: Path) -> None:
    python = fake_python(checkout / ".venv")
    shown, facts = source(checkout).stdout.splitlines()
    assert shown == str(python)
    assert facts == f"{checkout} 1073741824"


def test_the_repositorys_environment_stores_compiled_modules(checkout: Path) -> None:
    fake_python(checkout / ".venv")
    command = ["bash", "-euc", 'source recipes/lib/env.sh; echo "${PYTHONDONTWRITEBYTECODE-unset}"']
    env = {"PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"}
    assert subprocess.check_output(command, cwd=checkout, env=env, text=True) == "unset\n"


@pytest.mark.parametrize("variable", ["VIRTUAL_ENV", "CONDA_PREFIX"])
def test_an_active_environment_is_used(checkout: Path, tmp_path: Path, variable: str) -> None:
    fake_python(checkout / ".venv")
    python = fake_python(tmp_path / "mine")
    assert source(checkout, tmp_path / "mine", **{variable: "x"}).stdout.splitlines()[0] == str(python)


@pytest.mark.parametrize(
    "env", [{"CONDA_PREFIX": "x", "CONDA_DEFAULT_ENV": "base"}, {"VIRTUAL_ENV": "x", "POSENC_USE_VENV": "1"}]
)
def test_conda_base_and_make_do_not_count_as_active(checkout: Path, tmp_path: Path, env: dict[str, str]) -> None:
    python = fake_python(checkout / ".venv")
    fake_python(tmp_path / "mine")
    assert source(checkout, tmp_path / "mine", **env).stdout.splitlines()[0] == str(python)


@pytest.mark.parametrize("status", [0, 1])
def test_without_fairseq_one_line_says_what_to_do(checkout: Path, tmp_path: Path, status: int) -> None:
    fake_python(tmp_path / "mine", status)
    result = source(checkout, tmp_path / "mine", VIRTUAL_ENV=str(tmp_path / "mine"))
    assert result.returncode == status
    assert ("Run 'make setup'" in result.stderr) == bool(status)
    assert len(result.stderr.splitlines()) == status


def test_settings_of_the_user_are_kept(checkout: Path) -> None:
    fake_python(checkout / ".venv")
    facts = source(checkout, MALLOC_MMAP_THRESHOLD_="5").stdout.splitlines()[1]
    assert facts == f"{checkout} 5"
