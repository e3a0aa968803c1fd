"""Test that checkpoint_last.pt is complete, whenever the run is killed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

pytest.importorskip("fairseq")

from fairseq.file_io import PathManager

from fairseq_posenc.compat import apply


def test_an_interrupted_copy_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    apply()
    new, last = tmp_path / "checkpoint1.pt", tmp_path / "checkpoint_last.pt"
    new.write_text("new")
    last.write_text("old")

    def cut(source: str, target: str) -> None:
        Path(target).write_text("ne")
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "copyfile", cut)
        with pytest.raises(OSError, match="No space"):
            PathManager.copy(str(new), str(last), overwrite=True)
    assert last.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == [new.name, last.name]
    assert PathManager.copy(str(new), str(last), overwrite=True)
    assert last.read_text() == "new"
