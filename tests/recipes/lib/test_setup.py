"""Test the errors of `make setup` with a copy of its scripts. These tests install nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
TOOLS = "bash env cat cksum awk df sort head tail grep sed cp mv mkdir rm sleep dirname flock"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Copy only the files that setup_env.sh reads, so that no test can change the real .venv."""
    shutil.copytree(ROOT / "recipes" / "lib", tmp_path / "checkout" / "recipes" / "lib")
    shutil.copy(ROOT / "setup.py", tmp_path / "checkout")
    return tmp_path / "checkout"


def command(path: Path, *body: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(["#!/bin/sh", *body]) + "\n")
    path.chmod(0o755)


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """Return a PATH with the usual tools, but without Python and without a compiler."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for tool in TOOLS.split():
        if path := shutil.which(tool):
            (folder / tool).symlink_to(path)
    return folder


def setup(checkout: Path, tools: Path, **env: str) -> subprocess.CompletedProcess[str]:
    kept = {"HOME": os.environ.get("HOME", "/"), "PATH": str(tools)}
    script = checkout / "recipes" / "lib" / "setup_env.sh"
    return subprocess.run(
        ["bash", str(script), "demo"],
        env={**kept, **env},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def assert_says(result: subprocess.CompletedProcess[str], *words: str) -> None:
    """Check that the command failed with one line on stderr, an error that contains all `words`."""
    assert result.returncode == 1, result.stdout + result.stderr
    [line] = result.stderr.splitlines()
    assert line.startswith("error: ")
    for word in words:
        assert word in line


def good_machine(tools: Path) -> dict[str, str]:
    command(tools / "c++", "exit 0")
    return {"PYTHON": sys.executable}


def test_no_python(checkout: Path, tools: Path) -> None:
    assert_says(setup(checkout, tools), "none of these Pythons works", "Install Python 3.11")


def test_a_python_that_does_not_exist(checkout: Path, tools: Path) -> None:
    assert_says(setup(checkout, tools, PYTHON="python3.99"), "python3.99")


def test_too_old_python(checkout: Path, tools: Path) -> None:
    command(tools / "python3", "echo 3.8")
    assert_says(setup(checkout, tools), "Python 3.8", "too old", "make setup PYTHON=python3.11")


def test_a_shim_without_its_python_is_passed_over(checkout: Path, tools: Path) -> None:
    command(tools / "python3.11", "exit 127")
    command(tools / "python3", "echo 3.8")
    assert_says(setup(checkout, tools), "Python 3.8 (python3)")


def test_missing_compiler(checkout: Path, tools: Path) -> None:
    assert_says(setup(checkout, tools, PYTHON=sys.executable), "no C++ compiler", "apt install g++")


def test_compiler_named_by_cxx_must_run(checkout: Path, tools: Path) -> None:
    assert_says(setup(checkout, tools, **good_machine(tools), CXX="gone"), "tried: gone")


def test_too_little_space(checkout: Path, tools: Path) -> None:
    machine = good_machine(tools)
    result = setup(checkout, tools, **machine, POSENC_MIN_SPACE_MB="999999999999")
    assert_says(result, "MB of free space", "needs about 999999999999 MB")
    assert not (checkout / ".venv").exists()


@pytest.fixture
def broken_index(checkout: Path, tools: Path) -> dict[str, str]:
    """Make a .venv whose Python answers the questions of setup, and whose pip fails as without a network."""
    lines = (
        'case "$*" in',
        '  *"-m pip"*) echo "ConnectionError: Temporary failure in name resolution"; exit 1 ;;',
        "  *importlib.metadata*|*link_torch*) exit 0 ;;",
        f'  *) exec {sys.executable} "$@" ;;',
        "esac",
    )
    command(checkout / ".venv" / "bin" / "python", *lines)
    command(tools / "python3.11", *lines)
    command(tools / "c++", "exit 0")
    return {"POSENC_MIN_SPACE_MB": "0"}


def test_pip_failure_names_the_cause_and_the_log(checkout: Path, tools: Path, broken_index: dict[str, str]) -> None:
    result = setup(checkout, tools, **broken_index)
    assert result.returncode == 1
    assert "name resolution" in result.stderr  # the last line of the log
    last = result.stderr.splitlines()[-1]
    assert last.startswith("error: step 'pip' failed: the package index cannot be reached")
    assert str(checkout / ".setup.log") in last


def test_a_failed_install_is_not_taken_for_done(checkout: Path, tools: Path, broken_index: dict[str, str]) -> None:
    assert setup(checkout, tools, **broken_index).returncode == 1
    assert not list((checkout / ".venv").glob(".ready*"))
    assert setup(checkout, tools, **broken_index).returncode == 1


def fingerprint(checkout: Path) -> str:
    script = (checkout / "recipes" / "lib" / "setup_env.sh").read_text()
    functions = script.replace("\nmain\n", "\nfingerprint\n")
    probe = checkout / "recipes" / "lib" / "probe.sh"
    probe.write_text(functions)
    answer = subprocess.run(["bash", str(probe), "full"], capture_output=True, text=True, check=True).stdout
    probe.unlink()
    return answer


def test_ready_until_the_pins_change(checkout: Path, tools: Path) -> None:
    command(checkout / ".venv" / "bin" / "python", "exit 0")
    (checkout / ".venv" / ".ready-full").write_text(fingerprint(checkout))
    done = setup(checkout, tools)  # `demo` is satisfied by `full`, with no Python on the path
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    with (checkout / "recipes" / "lib" / "constraints.txt").open("a") as pins:
        pins.write("colorama==0.4.6\n")
    assert_says(setup(checkout, tools), "none of these Pythons works")


def test_torch_of_the_chosen_python_is_linked(checkout: Path, tmp_path: Path) -> None:
    # A stand-in installation with the files that pip would record. Only the packages of torch are linked.
    base, site = tmp_path / "base", tmp_path / "site"
    site.mkdir()
    for name, requires in (("torch", ["nvidia-cublas==1", "sympy"]), ("nvidia_cublas", []), ("sympy", [])):
        package = "nvidia" if name.startswith("nvidia") else name
        (base / package).mkdir(parents=True)
        (base / package / "__init__.py").touch()
        info = base / f"{name}-2.9.1+cu130.dist-info"
        info.mkdir()
        lines = [f"Name: {name}", "Version: 2.9.1+cu130", *(f"Requires-Dist: {need}" for need in requires)]
        (info / "METADATA").write_text("Metadata-Version: 2.1\n" + "\n".join(lines) + "\n")
        (info / "RECORD").write_text(f"{package}/__init__.py,,\n{info.name}/METADATA,,\n../../bin/{name},,\n")
    link = [sys.executable, "-S", str(checkout / "recipes" / "lib" / "link_torch.py"), str(site)]
    env = {**os.environ, "PYTHONPATH": str(base)}
    for _ in range(2):  # the second run has nothing to do
        answer = subprocess.run(link, env=env, capture_output=True, text=True, check=True).stdout
        assert answer == "torch 2.9.1+cu130\n"
    assert {path.name.split("-")[0] for path in site.iterdir()} == {"torch", "nvidia", "nvidia_cublas"}
    assert (site / "torch").resolve() == (base / "torch").resolve()
