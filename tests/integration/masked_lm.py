"""Provide a tiny monolingual corpus, and tiny masked language models of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from fairseq.data import Dictionary
from fairseq.data.indexed_dataset import make_builder

from . import support

#: Subword pieces, with the marks of SentencePiece.
PIECES = [f"\u2581w{i}" for i in range(8)] + [f"p{i}" for i in range(6)]
LENGTH = 24

TINY = """--arch posenc_roberta_tiny --encoder-layers 2 --encoder-embed-dim 16 --encoder-ffn-embed-dim 16
    --encoder-attention-heads 2 --dropout 0 --attention-dropout 0""".split()
STOCK = [word.replace("posenc_roberta_tiny", "roberta") for word in TINY]
TASK = f"--task posenc_masked_lm --sample-break-mode complete --tokens-per-sample {LENGTH}".split()
STOCK_TASK = [word.replace("posenc_masked_lm", "masked_lm") for word in TASK]
RECIPE = """--criterion masked_lm --optimizer adam --lr 0.01 --batch-size 16 --seed 3 --cpu --log-format none
    --num-workers 0 --data-buffer-size 0 --required-batch-size-multiple 1 --skip-invalid-size-inputs-valid-test
    """.split()


def write_corpus(folder: Path, seed: int = 0) -> Path:
    """Write documents, separated by empty lines, in which each piece determines the next one."""
    folder.mkdir(parents=True)
    dictionary = Dictionary()
    for piece in PIECES:
        dictionary.add_symbol(piece)
    dictionary.save(str(folder / "dict.txt"))
    random = torch.Generator().manual_seed(seed)
    for split, size in (("train", 150), ("valid", 30)):
        builder = make_builder(f"{folder / split}.bin", "mmap", len(dictionary))
        for number in range(size):
            first, length = torch.randint(0, len(PIECES), (2,), generator=random).tolist()
            ids = [] if number % 5 == 4 else [4 + (first + 3 * i) % len(PIECES) for i in range(2 + length % 9)]
            builder.add_item(torch.tensor([*ids, dictionary.eos()]))
        builder.finalize(f"{folder / split}.idx")
    return folder


def command_line(data: Path, *arguments: Any, model: Sequence[str] = TINY, task: Sequence[str] = TASK) -> list[str]:
    """Return the arguments of fairseq-train; without `--save-dir` nothing is saved."""
    save = [] if "--save-dir" in arguments else ["--no-save"]
    checks = [] if "--valid-subset" in arguments else ["--disable-validation"]
    words = [data, "--user-dir", support.PLUGIN, *task, *RECIPE, *save, *checks, *model, *arguments]
    return [str(word) for word in words]


def train(data: Path, *arguments: Any, **parts: Sequence[str]) -> support.Run:
    """Run fairseq-train."""
    return support.trained(command_line(data, *arguments, **parts))


def built(data: Path, *arguments: Any, seed: int = 5, **parts: Sequence[str]) -> tuple[Any, Any]:
    """Return an untrained model in evaluation mode and its task."""
    return support.built_of(command_line(data, *arguments, **parts), seed)


def batches(task: Any, split: str = "valid", *, size: int = 8) -> list[dict[str, Any]]:
    """Return the batches of a split."""
    return support.batches(task, split, size=size, longest=LENGTH)
