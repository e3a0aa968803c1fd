"""Test that Python imports the package, not the clone's folder, from the clone, from its parent and from elsewhere.

The clone has the name of the package, as after `git clone`. If an older installation imports the clone's folder, doctor
reports a failure, and the other commands refuse to run.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import sysconfig
from functools import partial
from pathlib import Path

import pytest

import fairseq_posenc
from fairseq_posenc.commands.doctor import imported
from fairseq_posenc.commands.doctor.imported import Imported

ROOT = Path(__file__).parents[1]
NAME = "fairseq_posenc"
FOLDERS = ("parent", "clone", "elsewhere")

#: What an editable installation of setuptools does when Python starts, and `python -m fairseq_posenc` in a folder.
PROGRAM = """
import os, runpy, sys
from importlib.machinery import PathFinder
from importlib.util import spec_from_file_location
clone, folder, *sys.argv[1:] = sys.argv[1:]
class Finder:
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name == "fairseq_posenc":
            return spec_from_file_location(name, f"{clone}/fairseq_posenc/__init__.py")
        if name.startswith("fairseq_posenc.") and name.count(".") == 1:
            return PathFinder.find_spec(name, [f"{clone}/fairseq_posenc"])
sys.meta_path.append(Finder)
os.chdir(folder)
runpy.run_module("fairseq_posenc", run_name="__main__", alter_sys=True)
"""


def work_folders(top: Path) -> dict[str, Path]:
    """Make the folders to work in: that with the clone, the clone and another."""
    folders = {"parent": top / "parent", "clone": top / "parent" / NAME, "elsewhere": top / "elsewhere"}
    for folder in folders.values():
        folder.mkdir()
    return folders


@pytest.fixture
def folders(tmp_path: Path) -> dict[str, Path]:
    """Return the folders to work in. The package in the clone is a link to ours."""
    folders = work_folders(tmp_path)
    (folders["clone"] / NAME).symlink_to(ROOT / NAME)
    return folders


def run(folders: dict[str, Path], folder: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the program without site-packages, so without torch."""
    command = [sys.executable, "-S", "-c", PROGRAM, str(folders["clone"]), str(folders[folder]), *arguments]
    return subprocess.run(command, env=clean(), capture_output=True, text=True, check=False)


def clean(**more: str) -> dict[str, str]:
    """Return the environment without Python's path variables."""
    return {**{name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}, **more}


def printed(*command: str | Path, where: Path, **more: str) -> str:
    """Run a command that succeeds in a folder, and return what it prints."""
    ran = subprocess.run(command, env=clean(**more), cwd=where, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-2000:]
    return ran.stdout


def import_check(finished: subprocess.CompletedProcess[str]) -> dict[str, str]:
    """Return doctor's check of the import."""
    return {check["name"]: check for check in json.loads(finished.stdout)}["import"]


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_path_is_that_of_the_package_and_doctor_fails_if_the_clone_is_imported(
    folder: str, folders: dict[str, Path]
) -> None:
    assert run(folders, folder, "path").stdout == f"{ROOT / NAME}\n"
    check = import_check(run(folders, folder, "doctor", "--json"))
    assert (check["status"] == "fail") == (folder == "parent"), check
    problem = f"import fairseq_posenc gives a folder without its code ({folders['clone']})"
    assert (problem in check["found"]) == (folder == "parent")


def test_commands_refuse_in_one_line(folders: dict[str, Path]) -> None:
    finished = run(folders, "parent", "params", "shaw")
    assert (finished.returncode, finished.stdout) == (1, "")
    [line] = finished.stderr.splitlines()
    assert line.startswith(f"error: in {folders['parent']}, import fairseq_posenc gives a folder without its code")
    assert "python -m fairseq_posenc doctor" in line


def test_another_copy_is_not_the_package() -> None:
    assert imported.refusal() == ""
    assert imported.in_this_process().problem(ROOT / NAME) == ""
    copy = Imported("/other/fairseq_posenc/__init__.py", ["/other/fairseq_posenc"])
    assert copy.problem(ROOT / NAME) == "another copy (/other/fairseq_posenc)"


# -- installed by pip -------------------------------------------------------------------------------------

SPAWNED = """
import multiprocessing
import fairseq_posenc

def loader(number):
    shape = fairseq_posenc.StackShape(layers=1, heads=2, dim=8, max_length=8)
    return fairseq_posenc.Stack("shaw", None, shape).__module__

if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(loader, [0]) == ["fairseq_posenc.stack"]
    print(fairseq_posenc.__file__)
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Path]]:
    """Return the Python of an environment with an editable installation, and the folders to work in."""
    if missing := [name for name in ("pip", "setuptools", "wheel") if importlib.util.find_spec(name) is None]:
        pytest.skip(f"this environment has no {' and no '.join(missing)}")
    top = tmp_path_factory.mktemp("installed").resolve()
    folders = work_folders(top)
    shutil.copytree(ROOT / NAME, folders["clone"] / NAME, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("setup.py", "README.md"):
        shutil.copy(ROOT / name, folders["clone"])
    printed(sys.executable, "-m", "venv", "--without-pip", top / "env", where=top)
    python = top / "env" / "bin" / "python"
    offline = ("--no-index", "--no-deps", "--no-build-isolation", "--ignore-installed", "--disable-pip-version-check")
    install = [python, "-m", "pip", "install", *offline, "--editable", folders["clone"]]
    printed(*install, where=top, PYTHONPATH=sysconfig.get_path("purelib"), PIP_CONFIG_FILE=os.devnull)
    # Append the packages of this environment. Their .pth files have no effect there.
    site = next((top / "env" / "lib").glob("python*")) / "site-packages"
    (site / "packages.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python, folders


#: One update of fairseq's task of invented pairs, with a worker that loads them.
TRAINING = (
    "--task dummy_mt --dict-size 20 --dataset-size 8 --src-len 6 --tgt-len 5 --batch-size 8 --num-workers 1 --cpu "
    "--arch posenc_transformer_tiny --pos-enc shaw --optimizer adam --max-update 1 --disable-validation --no-save"
).split()


@pytest.mark.long
@pytest.mark.parametrize(
    ("folder", "user_dirs"),
    [("parent", [NAME, f"{NAME}/{NAME}"]), ("clone", [NAME]), ("elsewhere", [])],
)
def test_an_editable_installation_is_found_from_everywhere(
    folder: str, user_dirs: list[str], installed: tuple[Path, dict[str, Path]], tmp_path: Path
) -> None:
    """A program, a worker that it spawns, `python -m`, doctor and fairseq-train all import the package."""
    python, folders = installed
    package = folders["clone"] / NAME

    output = partial(printed, where=folders[folder])
    script = tmp_path / "spawned.py"
    script.write_text(SPAWNED)
    assert output(python, script) == f"{package / '__init__.py'}\n"
    assert output(python, "-m", NAME, "path") == f"{package}\n"
    assert output(python.with_name("fairseq-posenc"), "path") == f"{package}\n"
    for user_dir in (*user_dirs, str(package)):
        output(python, "-m", "fairseq_cli.train", "--user-dir", user_dir, *TRAINING)
    doctor = [python, "-m", NAME, "doctor", "--json"]
    checks = subprocess.run(doctor, env=clean(), cwd=folders[folder], capture_output=True, text=True)
    assert import_check(checks)["status"] == "ok"


@pytest.mark.long
def test_sdist_and_wheel_work_in_an_empty_folder(tmp_path: Path) -> None:
    source, built, target, empty = (tmp_path / name for name in ("source", "built", "target", "empty"))
    files = printed("git", "ls-files", NAME, "setup.py", "README.md", "LICENSE", where=ROOT).split()
    for name in files:
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, source / name)
    empty.mkdir()
    printed(sys.executable, "setup.py", "-q", "sdist", "-d", built, where=source)
    (sdist,) = built.iterdir()
    pip = [sys.executable, "-m", "pip", "-q"]
    printed(*pip, "wheel", sdist, "--no-deps", "--no-build-isolation", "-w", built, where=empty)
    (wheel,) = built.glob("*.whl")
    printed(*pip, "install", "--no-deps", "--target", target, wheel, where=empty)
    (empty / "spawned.py").write_text(SPAWNED)
    file = printed(sys.executable, "spawned.py", where=empty, PYTHONPATH=str(target))
    assert file == f"{target / NAME / '__init__.py'}\n"
    assert wheel.name.startswith(f"{NAME}-{fairseq_posenc.__version__}-")
    installed = {str(path.relative_to(target)) for path in (target / NAME).rglob("*")}
    assert [name for name in files if name.startswith(f"{NAME}/") and name not in installed] == []
