"""Provide a tiny monolingual corpus, and tiny language models of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from fairseq.data import Dictionary
from fairseq.data.indexed_dataset import make_builder

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


def write_corpus(folder: Path, words: int = WORDS) -> Path:
    """Write sentences in which two words determine the next word."""
    folder.mkdir(parents=True)
    dictionary = Dictionary()
    for number in range(words):
        dictionary.add_symbol(f"w{number}", n=words - number)
    dictionary.save(str(folder / "dict.txt"))
    random = torch.Generator().manual_seed(0)
    for split, size in LINES.items():
        builder = make_builder(f"{folder / split}.bin", "mmap", len(dictionary))
        for _ in range(size):
            first, step, length = torch.randint(1, 12, (3,), generator=random).tolist()
            ids = [4 + (first + step * i) % words for i in range(length)]
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


def batches(task: Any, split: str = "valid", *, size: int = STREAMS, **more: Any) -> list[dict[str, Any]]:
    """Return the batches of a split in order."""
    task.load_dataset(split)
    iterator = task.get_batch_iterator(task.dataset(split), max_sentences=size, **more)
    return list(iterator.next_epoch_itr(shuffle=False))
