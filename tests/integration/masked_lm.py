"""Provide a tiny monolingual corpus, and tiny masked language models of it."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import torch
from fairseq.data import Dictionary

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
#: The functions of `support` for these models.
PARTS = {"model": TINY, "task": TASK, "recipe": RECIPE}
command_line = partial(support.command_line, **PARTS)
train, built = partial(support.train, **PARTS), partial(support.built, **PARTS)


def write_corpus(folder: Path, seed: int = 0) -> Path:
    """Write documents, separated by empty lines, in which each piece determines the next one."""
    folder.mkdir(parents=True)
    dictionary = Dictionary()
    for piece in PIECES:
        dictionary.add_symbol(piece)
    dictionary.save(str(folder / "dict.txt"))
    random = torch.Generator().manual_seed(seed)
    for split, size in (("train", 150), ("valid", 30)):
        numbers = [torch.randint(0, len(PIECES), (2,), generator=random).tolist() for _ in range(size)]
        lines = [[4 + (first + 3 * i) % len(PIECES) for i in range(2 + length % 9)] for first, length in numbers]
        lines[4::5] = [[]] * (size // 5)
        support.binarise(folder / split, lines, dictionary)
    return folder


def batches(task: Any, split: str = "valid", *, size: int = 8) -> list[dict[str, Any]]:
    """Return the batches of a split."""
    return support.batches(task, split, size=size, longest=LENGTH)
