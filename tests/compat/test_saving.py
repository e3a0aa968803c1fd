"""Test that checkpoints are saved whole or not at all, and that the error of a full disk names the file."""

from __future__ import annotations

import os
import resource
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch

pytest.importorskip("fairseq")

from fairseq import checkpoint_utils
from fairseq.file_io import PathManager

from fairseq_posenc import compat
from fairseq_posenc.compat import CheckpointError, safe_load

compat.apply()
STATE = {"model": {"w": torch.zeros(30_000), "more": [torch.zeros(10)]}}
SIZE = 4 * 30_010


@contextmanager
def no_larger_files(most: int) -> Iterator[None]:
    """Let the system refuse to write files of more than `most` bytes, as if the disk were full."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


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
    expected = rf"{path}: .* cannot be saved \(File too large\).* about {SIZE:,} bytes, and [\d,]+ bytes are free in"
    with no_larger_files(50_000), pytest.raises(CheckpointError, match=expected):
        save(path, update=2)
    assert files(tmp_path) == ["checkpoint_last.pt"]
    assert safe_load(path)["update"] == 1


def test_a_full_disk_keeps_the_old_copy_and_names_the_new(tmp_path: Path) -> None:
    first, second = tmp_path / "checkpoint_1_2.pt", tmp_path / "checkpoint_last.pt"
    save(second)
    save(first, update=2)
    expected = rf"{second}: .* cannot be saved \(File too large\).* about {first.stat().st_size:,} bytes"
    with no_larger_files(50_000), pytest.raises(CheckpointError, match=expected):
        copy(first, second)
    assert files(tmp_path) == ["checkpoint_1_2.pt", "checkpoint_last.pt"]
    assert safe_load(second)["update"] == 1


def test_a_folder_that_is_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "saved").write_text("x")
    path = tmp_path / "saved" / "checkpoint_last.pt"
    with pytest.raises(CheckpointError, match=rf"{path}: .*File exists.* bytes are free in {path.parent}"):
        save(path)


def test_a_folder_that_disappears_is_made_again(tmp_path: Path) -> None:
    save(tmp_path / "saved" / "checkpoint_last.pt")
    assert files(tmp_path / "saved") == ["checkpoint_last.pt"]


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
