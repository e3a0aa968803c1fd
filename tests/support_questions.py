"""Provide a prepared folder of toy questions, and small models for them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from fairseq.data import Dictionary
from fairseq.data.indexed_dataset import make_builder
from integration import support
from torch import Tensor

BOS, PAD, EOS, UNK = 0, 1, 2, 3
PIECES = ("what", "is", "?", "a", "b", "c", "d", "e", "f", "g", "h", "i")
#: Ids of the special tokens.
WHAT, IS, MARK, FIRST = 4, 5, 6, 7
SIZE = 4 + len(PIECES)
SIZES = {"train": 160, "valid": 9, "test": 11}

ARCH = "--arch posenc_question_generation_tiny --dropout 0 --attention-dropout 0".split()
TASK = ["--task", "posenc_question_generation", "--max-source-positions", 24, "--max-target-positions", 10]
CRITERION = ["--criterion", "question_generation"]


def write_questions(folder: Path, sizes: dict[str, int] = SIZES, pieces: Sequence[str] = PIECES) -> Path:
    """Write `<s> answer </s> context </s>` with one or two unknown words; `what is WORD ?` asks for the first."""
    folder.mkdir(parents=True)
    dictionary = Dictionary()
    for piece in pieces:
        dictionary.add_symbol(piece)
    for side in ("src", "tgt"):
        dictionary.save(str(folder / f"dict.{side}.txt"))
    random = torch.Generator().manual_seed(0)
    for split, size in sizes.items():
        items = [item(len(dictionary), random) for _ in range(size)]
        for part, place in (("src-tgt.src", 0), ("src-tgt.tgt", 1), ("segments", 2)):
            write_ids(folder / f"{split}.{part}", [row[place] for row in items])
        words = [[f"{split}{number}x{k}" for k in range(row[3])] for number, row in enumerate(items)]
        lines = [json.dumps({"unknown": w, "references": [f"what is {w[0]} ?"]}) for w in words]
        (folder / f"{split}.surface.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    return folder


def item(size: int, random: torch.Generator) -> tuple[Tensor, Tensor, Tensor, int]:
    """Return source, question, segments and the number of unknown words."""
    unknown = int(torch.randint(1, 3, (), generator=random))
    context = torch.randint(FIRST, size, (int(torch.randint(3, 8, (), generator=random)),), generator=random).tolist()
    for k in range(unknown):
        after = context.index(size) + 1 if k else 0  # ids are in the order of first occurrence
        context.insert(int(torch.randint(after, len(context) + 1, (), generator=random)), size + k)
    answer = [int(torch.randint(FIRST, size, (), generator=random))]
    source = torch.tensor([BOS, *answer, EOS, *context, EOS])
    segments = torch.tensor([0] * (len(answer) + 2) + [1] * (len(context) + 1))
    return source, torch.tensor([WHAT, IS, size, MARK, EOS]), segments, unknown


def write_ids(path: Path, lines: Sequence[Tensor]) -> None:
    builder = make_builder(f"{path}.bin", "mmap", 60000)
    for line in lines:
        builder.add_item(line)
    builder.finalize(f"{path}.idx")


def words(data: Path, *more: Any) -> list[str]:
    """Return the arguments of fairseq-train for a tiny model; without --save-dir nothing is saved."""
    criterion, model = ([] if words[0] in more else words for words in (CRITERION, ARCH))
    return support.command_line(data, *more, task=TASK, model=[*criterion, *model])


def built(data: Path, *more: Any, seed: int = 5) -> tuple[Any, Any]:
    """Return an untrained model in evaluation mode, and its task."""
    return support.built_of(words(data, *more), seed)


def moved(data: Path, *more: Any) -> tuple[Any, Any]:
    """Return the model with all parameters moved away from their initial values."""
    model, task = built(data, *more)
    return support.move(model, seed=1).eval(), task


def trained(data: Path, *more: Any) -> support.Run:
    return support.trained(words(data, *more))


def batch(task: Any, split: str = "test", size: int = 64) -> dict[str, Any]:
    """Return the first batch of a split."""
    first: dict[str, Any] = support.batches(task, split, size=size)[0]
    return first


def probabilities(model: Any, batch: dict[str, Any]) -> Tensor:
    """Return log-probabilities, [B, T, E]."""
    result: Tensor = model.get_normalized_probs(model(**batch["net_input"]), True)
    return result
