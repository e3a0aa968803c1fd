"""Test that checkpoints of fairseq load as data, and that no damage to them goes unnoticed.

tests/integration/test_no_code.py holds the law that no checkpoint runs code.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import logging
import pickle
import random
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

pytest.importorskip("fairseq")

from fairseq import checkpoint_utils

from fairseq_posenc import compat
from fairseq_posenc.compat.checkpoints import CheckpointError, safe_load

compat.apply()
#: A checkpoint with all parts that fairseq needs; a model without a dataclass stores its options as a Namespace.
WHOLE: dict[str, Any] = {
    "model": {"w": torch.ones(2)},
    "cfg": {"model": argparse.Namespace(_name="lstm", arch="lstm"), "task": {"_name": "translation"}},
    "args": None,
    "optimizer_history": [{"num_updates": 5, "optimizer_name": "adam", "lr_scheduler_state": {}}],
    "extra_state": {"train_iterator": {"epoch": 1}, "ema": {"w": torch.zeros(2)}},
    "last_optimizer_state": {},
}


def test_fairseq_loads_checkpoints_and_ema_weights(tmp_path: Path) -> None:
    torch.save(WHOLE, tmp_path / "whole.pt")
    state = checkpoint_utils.load_checkpoint_to_cpu(str(tmp_path / "whole.pt"))
    assert (state["cfg"].model.arch, state["optimizer_history"][-1]["num_updates"]) == ("lstm", 5)
    assert checkpoint_utils.load_ema_from_checkpoint(str(tmp_path / "whole.pt"))["model"]["w"].tolist() == [0, 0]
    allowed = torch.serialization.get_safe_globals()
    torch.serialization.clear_safe_globals()
    try:
        with pytest.raises(pickle.UnpicklingError, match=r"argparse\.Namespace"):
            torch.load(tmp_path / "whole.pt", weights_only=True)
    finally:
        torch.serialization.add_safe_globals(allowed)
    assert "model" in torch.load(tmp_path / "whole.pt", weights_only=True)


def test_numpy_numbers_load_as_numpy_1_and_2_write_them(tmp_path: Path) -> None:
    numbers = {str(np.dtype(t)): np.dtype(t).type(1) for t in "?bhilqBHILQefdFD"}
    state = {"best": np.float64(0.25), "numbers": numbers, "array": np.arange(6, dtype=np.int64).reshape(2, 3)}
    torch.save(state, tmp_path / "numpy.pt")
    loaded = safe_load(tmp_path / "numpy.pt")
    assert loaded["best"] == 0.25
    assert loaded["numbers"] == numbers
    assert (loaded["array"] == state["array"]).all()

    written = pickle.dumps(state["best"], protocol=2)
    other = (b"numpy._core.", b"numpy.core.") if b"numpy._core." in written else (b"numpy.core.", b"numpy._core.")
    for data in (written, written.replace(*other)):
        assert torch._weights_only_unpickler.load(io.BytesIO(data)) == 0.25


# -- damage

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
    for bit in generator.sample(range(8 * len(whole)), 100):
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
    assert found.count("none") > 30
    assert outcomes(lambda path: torch.load(path, weights_only=True), tmp_path).count("another") > 10  # the fault


def damaged(path: Path, part: str = "data/1") -> Path:
    """Save a checkpoint and flip a bit in the content of one of its parts."""
    content = save(path).read_bytes()
    inside = {"data/1": STATE["model"]["w1"].numpy().tobytes(), "data.pkl": b"extra_state"}[part]
    flip(path, 8 * (content.index(inside) + 5))
    return path


def test_the_damaged_part_is_named_and_mapped_weights_are_left_out(tmp_path: Path) -> None:
    path = damaged(tmp_path / "weights.pt")
    assert not same(safe_load(path, mmap=True))
    with (
        pytest.raises(CheckpointError, match=r"weights\.pt: .*Bad CRC-32 for file 'weights/data/1'"),
        path.open("rb") as f,
    ):
        safe_load(f)
    with pytest.raises(CheckpointError, match=r"CRC-32 for file 'settings/data\.pkl'"):
        safe_load(damaged(tmp_path / "settings.pt", "data.pkl"), mmap=True)


def test_a_file_that_cannot_be_read_is_named_with_what_to_do(tmp_path: Path) -> None:
    path = save(tmp_path / "checkpoint_last.pt")
    path.write_bytes(path.read_bytes()[:-200])
    size = f"{path.stat().st_size:,} bytes"
    with pytest.raises(CheckpointError, match=rf"{path}: .*{size}.* damaged: copy it again, or give another"):
        safe_load(path)


def test_a_file_in_the_old_format_loads_and_says_that_damage_cannot_be_noticed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = save(tmp_path / "model.pt", _use_new_zipfile_serialization=False)
    with caplog.at_level(logging.INFO):
        assert same(safe_load(path))
        assert same(safe_load(path, mmap=True))
    assert caplog.messages == [f"{path}: the file has no checksums, so damage to its weights cannot be noticed."]


@pytest.mark.parametrize("part", ["data.pkl", "data/0"])
def test_a_compressed_part_may_be_a_bomb_and_is_refused(tmp_path: Path, part: str) -> None:
    """torch.load itself uncompresses a part of any size into memory."""
    path, bomb = save(tmp_path / "model.pt"), tmp_path / "bomb.pt"
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(bomb, "w") as new:
        for entry in old.infolist():
            is_compressed = entry.filename.endswith(part)
            new.writestr(entry.filename, old.read(entry), zipfile.ZIP_DEFLATED if is_compressed else zipfile.ZIP_STORED)
    for options in ({}, {"mmap": True}):
        with pytest.raises(CheckpointError, match=rf"bomb\.pt: .*its part model/{part} is compressed"):
            safe_load(bomb, **options)


OTHERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "a list": lambda state: [state],
    "nothing": lambda state: None,
    "no parts": lambda state: {},
    "the weights alone": lambda state: state["model"],
    "an empty history": lambda state: {**state, "optimizer_history": []},
    "no extra state": lambda state: {name: value for name, value in state.items() if name != "extra_state"},
    "no settings": lambda state: {name: value for name, value in state.items() if name not in ("cfg", "args")},
}


@pytest.mark.parametrize("change", OTHERS.values(), ids=OTHERS)
def test_a_file_of_another_kind_is_named(tmp_path: Path, change: Any) -> None:
    path = tmp_path / "other.pt"
    torch.save(change(WHOLE), path)
    with pytest.raises(CheckpointError, match=rf"{path}: this is not a checkpoint of fairseq-train, because"):
        checkpoint_utils.load_checkpoint_to_cpu(str(path))
