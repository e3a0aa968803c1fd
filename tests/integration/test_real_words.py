"""Test masks of whole words on real text with the published tokenizers, if POSENC_DATA names the folder of the data.

The folder contains wikitext-2/valid.txt.gz, bert-vocab/bert-base-uncased-vocab.txt.gz and gpt2_bpe/*.gz, as published.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fairseq.data.indexed_dataset import make_builder
from numpy.typing import NDArray
from support_scripts import DATA

from . import masked_lm

TEXT = DATA / "wikitext-2" / "valid.txt.gz"
#: A function that splits a line into words, and each word into symbols of the dictionary.
Cut = Callable[[str], list[list[str]]]
LINES = 800

pytestmark = pytest.mark.skipif(not TEXT.is_file(), reason="POSENC_DATA names no folder with wikitext-2")


def read(path: Path) -> str:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return file.read()


def unpacked(name: str, folder: Path) -> Path:
    path = folder / Path(name).name
    path.write_text(read(DATA / f"{name}.gz"), "utf-8")
    return path


def sentencepiece(text: list[str], folder: Path, learned: Path | None = None) -> tuple[Cut, list[str], list[str]]:
    """Return the function, the symbols and the flags; learn the model if needed. Spaces separate words."""
    spm = pytest.importorskip("sentencepiece")
    if learned is None:
        how = {"model_prefix": str(folder / "sp"), "vocab_size": 2000, "minloglevel": 2}
        spm.SentencePieceTrainer.train(sentence_iterator=iter(text), **how)
    processor = spm.SentencePieceProcessor(model_file=str(learned or folder / "sp.model"))

    def cut(line: str) -> list[list[str]]:
        pieces = [processor.encode(word, out_type=str) for word in line.split()]
        assert list(chain(*pieces)) == processor.encode(line, out_type=str)
        return pieces

    return cut, [processor.id_to_piece(i) for i in range(3, processor.vocab_size())], []


def wordpiece(text: list[str], folder: Path) -> tuple[Cut, list[str], list[str]]:
    """Return those of BERT, uncased; punctuation marks are words."""
    tokenizers = pytest.importorskip("tokenizers")
    path = unpacked("bert-vocab/bert-base-uncased-vocab.txt", folder)
    tokenizer = tokenizers.BertWordPieceTokenizer(str(path))

    def cut(line: str) -> list[list[str]]:
        plain = tokenizer.normalizer.normalize_str(line)
        words = [word for word, _ in tokenizer.pre_tokenizer.pre_tokenize_str(plain)]
        pieces = [tokenizer.encode(word, add_special_tokens=False).tokens for word in words]
        assert list(chain(*pieces)) == tokenizer.encode(line, add_special_tokens=False).tokens
        return [["<unk>" if piece == "[UNK]" else piece for piece in word] for word in pieces]

    return cut, [piece for piece in tokenizer.get_vocab() if piece[0] != "[" or len(piece) == 1], []


def gpt2(text: list[str], folder: Path) -> tuple[Cut, list[str], list[str]]:
    """Return those of RoBERTa, with fairseq's dictionary of numbers. Spaces separate words."""
    from fairseq.data.encoders.gpt2_bpe_utils import get_encoder

    encoder, merges = (unpacked(f"gpt2_bpe/{name}", folder) for name in ("encoder.json", "vocab.bpe"))
    bpe = get_encoder(str(encoder), str(merges))

    def cut(line: str) -> list[list[str]]:
        pieces = [bpe.encode(" " * (i > 0) + word) for i, word in enumerate(line.split())]
        assert list(chain(*pieces)) == bpe.encode(line)
        return [[str(number) for number in word] for word in pieces]

    symbols = [line.split()[0] for line in read(DATA / "gpt2_bpe" / "dict.txt.gz").splitlines()]
    return cut, symbols, ["--gpt2-encoder-json", str(encoder)]


SCHEMES = {"sentencepiece": sentencepiece, "wordpiece": wordpiece, "gpt2": gpt2}


def binarised(lines: list[list[list[str]]], symbols: list[str], folder: Path) -> Path:
    """Binarise text as fairseq-preprocess does."""
    (folder / "dict.txt").write_text("".join(f"{symbol} 1\n" for symbol in symbols), "utf-8")
    ids = {"<unk>": 3, **{symbol: i for i, symbol in enumerate(symbols, 4)}}
    builder = make_builder(str(folder / "train.bin"), "mmap", len(ids) + 4)
    for line in lines:
        builder.add_item(torch.tensor([*(ids.get(piece, 3) for word in line for piece in word), 2]))
    builder.finalize(str(folder / "train.idx"))
    return folder


def samples(data: Path, *flags: Any) -> tuple[dict[str, NDArray[np.int64]], int]:
    """Return the concatenated samples of the first epoch without <s> and </s>, and the id of <mask>."""
    _, task = masked_lm.built(data, "--mask-whole-words", *flags, "--tokens-per-sample", 512)
    task.load_dataset("train")
    dataset = task.dataset("train")
    dataset.set_epoch(1)
    names = {"given": "net_input.unmasked_tokens", "shown": "net_input.src_tokens", "target": "target"}
    parts = [dataset[i] for i in range(len(dataset))]
    arrays = {name: torch.cat([part[key] for part in parts]).numpy() for name, key in names.items()}
    text = arrays["given"] >= 3
    assert (arrays["target"][~text] == 1).all()
    return {name: ids[text] for name, ids in arrays.items()}, task.mask_idx


def figures(scheme: str, text: list[str], folder: Path, **options: Any) -> dict[str, float]:
    """Return what the task masks in a text, and the words of the text."""
    cut, symbols, flags = SCHEMES[scheme](text, folder, **options)
    lines = [cut(line) for line in text]
    ids, mask = samples(binarised(lines, symbols, folder), "--subwords", scheme, *flags)
    sizes = np.array([len(word) for line in lines for word in line])
    of_word = np.repeat(np.arange(len(sizes)), sizes)
    on = ids["target"] != 1
    fates = {"masked": on & (ids["shown"] == mask), "kept": on & (ids["shown"] == ids["given"])}
    fates["random"] = on & ~fates["masked"] & ~fates["kept"]
    known = np.bincount(of_word, ids["given"] > 3, len(sizes))  # <unk> is never predicted
    of = {name: np.bincount(of_word, flags, len(sizes)) for name, flags in {"predicted": on, **fates}.items()}
    return {
        "words": len(sizes),
        "words of several pieces": (sizes > 1).mean(),
        "words predicted": (of["predicted"] > 0).sum() / (known > 0).sum(),
        "pieces predicted": on.mean(),
        **{name: flags.sum() / on.sum() for name, flags in fates.items()},
        **{f"words {name} in part": float(_in_part(of[name], known)) for name in ("predicted", "masked")},
    }


def _in_part(shares: NDArray[np.float64], of: NDArray[np.float64]) -> int:
    return int(((shares > 0) & (shares < of)).sum())


@pytest.mark.parametrize("scheme", SCHEMES)
def test_whole_words_of_real_text(scheme: str, tmp_path: Path) -> None:
    text = [line.strip() for line in read(TEXT).splitlines() if line.strip()][:LINES]
    result = figures(scheme, text, tmp_path)
    assert result["words predicted in part"] == result["words masked in part"] == 0
    assert result["words of several pieces"] > 0.05
    assert result["words predicted"] == pytest.approx(0.15, abs=0.005)
    assert result["pieces predicted"] == pytest.approx(0.15, abs=0.01)
    assert result["masked"] == pytest.approx(0.8, abs=0.02)
    assert result["kept"] == pytest.approx(0.1, abs=0.015)
    assert result["random"] == pytest.approx(0.1, abs=0.015)
