"""Provide a tiny monolingual corpus, and tiny language models of it."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import torch
from fairseq.data import Dictionary

from . import support

WORDS = 30
#: Number of lines of each split; these are not multiples of a batch size.
LINES = {"train": 61, "valid": 17, "test": 19}
SEGMENT, MEMORY, STREAMS = 8, 12, 4

ARCH = ["--arch", "posenc_transformer_lm_tiny"]
SIZES = """--decoder-layers 2 --decoder-embed-dim 16 --decoder-ffn-embed-dim 16 --decoder-attention-heads 2
    --dropout 0 --share-decoder-input-output-embed""".split()
STOCK = ["--arch", "transformer_lm", *SIZES, "--decoder-input-dim", "16", "--decoder-output-dim", "16"]
TINY = [*ARCH, *SIZES]
TASK = f"--task posenc_lm_memory --tokens-per-sample {SEGMENT} --mem-length {MEMORY}".split()
STOCK_TASK = f"--task language_modeling --tokens-per-sample {SEGMENT}".split()
RECIPE = f"""--criterion cross_entropy --optimizer adam --lr 0.01 --batch-size {STREAMS} --seed 3 --cpu
    --log-format none --num-workers 0 --data-buffer-size 0""".split()
#: The functions of `support` for these models.
PARTS = {"model": TINY, "task": TASK, "recipe": RECIPE}
command_line = partial(support.command_line, **PARTS)
train, built = partial(support.train, **PARTS), partial(support.built, **PARTS)


def write_corpus(folder: Path, words: int = WORDS) -> Path:
    """Write sentences in which two words determine the next word."""
    folder.mkdir(parents=True)
    dictionary = Dictionary()
    for number in range(words):
        dictionary.add_symbol(f"w{number}", n=words - number)
    dictionary.save(str(folder / "dict.txt"))
    random = torch.Generator().manual_seed(0)
    for split, size in LINES.items():
        numbers = (torch.randint(1, 12, (3,), generator=random).tolist() for _ in range(size))
        lines = ([4 + (first + step * i) % words for i in range(length)] for first, step, length in numbers)
        support.binarise(folder / split, lines, dictionary)
    return folder


def batches(task: Any, split: str = "valid", *, size: int = STREAMS) -> list[dict[str, Any]]:
    """Return the batches of a split in order."""
    return support.batches(task, split, size=size, longest=None)
