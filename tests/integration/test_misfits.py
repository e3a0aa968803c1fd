"""Test that an error or a warning says what differs if a checkpoint has other sizes, encodings or dictionaries."""

from __future__ import annotations

import json
import logging
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from fairseq_posenc.compat import CheckpointError

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


def go_on(folder: Path, *more: Any, data: str = "data-bin", save: str = "save", **parts: Any) -> support.Run:
    start = ["--finetune-from-model", folder / save / "checkpoint_last.pt", "--save-dir", folder / "new", "--no-save"]
    return masked_lm.train(folder / data, *start, "--max-update", 1, "--pos-enc", "learned+rope", *more, **parts)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (
            "--encoder-embed-dim 32",
            r"--encoder-embed-dim is 16 in the checkpoint, 32 here; .*\[19, 16\] in the checkpoint",
        ),
        ("--encoder-layers 3", r"--encoder-layers is 2 in the checkpoint, 3 here; the checkpoint has no .*layers.2"),
        ("--encoder-layers 1", r"--encoder-layers is 2 in the checkpoint, 1 here; the model has no .*layers.1"),
        ("--encoder-ffn-embed-dim 8", r"--encoder-ffn-embed-dim is 16 in the checkpoint, 8 here; .*fc1"),
        ("--encoder-normalize-before", "--encoder-normalize-before is False in the checkpoint, True here"),
        ("--encoder-attention-heads 4", r"--encoder-attention-heads is 2 in the checkpoint, 4 here"),
        ("--pos-enc shaw", r"--pos-enc is learned\+rope in the checkpoint, shaw here.* import-hf \S+ --pos-enc shaw"),
        (
            "--tokens-per-sample 12",
            r"--tokens-per-sample is 24 in the checkpoint, 12 here.*--max-positions 12 ",
        ),
    ],
)
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


def with_dictionary(folder: Path, name: str, symbols: list[str]) -> str:
    shutil.rmtree(folder / name, ignore_errors=True)
    shutil.copytree(folder / "data-bin", folder / name)
    (folder / name / "dict.txt").write_text("".join(f"{symbol} 1\n" for symbol in symbols), "utf-8")
    return name


@pytest.mark.parametrize(
    ("symbols", "message"),
    [
        (
            masked_lm.PIECES[::-1],
            r"'\u2581w0' as id 4, but the data's dictionary has 'p5'\. Binarise the data",
        ),
        ([*masked_lm.PIECES, "more"], "has 18 symbols .*, but the data's dictionary has 19"),
    ],
)
def test_another_dictionary_is_named(folder: Path, symbols: list[str], message: str) -> None:
    """The error names the dictionary of the checkpoint's training data. fairseq itself compares only sizes."""
    with pytest.raises(CheckpointError, match=message):
        go_on(folder, data=with_dictionary(folder, "other", symbols))


def test_the_dictionary_beside_the_checkpoint_is_the_one(folder: Path, tmp_path: Path) -> None:
    """This is the case after import-hf, whose models were not trained on data here."""
    shutil.copy(folder / "save" / "checkpoint_last.pt", tmp_path)
    words = ["--finetune-from-model", tmp_path / "checkpoint_last.pt", "--save-dir", tmp_path / "new", "--no-save"]
    words += ["--max-update", 1, "--pos-enc", "learned+rope"]
    (tmp_path / "dict.txt").write_text("".join(f"{symbol} 1\n" for symbol in masked_lm.PIECES[::-1]), "utf-8")
    with pytest.raises(CheckpointError, match=r"dict\.txt. The checkpoint's dictionary has 'p5' as id 4"):
        masked_lm.train(folder / "data-bin", *words)


#: An encoder.json in GPT-2's form, and a dictionary that lists its ids in another order.
ENCODER = {piece: 100 - i for i, piece in enumerate(masked_lm.PIECES)}
NUMBERS = [str(ENCODER[piece]) for piece in masked_lm.PIECES]


def encoder(folder: Path, pieces: dict[str, int] = ENCODER) -> None:
    (folder / "tokenizer").mkdir(parents=True)
    (folder / "tokenizer" / "encoder.json").write_text(json.dumps(pieces), "utf-8")


@pytest.mark.parametrize("place", ["corpus/shard00000", "corpus"])
def test_numbers_of_gpt2_are_the_pieces_that_they_stand_for(
    folder: Path, caplog: pytest.LogCaptureFixture, place: str
) -> None:
    """The dictionary of a Hugging Face model has pieces; data for fairseq's RoBERTa have numbers."""
    name = f"{place.replace('/', '-')}/{place}"
    data = with_dictionary(folder, name, NUMBERS)
    encoder(folder / name.removesuffix("/shard00000"))
    with caplog.at_level(logging.WARNING):
        go_on(folder, data=data)
    assert "GPT-2" not in caplog.text
    with_dictionary(folder, f"{name}-other", NUMBERS[::-1])
    if "/shard" not in name:
        encoder(folder / f"{name}-other")
    with pytest.raises(CheckpointError, match="'\u2581w0' as id 4, but the data's dictionary has 'p5'"):
        go_on(folder, data=f"{name}-other")


def test_a_checkpoint_may_have_the_numbers(folder: Path, tmp_path: Path) -> None:
    shutil.copy(folder / "save" / "checkpoint_last.pt", tmp_path)
    words = ["--finetune-from-model", tmp_path / "checkpoint_last.pt", "--save-dir", tmp_path / "new", "--no-save"]
    words += ["--max-update", 1, "--pos-enc", "learned+rope"]
    (tmp_path / "dict.txt").write_text("".join(f"{number} 1\n" for number in NUMBERS), "utf-8")
    encoder(tmp_path)
    masked_lm.train(folder / "data-bin", *words)
    (tmp_path / "dict.txt").write_text("".join(f"{number} 1\n" for number in NUMBERS[::-1]), "utf-8")
    with pytest.raises(CheckpointError, match="'p5' as id 4, but the data's dictionary has '\u2581w0'"):
        masked_lm.train(folder / "data-bin", *words)


def test_without_an_encoder_the_sizes_are_compared(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        go_on(folder, data=with_dictionary(folder, "numbers", NUMBERS))
    assert caplog.text.count("put GPT-2's encoder.json into a folder tokenizer/") == 1
    with pytest.raises(CheckpointError, match=r"has 18 symbols .*, but the data's dictionary has 19"):
        go_on(folder, data=with_dictionary(folder, "more", [*NUMBERS, "7"]))


def test_the_encoder_of_whole_words_is_the_one(folder: Path) -> None:
    encoder(folder / "elsewhere")
    flags = ["--gpt2-encoder-json", folder / "elsewhere" / "tokenizer" / "encoder.json"]
    data = with_dictionary(folder, "flagged", NUMBERS[::-1])
    with pytest.raises(CheckpointError, match="but the data's dictionary has 'p5'"):
        go_on(folder, "--mask-whole-words", "--subwords", "gpt2", *flags, data=data)


def test_an_encoder_of_other_numbers_is_refused(folder: Path) -> None:
    data = with_dictionary(folder, "strange", NUMBERS)
    encoder(folder / data, {"a": 1})
    with pytest.raises(CheckpointError, match=r"encoder\.json has no piece with id 100"):
        go_on(folder, data=data)


def test_where_its_dictionary_is_gone_the_size_tells(folder: Path, tmp_path: Path) -> None:
    state = torch.load(folder / "save" / "checkpoint_last.pt", weights_only=True)
    state["cfg"]["task"]["data"] = str(tmp_path / "gone")
    (folder / "moved").mkdir(exist_ok=True)
    torch.save(state, folder / "moved" / "checkpoint_last.pt")
    other = with_dictionary(folder, "other", [*masked_lm.PIECES, "more"])
    with pytest.raises(CheckpointError, match=r"dictionaries have different sizes. Binarise .* checkpoint's dict\.txt"):
        go_on(folder, data=other, save="moved")


def test_what_fits_is_loaded_and_an_encoding_without_weights_is_compared(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        go_on(folder)
        assert "trained with other settings" not in caplog.text
        go_on(folder, "--pos-enc", "learned+rope", "--layer-norm-eps", "1e-3")
        assert re.search(
            r"trained with other settings: --layer-norm-eps is 1e-05 in the checkpoint, 0.001 here", caplog.text
        )
        go_on(folder, "--pos-enc", "learned")
    assert re.search(
        r"trained with other settings: --pos-enc is learned\+rope in the checkpoint, learned here", caplog.text
    )


def test_random_positions_are_compared_too(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    rope = ("--pos-enc", "rope", "--save-dir", folder / "rope")
    masked_lm.train(folder / "data-bin", *rope, "--max-update", 1)
    with caplog.at_level(logging.WARNING):
        go_on(folder, *rope, "--pos-enc-random", 50, save="rope")
    assert "settings: --pos-enc-random is not set in the checkpoint, 50 here" in caplog.text
    with pytest.raises(CheckpointError, match="--pos-enc-random is not set in the checkpoint, 50 here"):
        go_on(folder, "--pos-enc-random", 50)


def test_translation_is_compared_too(data: Path, trained: Path, tmp_path: Path) -> None:
    start = ["--finetune-from-model", trained / "checkpoint_last.pt", "--save-dir", tmp_path, "--pos-enc", "shaw"]
    with pytest.raises(CheckpointError, match="--decoder-attention-heads is 2 in the checkpoint, 4 here"):
        support.train(data, *start, "--decoder-attention-heads", 4)
