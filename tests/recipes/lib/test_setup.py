"""Test the environment of the recipes with a copy of their scripts: how it is set up, and which one is active.

These tests install nothing.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

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


def setup(checkout: Path, tools: Path, level: str = "demo", **env: str) -> subprocess.CompletedProcess[str]:
    """Run setup_env.sh. The home is an empty folder, so that no version manager of this machine offers a Python."""
    kept = {"HOME": str(checkout.parent / "home"), "PATH": str(tools)}
    script = checkout / "recipes" / "lib" / "setup_env.sh"
    return subprocess.run(["bash", str(script), level], env={**kept, **env}, capture_output=True, text=True)


def assert_says(result: subprocess.CompletedProcess[str], *words: str) -> None:
    """Check that the command failed with one line on stderr, an error that contains all `words`."""
    assert result.returncode == 1, result.stdout + result.stderr
    [line] = result.stderr.splitlines()
    assert line.startswith("error: ")
    for word in words:
        assert word in line


#: A Python that answers `-c CODE` as if it had another version, and whose sysconfig names the usual platform.
ANSWERS = "import sys, sysconfig; sys.version_info = {version}; sysconfig.get_platform = lambda: 'linux-x86_64'; "


def fake_python(path: Path, minor: int, *before: str) -> Path:
    """Write a Python 3 with this minor version. It cannot install anything, and runs the lines `before` first."""
    answers = ANSWERS.format(version=(3, minor, 0, "final", 0)) + "exec(sys.argv.pop(1))"
    last = f'exec {sys.executable} -S -c "{answers}" "$@"'
    command(path, *before, 'if [ "$1" != -c ]; then exit 1; fi', "shift", last)
    return path


NO_SPACE = {"POSENC_MIN_SPACE_MB": "999999999999"}  # ends the setup after the checks of Python and of the compiler
MACHINES = tomllib.loads(Path(__file__).with_name("setup.toml").read_text("utf-8"))


def machine(case: dict[str, Any], top: Path) -> dict[str, str]:
    """Write the programs of a machine of setup.toml, and return its variables. Pythons write their path to `chosen`."""
    for name, text in case.get("files", {}).items():
        text = text.replace("{top}", str(top)).replace("{python}", sys.executable)
        minor, _, before = text.partition(" ")
        if minor.isdigit():
            fake_python(top / name, int(minor), before, f"echo '{top / name}' > {top / 'chosen'}")
        else:
            command(top / name, text)
    return {name: value.replace("{top}", str(top)) for name, value in case.get("env", {}).items()}


@pytest.mark.parametrize("case", MACHINES["missing"], ids=lambda case: case["words"][0])
def test_what_is_missing_is_one_line(case: dict[str, Any], checkout: Path, tools: Path) -> None:
    assert_says(setup(checkout, tools, **machine(case, checkout.parent)), *case["words"])
    assert not (checkout / ".venv" / ".place").exists()  # nothing was built


def test_missing_headers(checkout: Path, tools: Path) -> None:
    command(tools / "c++", "exit 0")
    old = fake_python(tools / "old", 11)
    old.write_text(old.read_text().replace("exec(", "sysconfig.get_path = lambda name: '/nowhere'; exec("))
    assert_says(setup(checkout, tools, PYTHON=str(old)), "/nowhere: Python.h is missing", "python3.11-dev")


def chosen(checkout: Path, tools: Path, **env: str) -> str:
    """Return the Python that the setup chooses: the last one that it runs before it finds too little space."""
    command(tools / "c++", "exit 0")
    result = setup(checkout, tools, **NO_SPACE, **env)
    assert "MB of free space" in result.stderr, result.stderr
    return (checkout.parent / "chosen").read_text().strip()


@pytest.mark.parametrize("case", MACHINES["chosen"])
def test_the_best_python_is_chosen(case: dict[str, Any], checkout: Path, tools: Path) -> None:
    env = machine(case, checkout.parent)
    assert chosen(checkout, tools, **env) == str(checkout.parent / case["best"])


def test_a_venv_keeps_the_python_from_which_it_was_built(checkout: Path, tools: Path) -> None:
    machine({"files": {"bin/python3.12": "12", "base/python3.11": "11"}}, checkout.parent)
    base = checkout.parent / "base" / "python3.11"
    python = fake_python(checkout / ".venv" / "bin" / "python", 11)
    python.write_text(python.read_text().replace("import sys,", f"import sys; sys._base_executable = '{base}'; import"))
    assert chosen(checkout, tools) == str(base)


def test_an_untested_version_is_noted(checkout: Path, tools: Path) -> None:
    note = "tested with Python 3.12 and 3.11, but not with Python 3.13"
    for minor in (12, 13):
        python = fake_python(tools / f"python3.{minor}", minor)
        assert (note in setup(checkout, tools, PYTHON=str(python), CXX="c++", **NO_SPACE).stdout) == (minor == 13)


@pytest.mark.parametrize("case", MACHINES["without_fastbpe"], ids=lambda case: case["why"])
def test_fastbpe_is_left_out_if_it_cannot_be_compiled(case: dict[str, Any], checkout: Path, tools: Path) -> None:
    fake_python(tools.parent / "base", 12)
    env = machine(case, checkout.parent)
    demo = setup(checkout, tools, **env)
    assert (demo.returncode, "fastBPE" in demo.stdout) == (0, False), demo.stderr  # the demo does not need it
    full = setup(checkout, tools, "full", **env)
    assert (full.returncode, full.stderr) == (0, "")
    [note] = [line for line in full.stdout.splitlines() if "note:" in line]
    assert f"fastBPE is left out, because {case['why']}" in note
    assert note.endswith("Only --tokenizer fastbpe and --bpe fastbpe need it.")
    assert (checkout / ".venv" / ".ready-full").exists()


def test_pip_failure_names_the_cause_and_the_log(checkout: Path, tools: Path) -> None:
    env = machine(MACHINES["without_network"], checkout.parent)
    result = setup(checkout, tools, **env)
    assert result.returncode == 1
    assert "name resolution" in result.stderr  # the last line of the log
    last = result.stderr.splitlines()[-1]
    assert last.startswith("error: step 'pip' failed: the package index cannot be reached")
    assert str(checkout / ".setup.log") in last
    assert not list((checkout / ".venv").glob(".ready*"))
    pins = (checkout / ".venv" / "constraints.txt").read_text().splitlines()
    assert [pin for pin in pins if pin.startswith("torch==")] == ["torch==2.9.1+cu130"]  # that of .venv is kept
    assert setup(checkout, tools, **env).returncode == 1  # it is not taken for done


def test_ready_until_the_pins_change(checkout: Path, tools: Path) -> None:
    command(checkout / ".venv" / "bin" / "python", "exit 0")
    lib = checkout / "recipes" / "lib"
    probe = lib / "probe.sh"
    probe.write_text((lib / "setup_env.sh").read_text().replace("\nmain\n", "\nfingerprint\n"))
    with (checkout / ".venv" / ".ready-full").open("w") as ready:
        subprocess.run(["bash", str(probe), "full"], stdout=ready, check=True)
    done = setup(checkout, tools)  # `demo` is satisfied by `full`, with no Python on the path
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    with (lib / "constraints.txt").open("a") as pins:
        pins.write("colorama==0.4.6\n")
    assert_says(setup(checkout, tools), "no Python 3.11 or newer works")


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


# --- the environment that is active

SHOW = "source recipes/lib/env.sh; command -v python; "
SHOW += 'echo "$POSENC_ROOT $MALLOC_MMAP_THRESHOLD_ ${PYTHONDONTWRITEBYTECODE-unset}"'


def source(checkout: Path, active: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Source env.sh, and show the Python and the variables that it leads to."""
    variables = {"PATH": f"{active}/bin:/usr/bin:/bin", **env}
    return subprocess.run(["bash", "-euc", SHOW], cwd=checkout, env=variables, capture_output=True, text=True)


@pytest.mark.parametrize("case", MACHINES["active"], ids=lambda case: str(case["env"]))
def test_an_active_environment_is_used_and_otherwise_that_of_the_repository(
    case: dict[str, Any], checkout: Path, tmp_path: Path
) -> None:
    for environment in (checkout / ".venv", tmp_path / "mine"):
        command(environment / "bin" / "python", "exit 0")
    shown, facts = source(checkout, tmp_path / "mine", **case["env"]).stdout.splitlines()
    assert shown == str(tmp_path / case["used"] / "bin" / "python")
    assert facts == f"{checkout} {case.get('threshold', 1073741824)} unset"


@pytest.mark.parametrize("status", [0, 1])
def test_without_fairseq_one_line_says_what_to_do(checkout: Path, tmp_path: Path, status: int) -> None:
    command(tmp_path / "mine" / "bin" / "python", f"exit {status}")
    result = source(checkout, tmp_path / "mine", VIRTUAL_ENV=str(tmp_path / "mine"))
    assert result.returncode == status
    assert ("Run 'make setup'" in result.stderr) == bool(status)
    assert len(result.stderr.splitlines()) == status
