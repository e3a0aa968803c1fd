"""Test that checkpoints of fairseq load as data, and that no damage to them goes unnoticed.

tests/integration/test_no_code.py holds the law that no checkpoint runs code.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import logging
import os
import pickle
import random
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import support_warm
import torch

pytest.importorskip("fairseq")

from fairseq import checkpoint_utils
from fairseq.data import Dictionary
from fairseq.data.indexed_dataset import make_builder

from fairseq_posenc import compat
from fairseq_posenc.compat.checkpoints import CheckpointError, has_checksums, safe_load

compat.apply()
ROOT = Path(__file__).resolve().parents[2]

# -- real checkpoints of fairseq-train

DRIVER = "from fairseq_posenc import compat; compat.apply(); from fairseq_cli.train import cli_main; cli_main()"
COMMON = """--optimizer adam --lr 0.001 --max-tokens 60 --log-format none --save-interval-updates 2
    --keep-interval-updates 3 --dropout 0 --cpu --disable-validation""".split()
TRANSLATION = """--task translation -s a -t b --arch lstm --encoder-embed-dim 8 --encoder-hidden-size 8
    --decoder-embed-dim 8 --decoder-hidden-size 8 --decoder-out-embed-dim 8 --max-update 5""".split()
LANGUAGE_MODEL = """--task language_modeling --arch transformer_lm --decoder-layers 1 --decoder-embed-dim 8
    --decoder-ffn-embed-dim 8 --decoder-attention-heads 2 --tokens-per-sample 10 --sample-break-mode eos
    --max-update 4 --bf16 --ema-decay 0.9 --store-ema""".split()


def write_corpus(folder: Path) -> None:
    """Write random lines as a translation corpus and as a corpus of a language model."""
    folder.mkdir()
    dictionary = Dictionary()
    for letter in "abcdefgh":
        dictionary.add_symbol(letter)
    for name in ("dict.a.txt", "dict.b.txt", "dict.txt"):
        dictionary.save(str(folder / name))
    random = torch.Generator().manual_seed(0)
    lines = [torch.randint(4, 12, (3 + i % 6,), generator=random) for i in range(60)]
    for name in ("train.a-b.a", "train.a-b.b", "train"):
        builder = make_builder(str(folder / f"{name}.bin"), "mmap", len(dictionary))
        for line in lines:
            builder.add_item(torch.cat([line, torch.tensor([dictionary.eos()])]))
        builder.finalize(str(folder / f"{name}.idx"))


def train(folder: Path, name: str, options: list[str]) -> Path:
    """Train for a few updates, stop inside an epoch, and return the checkpoints."""
    save = folder / name
    (folder / "driver.py").write_text(DRIVER)
    command = [sys.executable, folder / "driver.py", folder / "data", *options, *COMMON, "--save-dir", save]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = support_warm.run(command, env=environment)
    assert done.returncode == 0, done.stderr
    return save


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("trained")
    write_corpus(folder / "data")
    return {
        "translation": train(folder, "translation", TRANSLATION),
        "language model": train(folder, "lm", LANGUAGE_MODEL),
    }


@pytest.mark.parametrize("name", ["translation", "language model"])
def test_checkpoints_of_fairseq_train_load(trained: dict[str, Path], name: str) -> None:
    state = checkpoint_utils.load_checkpoint_to_cpu(str(trained[name] / "checkpoint_last.pt"))
    assert state["optimizer_history"][-1]["num_updates"] == {"translation": 5, "language model": 4}[name]
    assert all(torch.is_tensor(value) for value in state["model"].values())


def test_a_legacy_checkpoint_needs_the_allow_list(trained: dict[str, Path]) -> None:
    """A model without a dataclass stores its options as argparse.Namespace."""
    path = str(trained["translation"] / "checkpoint_last.pt")
    assert isinstance(safe_load(path)["cfg"]["model"], argparse.Namespace)
    allowed = torch.serialization.get_safe_globals()
    torch.serialization.clear_safe_globals()
    try:
        with pytest.raises(pickle.UnpicklingError, match=r"argparse\.Namespace"):
            torch.load(path, weights_only=True)
    finally:
        torch.serialization.add_safe_globals(allowed)
    assert "model" in torch.load(path, weights_only=True)


def test_bf16_trains_on_this_device(trained: dict[str, Path]) -> None:
    state = safe_load(trained["language model"] / "checkpoint_last.pt")
    assert state["cfg"]["common"]["bf16"]
    assert not state["cfg"]["common"]["tpu"]


def test_ema_weights_load_as_data(trained: dict[str, Path]) -> None:
    state = checkpoint_utils.load_ema_from_checkpoint(str(trained["language model"] / "checkpoint_last.pt"))
    assert state["model"]


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
    assert outcomes(lambda path: torch.load(path, weights_only=True), tmp_path).count("another") > 20  # the fault


def damaged(path: Path, part: str = "data/1") -> Path:
    """Save a checkpoint and flip a bit in the content of one of its parts."""
    content = save(path).read_bytes()
    inside = {"data/1": STATE["model"]["w1"].numpy().tobytes(), "data.pkl": b"extra_state"}[part]
    flip(path, 8 * (content.index(inside) + 5))
    return path


@pytest.mark.parametrize("opened", [False, True])
def test_the_part_and_the_file_are_named(tmp_path: Path, opened: bool) -> None:
    path = damaged(tmp_path / "model.pt")
    expected = r"model\.pt: .*Bad CRC-32 for file 'model/data/1'.*or give another checkpoint"
    with pytest.raises(CheckpointError, match=expected), path.open("rb") as file:
        safe_load(file if opened else path)


def test_mapped_weights_are_left_out_but_not_the_settings(tmp_path: Path) -> None:
    assert not same(safe_load(damaged(tmp_path / "weights.pt"), mmap=True))
    with pytest.raises(CheckpointError, match=r"CRC-32 for file 'settings/data\.pkl'"):
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
    assert not has_checksums(path)
    with caplog.at_level(logging.INFO):
        assert same(safe_load(path))
        assert same(safe_load(path, mmap=True))
    (message,) = caplog.messages
    assert message == f"{path}: the file has no checksums, so damage to its weights cannot be noticed."


@pytest.mark.parametrize("checksums", [True, False], ids=["checksums", "no-checksums"])
@pytest.mark.parametrize("part", ["data.pkl", "data/0"])
def test_a_compressed_part_may_be_a_bomb_and_is_refused(tmp_path: Path, part: str, checksums: bool) -> None:
    """torch.load itself uncompresses a part of any size into memory."""
    path, bomb = save(tmp_path / "model.pt"), tmp_path / "bomb.pt"
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(bomb, "w") as new:
        for entry in old.infolist():
            is_compressed = entry.filename.endswith(part)
            new.writestr(entry.filename, old.read(entry), zipfile.ZIP_DEFLATED if is_compressed else zipfile.ZIP_STORED)
        for entry in new.infolist():
            entry.CRC *= checksums
    for options in ({}, {"mmap": True}):
        with pytest.raises(CheckpointError, match=rf"bomb\.pt: .*its part model/{part} is compressed"):
            safe_load(bomb, **options)


@pytest.mark.parametrize("loader", [checkpoint_utils.load_checkpoint_to_cpu, safe_load], ids=["fairseq", "plugin"])
@pytest.mark.parametrize("content", ["cut", "empty", "text", "zeros"])
def test_a_file_that_cannot_be_read_is_named_with_what_to_do(
    tmp_path: Path, content: str, loader: Callable[[str], Any]
) -> None:
    path = save(tmp_path / "checkpoint_last.pt")
    whole = path.read_bytes()
    path.write_bytes({"cut": whole[:-200], "empty": b"", "text": b"hello there\n", "zeros": bytes(99)}[content])
    with pytest.raises(CheckpointError, match=r"incomplete or damaged: copy it again, or give another") as refusal:
        loader(str(path))
    assert str(path) in str(refusal.value)
    assert f"{path.stat().st_size:,} bytes" in str(refusal.value)
    path.unlink()
    with pytest.raises(FileNotFoundError, match=r"checkpoint_last\.pt"):
        loader(str(path))


OTHERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "a list": lambda state: [state],
    "a number": lambda state: 3,
    "nothing": lambda state: None,
    "no parts": lambda state: {},
    "the weights alone": lambda state: state["model"],
    "weights in a list": lambda state: {**state, "model": [1]},
    "an empty history": lambda state: {**state, "optimizer_history": []},
    "no extra state": lambda state: {name: value for name, value in state.items() if name != "extra_state"},
    "no settings": lambda state: {name: value for name, value in state.items() if name not in ("cfg", "args")},
}


@pytest.mark.parametrize("change", OTHERS.values(), ids=OTHERS)
def test_a_file_of_another_kind_is_named(trained: dict[str, Path], tmp_path: Path, change: Any) -> None:
    path = tmp_path / "other.pt"
    torch.save(change(safe_load(trained["translation"] / "checkpoint_last.pt")), path)
    with pytest.raises(CheckpointError, match=rf"{path}: this is not a checkpoint of fairseq-train, because"):
        checkpoint_utils.load_checkpoint_to_cpu(str(path))


def test_no_argument_makes_the_loader_unsafe(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="weights_only"):
        safe_load(save(tmp_path / "one.pt"), weights_only=False)
