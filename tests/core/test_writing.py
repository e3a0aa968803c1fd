"""Test that interrupted writing keeps the old file or folder, and leaves nothing beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairseq_posenc.core.writing import whole, whole_folder, write_all_whole


def interrupted_file(path: Path) -> None:
    with whole(path) as partial:
        partial.write_text("half")
        raise KeyboardInterrupt


def interrupted_folder(path: Path) -> None:
    with whole_folder(path) as partial:
        (partial / "config.json").write_text("half")
        raise KeyboardInterrupt


def test_interrupted_writing_keeps_the_old_files(tmp_path: Path) -> None:
    file, folder = tmp_path / "scores.txt", tmp_path / "model"
    old = {file: "old\n", folder / "config.json": "{}\n"}
    write_all_whole(old)
    with pytest.raises(KeyboardInterrupt):
        interrupted_file(file)
    with pytest.raises(KeyboardInterrupt):
        interrupted_folder(folder)
    assert {path: path.read_text() for path in tmp_path.rglob("*") if path.is_file()} == old
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "scores.txt"]


def test_what_is_left_of_a_killed_process_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "model.partial").mkdir()
    (tmp_path / "model.partial" / "half.pt").write_text("half")
    with whole_folder(tmp_path / "model") as partial:
        (partial / "whole.pt").write_text("whole")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["model", "whole.pt"]
