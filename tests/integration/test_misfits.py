"""Test that an error or a warning says what differs if a checkpoint has other sizes, encodings or dictionaries."""

from __future__ import annotations

import contextlib
import json
import logging
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from fairseq_posenc.compat import CheckpointError, safe_load

from . import masked_lm, support


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with data-bin and checkpoints of a posenc model (save) and of fairseq's own RoBERTa (roberta)."""
    folder = tmp_path_factory.mktemp("misfits")
    data = masked_lm.write_corpus(folder / "data-bin")
    quick = ["--max-update", 1, "--no-epoch-checkpoints", "--save-dir"]
    masked_lm.train(data, *quick, folder / "save", "--pos-enc", "learned+rope")
    masked_lm.train(data, *quick, folder / "roberta", model=masked_lm.STOCK, task=masked_lm.STOCK_TASK)
    return folder


def go_on(folder: Path, *more: Any, data: str | Path = "data-bin", save: str = "save", **parts: Any) -> support.Run:
    start = ["--finetune-from-model", folder / save / "checkpoint_last.pt", "--save-dir", folder / "new", "--no-save"]
    return masked_lm.train(folder / data, *start, "--max-update", 1, "--pos-enc", "learned+rope", *more, **parts)


@pytest.mark.parametrize(("flags", "message"), support.table("refused.toml", "a checkpoint of another model").items())
def test_another_model_is_named(folder: Path, flags: str, message: str) -> None:
    """One line names the file, the flag with both values, and a weight. fairseq itself accepts other heads."""
    with pytest.raises(CheckpointError, match=message) as caught:
        go_on(folder, *flags.split())
    assert str(folder / "save" / "checkpoint_last.pt") in str(caught.value)
    assert "\n" not in str(caught.value)


def test_stock_roberta_goes_through_import(folder: Path) -> None:
    with pytest.raises(
        CheckpointError, match=r"architecture roberta, but the model has posenc_roberta_tiny; .* import-hf "
    ):
        go_on(folder, save="roberta")


#: An encoder.json in GPT-2's form.
ENCODER = {piece: 100 - i for i, piece in enumerate(masked_lm.PIECES)}
NUMBERS = [str(ENCODER[piece]) for piece in masked_lm.PIECES]
DICTIONARIES = {
    "pieces": masked_lm.PIECES,
    "other order": masked_lm.PIECES[::-1],
    "one more": [*masked_lm.PIECES, "more"],
    "numbers": NUMBERS,
    "numbers in other order": NUMBERS[::-1],
    "one more number": [*NUMBERS, "7"],
}


def write_dictionary(folder: Path, name: str) -> None:
    (folder / "dict.txt").write_text("".join(f"{symbol} 1\n" for symbol in DICTIONARIES[name]), "utf-8")


@pytest.mark.parametrize("case", support.table("misfits.toml", "dictionaries"), ids=lambda case: case["data"])
def test_dictionaries_are_compared(case: Any, folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The dictionary of the checkpoint is the one beside it, as after import-hf, or that of its training data.

    The dictionary of a Hugging Face model has pieces; data for fairseq's RoBERTa have the numbers that stand for them
    in GPT-2's encoder.json, which lies beside the dictionary, one folder above it or where a flag says.
    """
    encoder = case.get("encoder")
    data = Path(shutil.copytree(folder / "data-bin", tmp_path / "corpus" / "shard"))
    write_dictionary(data, case["data"])
    flags: list[Any] = []
    if "checkpoint" in case:
        (tmp_path / "checkpoint").mkdir()
        shutil.copy(folder / "save" / "checkpoint_last.pt", tmp_path / "checkpoint")
        write_dictionary(tmp_path / "checkpoint", case["checkpoint"])
        flags = ["--finetune-from-model", tmp_path / "checkpoint" / "checkpoint_last.pt"]
    if encoder:
        (tmp_path / encoder / "tokenizer").mkdir(parents=True)
        (tmp_path / encoder / "tokenizer" / "encoder.json").write_text(json.dumps(ENCODER), "utf-8")
    if encoder == "flag":
        flags = ["--mask-whole-words", "--subwords", "gpt2", "--gpt2-encoder-json"]
        flags.append(tmp_path / "flag" / "tokenizer" / "encoder.json")
    refused = pytest.raises(CheckpointError, match=case["refused"]) if "refused" in case else contextlib.nullcontext()
    with caplog.at_level(logging.WARNING), refused:
        go_on(folder, *flags, data=data)
    told = "put GPT-2's encoder.json into a folder tokenizer/" in caplog.text
    assert told == ("number" in case["data"] and encoder is None)


def test_where_its_dictionary_is_gone_the_size_tells(folder: Path, tmp_path: Path) -> None:
    state = safe_load(folder / "save" / "checkpoint_last.pt")
    state["cfg"]["task"]["data"] = str(tmp_path / "gone")
    torch.save(state, tmp_path / "moved.pt")
    shutil.copytree(folder / "data-bin", tmp_path / "data-bin")
    write_dictionary(tmp_path / "data-bin", "one more")
    with pytest.raises(CheckpointError, match=r"dictionaries have different sizes. Binarise .* checkpoint's dict\.txt"):
        go_on(folder, "--finetune-from-model", tmp_path / "moved.pt", data=tmp_path / "data-bin")


@pytest.mark.parametrize(("flags", "message"), support.table("misfits.toml", "told").items())
def test_what_fits_is_loaded_and_other_settings_are_told(
    folder: Path, flags: str, message: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        go_on(folder, *flags.split())
    assert ("trained with other settings" in caplog.text) == bool(message)
    assert message in caplog.text


def test_translation_is_compared_too(data: Path, trained: Path, tmp_path: Path) -> None:
    start = ["--finetune-from-model", trained / "checkpoint_last.pt", "--save-dir", tmp_path, "--pos-enc", "shaw"]
    with pytest.raises(CheckpointError, match="--decoder-attention-heads is 2 in the checkpoint, 4 here"):
        support.train(data, *start, "--decoder-attention-heads", 4)


def test_an_optimizer_state_that_does_not_fit_is_named(data: Path, trained: Path, tmp_path: Path) -> None:
    path = tmp_path / "other.pt"
    torch.save({**safe_load(trained / "checkpoint_last.pt"), "last_optimizer_state": {"param_groups": []}}, path)
    with pytest.raises(CheckpointError, match=rf"{path}: the state of the training cannot be restored .*--finetune"):
        support.train(data, "--pos-enc", "shaw", "--save-dir", tmp_path / "new", "--restore-file", path)
