"""Test that a damaged checkpoint is never loaded, and that the newest undamaged one beside it is named."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from fairseq_posenc.compat import checksums, safe_load
from fairseq_posenc.compat.checkpoints import CheckpointError
from fairseq_posenc.compat.checksums import DamagedError

STATE = {"model": {f"w{i}": torch.arange(60.0) + i for i in range(3)}, "extra_state": {"epoch": 7}}


def save(path: Path, **options: Any) -> Path:
    torch.save(STATE, path, **options)
    return path


def flip(path: Path, bit: int) -> None:
    content = bytearray(path.read_bytes())
    content[bit // 8] ^= 1 << bit % 8
    path.write_bytes(content)


def same(state: Any) -> bool:
    weights = zip(state["model"].values(), STATE["model"].values(), strict=True)
    return state["extra_state"] == STATE["extra_state"] and all(torch.equal(a, b) for a, b in weights)


def outcomes(load: Callable[[Path], Any], folder: Path) -> list[str]:
    """Flip one random bit of a checkpoint at a time, and return whether it loads the same, another or no state."""
    whole = save(folder / "whole.pt").read_bytes()
    generator, found = random.Random(0), []
    for bit in generator.sample(range(8 * len(whole)), 150):
        (folder / "flipped.pt").write_bytes(whole)
        flip(folder / "flipped.pt", bit)
        found.append("none")
        with contextlib.suppress(Exception):  # torch raises errors of many kinds
            found[-1] = "same" if same(load(folder / "flipped.pt")) else "another"
    return found


def test_no_flipped_bit_changes_what_is_loaded(tmp_path: Path) -> None:
    """A flip that loads the same state hit bytes that nobody reads, such as the padding between parts."""
    found = outcomes(safe_load, tmp_path)
    assert "another" not in found
    assert found.count("none") > 50


def test_torch_alone_loads_damaged_weights(tmp_path: Path) -> None:
    assert outcomes(lambda path: torch.load(path, weights_only=True), tmp_path).count("another") > 20


def damaged(path: Path, part: str = "data/1") -> Path:
    """Save a checkpoint and flip a bit in the content of one of its parts."""
    content = save(path).read_bytes()
    inside = {"data/1": STATE["model"]["w1"].numpy().tobytes(), "data.pkl": b"extra_state"}[part]
    flip(path, 8 * (content.index(inside) + 5))
    return path


@pytest.mark.parametrize("opened", [False, True])
def test_the_part_and_the_file_are_named(tmp_path: Path, opened: bool) -> None:
    path = damaged(tmp_path / "model.pt")
    expected = r"model\.pt: .*the part model/data/1 does not match its checksum.*or give another checkpoint"
    with pytest.raises(CheckpointError, match=expected), path.open("rb") as file:
        safe_load(file if opened else path)


def test_mapped_weights_are_left_out_but_not_the_settings(tmp_path: Path) -> None:
    assert not same(safe_load(damaged(tmp_path / "weights.pt"), mmap=True))
    with pytest.raises(CheckpointError, match=r"data\.pkl does not match"):
        safe_load(damaged(tmp_path / "settings.pt", "data.pkl"), mmap=True)


@pytest.mark.parametrize("form", ["old", "without checksums"])
def test_a_file_without_checksums_loads_and_says_so(
    tmp_path: Path, form: str, caplog: pytest.LogCaptureFixture
) -> None:
    is_written = torch.serialization.get_crc32_options()
    torch.serialization.set_crc32_options(form == "old")
    try:
        path = save(tmp_path / "model.pt", _use_new_zipfile_serialization=form != "old")
    finally:
        torch.serialization.set_crc32_options(is_written)
    assert not checksums.check(path)
    with caplog.at_level(logging.INFO):
        assert same(safe_load(path))
        assert same(safe_load(path, mmap=True))
    assert [record.getMessage() for record in caplog.records] == [
        f"{path}: the file has no checksums, so damage to its weights cannot be noticed. Compare the file with its "
        "source."
    ]


def test_the_newest_undamaged_checkpoint_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "my runs"
    folder.mkdir()
    last = damaged(folder / "checkpoint_last.pt")
    damaged(folder / "checkpoint_1_30.pt")
    for age, name in enumerate(("checkpoint_1_20.pt", "checkpoint_1_10.pt", "other.pt")):
        os.utime(save(folder / name), (10**9 - age, 10**9 - age))
    best = folder / "checkpoint_1_20.pt"
    with pytest.raises(CheckpointError) as error:
        safe_load(last)
    assert f"The newest undamaged checkpoint in this folder is {best}." in str(error.value)
    assert str(error.value).endswith(f"cp '{best}' '{last}'")
    assert checksums.newest_undamaged(folder) == best
    assert checksums.newest_undamaged(folder / "nowhere") is None


def test_a_checkpoint_in_the_working_folder_is_not_offered_for_one_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    save(Path("checkpoint_best.pt"))
    with pytest.raises(CheckpointError, match=r"a checkpoint in memory.*or give another checkpoint"):
        safe_load(io.BytesIO(b"nothing"))


def test_the_position_of_an_open_file_is_kept(tmp_path: Path) -> None:
    with save(tmp_path / "model.pt").open("rb") as file:
        assert checksums.check(file)
        assert file.tell() == 0


def test_a_list_of_parts_that_cannot_be_read_is_damage(tmp_path: Path) -> None:
    path = save(tmp_path / "model.pt")
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(DamagedError, match="its list of parts is damaged"):
        checksums.check(path)
