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


def test_a_full_disk_keeps_the_old_checkpoint_and_names_the_new(tmp_path: Path) -> None:
    first, second = tmp_path / "checkpoint_1_2.pt", tmp_path / "checkpoint_last.pt"
    save(first, update=2)
    save(second)
    expected = rf"{second}: the checkpoint cannot be saved.*File too large.* and [\d,]+ bytes are free in"
    for write in (lambda: save(second, update=3), lambda: copy(first, second)):
        with no_larger_files(50_000), pytest.raises(CheckpointError, match=expected):
            write()
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


# -- two trainings


def test_two_trainings_in_one_folder_write_one_after_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second asks for the lock while the first writes. Threads stand for the processes."""
    path, real_save, real_lock = tmp_path / "checkpoint_last.pt", torch.save, fcntl.flock
    writing, asked, order = threading.Event(), threading.Event(), list[object]()

    def lock(descriptor: int, operation: int) -> None:
        if writing.is_set():
            asked.set()
        real_lock(descriptor, operation)

    def write(state: dict[str, object], file: object) -> None:
        order.append((state["update"], "begins"))
        writing.set()
        asked.wait()
        real_save(state, file)
        order.append((state["update"], "ends"))

    monkeypatch.setattr(fcntl, "flock", lock)
    monkeypatch.setattr(torch, "save", write)
    first, second = (threading.Thread(target=save, args=(path, update)) for update in (1, 2))
    first.start()
    writing.wait()
    second.start()
    for thread in (first, second):
        thread.join()
    assert order == [(1, "begins"), (1, "ends"), (2, "begins"), (2, "ends")]
    assert safe_load(path)["update"] == 2
    assert files(tmp_path) == ["checkpoint_last.pt"]


def test_a_folder_that_cannot_be_locked_is_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    save(tmp_path / "checkpoint_last.pt")
    assert safe_load(tmp_path / "checkpoint_last.pt")["update"] == 1
