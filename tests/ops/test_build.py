"""Test that compiled C++ libraries are stored for later processes in the user's folder, by a hash of their inputs."""

from __future__ import annotations

import ctypes
import os
import subprocess
from pathlib import Path

import pytest
from support_processes import without_fairseq

from fairseq_posenc.ops import build

SOURCE = 'extern "C" int answer() { return 42; }\n'


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a C++ source, and use a new folder for libraries."""
    monkeypatch.setenv(build.VARIABLE, str(tmp_path / "kept"))
    (tmp_path / "pass.cpp").write_text(SOURCE)
    return tmp_path / "pass.cpp"


def answer(library: ctypes.CDLL) -> int:
    return int(library.answer())


def kept(source: Path) -> list[Path]:
    return sorted((source.parent / "kept").iterdir())


def test_a_library_is_compiled_once(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert answer(build.shared_library(source)) == 42
    (library,) = kept(source)
    commands: list[list[str]] = []
    run = subprocess.run
    monkeypatch.setattr(
        build.subprocess, "run", lambda command, **more: commands.append(command) or run(command, **more)
    )
    assert answer(build.shared_library(source)) == 42
    assert [command[1:] for command in commands] == [["--version"]]
    assert kept(source) == [library]


def test_processes_that_compile_at_the_same_time_leave_one_library(source: Path) -> None:
    code = "from pathlib import Path; from fairseq_posenc.ops.build import shared_library; "
    command = without_fairseq(code + "assert shared_library(Path(sys.argv[1])).answer() == 42", str(source))
    running = [subprocess.Popen(command) for _ in range(2)]
    assert [process.wait(300) for process in running] == [0, 0]
    assert len(kept(source)) == 1


@pytest.mark.parametrize("what", ["source", "header", "compiler", "flags", "CPU"])
def test_another_input_of_the_code_makes_another_library(
    what: str, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build.shared_library(source)
    if what == "source":
        source.write_text(SOURCE.replace("42", "43"))
    elif what == "header":
        (source.parent / "simd.h").write_text("// new\n")
    elif what == "compiler":
        other = source.parent / "other-c++"
        other.write_text(f'#!/bin/sh\nexec "{build.compiler()}" "$@"\n')
        other.chmod(0o755)
        monkeypatch.setattr(build, "compiler", lambda: str(other))
    elif what == "flags":
        monkeypatch.setattr(build, "FLAGS", (*build.FLAGS, "-g0"))
    else:
        monkeypatch.setattr(build, "_cpu", lambda: "another CPU")
    assert answer(build.shared_library(source)) == (43 if what == "source" else 42)
    assert len(kept(source)) == 2


def test_a_damaged_library_is_made_again(source: Path) -> None:
    build.shared_library(source)
    (library,) = kept(source)
    library.unlink()  # do not overwrite it: this process has loaded it
    library.write_bytes(b"cut off")
    assert answer(build.shared_library(source)) == 42
    assert kept(source) == [library]
    assert library.stat().st_size > 1000


def test_a_file_that_is_no_library_is_deleted(source: Path) -> None:
    source.write_text("nonsense\n")
    with pytest.raises(subprocess.CalledProcessError):
        build.shared_library(source)
    assert kept(source) == []


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o500])
def test_a_folder_that_others_may_write_to_is_not_used(mode: int, source: Path) -> None:
    """A folder that is not writable is not used either, except by root, who may write anywhere."""
    folder = source.parent / "kept"
    folder.mkdir()
    folder.chmod(mode)
    assert answer(build.shared_library(source)) == 42
    folder.chmod(0o700)
    assert bool(kept(source)) == (mode == 0o500 and os.getuid() == 0)


def test_without_a_folder_nothing_is_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(build.VARIABLE, str(tmp_path / "file" / "folder"))
    assert build._folder() is None
    monkeypatch.setenv(build.VARIABLE, str(tmp_path / "folder"))
    assert build._folder() == tmp_path / "folder"
