"""Test that checkpoints are saved whole or not at all, and that the error of a full disk names the file."""

from __future__ import annotations

import fcntl
import os
import shutil
import threading
from pathlib import Path

import pytest
import torch
from support_full_disk import no_larger_files
from support_readonly import read_only

pytest.importorskip("fairseq")

from fairseq import checkpoint_utils
from fairseq.file_io import PathManager

from fairseq_posenc import compat
from fairseq_posenc.compat import CheckpointError, safe_load

compat.apply()
STATE = {"model": {"w": torch.zeros(30_000), "more": [torch.zeros(10)]}}


def save(path: Path, update: int = 1) -> None:
    checkpoint_utils.torch_persistent_save({**STATE, "update": update}, str(path))


def copy(source: Path, path: Path) -> object:
    return PathManager.copy(str(source), str(path), overwrite=True)


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_checkpoint_is_saved_and_copied(tmp_path: Path) -> None:
    save(tmp_path / "a.pt")
    assert copy(tmp_path / "a.pt", tmp_path / "b.pt")
    assert safe_load(tmp_path / "b.pt")["update"] == 1
    assert files(tmp_path) == ["a.pt", "b.pt"]


def test_a_full_disk_keeps_the_old_checkpoint_and_names_the_new(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint_last.pt"
    save(path)
    expected = rf"{path}: the checkpoint cannot be saved.*File too large.* and [\d,]+ bytes are free in"
    with no_larger_files(50_000), pytest.raises(CheckpointError, match=expected):
        save(path, update=2)
    assert files(tmp_path) == ["checkpoint_last.pt"]
    assert safe_load(path)["update"] == 1


def test_a_full_disk_keeps_the_old_copy_and_names_the_new(tmp_path: Path) -> None:
    first, second = tmp_path / "checkpoint_1_2.pt", tmp_path / "checkpoint_last.pt"
    save(second)
    save(first, update=2)
    expected = rf"{second}: the checkpoint cannot be saved.*File too large"
    with no_larger_files(50_000), pytest.raises(CheckpointError, match=expected):
        copy(first, second)
    assert files(tmp_path) == ["checkpoint_1_2.pt", "checkpoint_last.pt"]
    assert safe_load(second)["update"] == 1


def test_a_process_that_is_killed_while_it_copies_leaves_the_old_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """fairseq itself copies over checkpoint_last.pt, and leaves half a file."""

    def half(source: Path, target: Path) -> None:
        Path(target).write_bytes(Path(source).read_bytes()[:60_000])
        os._exit(9)

    first, second = tmp_path / "checkpoint_1_2.pt", tmp_path / "checkpoint_last.pt"
    save(first, update=2)
    for copying, intact in ((copy, True), (PathManager.copy.__wrapped__, False)):
        save(second)
        if (child := os.fork()) == 0:
            monkeypatch.setattr(shutil, "copyfile", half)
            copying(first, second)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
        assert (second.stat().st_size > 60_000) is intact
    save(second, update=3)
    assert safe_load(second)["update"] == 3
    copy(first, second)  # also removes what the killed process left
    assert files(tmp_path) == ["checkpoint_1_2.pt", "checkpoint_last.pt"]


# -- several processes


def waits(folder: Path, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Return whether a second process's checkpoint waits until that of the first one is whole.

    Threads stand for the processes: a folder that one descriptor has locked is locked for all others.
    """
    folder.mkdir()
    begun, going_on, real = threading.Event(), threading.Event(), torch.save

    def slow(state: object, file: object) -> None:
        if state["update"] == 1:  # type: ignore[index]
            begun.set()
            assert going_on.wait(20)
        real(state, file)

    monkeypatch.setattr(torch, "save", slow)
    first, second = (threading.Thread(target=save, args=(folder / "checkpoint_last.pt", n)) for n in (1, 2))
    first.start()
    assert begun.wait(20)
    second.start()
    second.join(0.3)
    waiting = second.is_alive()
    going_on.set()
    for thread in (first, second):
        thread.join(20)
    return waiting and safe_load(folder / "checkpoint_last.pt")["update"] == 2


def test_two_trainings_in_one_folder_write_one_after_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert waits(tmp_path / "saved", monkeypatch)
    assert files(tmp_path / "saved") == ["checkpoint_last.pt"]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_without_a_lock_they_would_mix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fcntl, "flock", lambda *arguments: None)
    assert not waits(tmp_path / "saved", monkeypatch)


def test_a_folder_that_cannot_be_locked_is_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    save(tmp_path / "checkpoint_last.pt")
    assert safe_load(tmp_path / "checkpoint_last.pt")["update"] == 1


# -- folders


def test_a_read_only_folder_keeps_its_checkpoint_and_is_named(tmp_path: Path) -> None:
    path = tmp_path / "saved" / "checkpoint_last.pt"
    save(path)
    with (
        read_only(path.parent),
        pytest.raises(CheckpointError, match=rf"{path}: .*(Permission denied|Operation not permitted)"),
    ):
        save(path, update=2)
    assert files(path.parent) == ["checkpoint_last.pt"]
    assert safe_load(path)["update"] == 1
