"""Define a toy task: predict the word to the left of each word. A model needs positions to distinguish left from right.

The sequences are random words at full length, without boundary tokens or padding, so no edge and no mask reveals the
direction. Legend: B batch, n columns, V words, d width.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fairseq_posenc.encodings import StackShape
from fairseq_posenc.positions import Positions
from fairseq_posenc.stack import Stack

from .cases import Case

WORDS, LENGTH = 32, 16  # V, n
LAYERS, HEADS, DIM, FFN = 2, 4, 64, 128
BATCH, STEPS, RATE, WARM_UP = 32, 600, 4e-3, 30
STD = DIM**-0.5  # of the words' vectors, as in fairseq
#: The final loss is the mean of the last WINDOW losses. Training ends early if it is below LEARNED.
WINDOW, LEARNED = 10, 0.05


class Toy(nn.Module):
    """Predict the left neighbour of every column by a stack of two layers.

    Args:
        case: The encoding.
        cls: Whether a [CLS] is put before the words; it is not a word and not a neighbour.
    """

    def __init__(self, case: Case, *, cls: bool = False) -> None:
        super().__init__()
        shape = StackShape(LAYERS, HEADS, DIM, LENGTH + cls, causal=case.causal, has_cls=cls)
        self.cls = cls
        self.words = nn.Embedding(WORDS + 1, DIM)
        self.stack = Stack("none", None, shape, ffn=FFN)
        self.stack.pos = case.encoding(shape)
        for index, block in enumerate(self.stack.layers, start=1):
            block.self_attn.use(self.stack.pos, index)
        self.out = nn.Linear(DIM, WORDS)
        nn.init.normal_(self.words.weight, std=STD)

    def positions(self, batch: int) -> Positions:
        """Return positions of a single sentence, whose halves are the two segments."""
        length = LENGTH + self.cls
        columns, pos = torch.arange(length).expand(batch, -1), self.stack.pos
        return Positions(
            length,
            length,
            columns.device,
            causal=self.stack.shape.causal,
            restart_ids=columns + 1 if pos.needs_boundaries else None,
            segments=(columns >= length // 2).long() if pos.needs_segments else None,
            cls_column=torch.zeros(batch, dtype=torch.long) if self.cls else None,
        )

    def loss(self, words: Tensor) -> Tensor:
        """Return the mean loss over all words with a left neighbour, in nats, for words [B, n]."""
        given = F.pad(words, (1, 0), value=WORDS) if self.cls else words
        output, _ = self.stack(self.words(given), self.positions(len(words)))
        logits = self.out(output[:, 1 + self.cls :])
        return F.cross_entropy(logits.flatten(0, 1), words[:, :-1].flatten())


def train(case: Case, *, cls: bool = False, steps: int = STEPS, seed: int = 0) -> float:
    """Return the final loss after `steps` updates, or after fewer if the task is learned."""
    losses: list[float] = []
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        toy = Toy(case, cls=cls)
        optimizer = torch.optim.Adam(toy.parameters(), lr=RATE, fused=True)
        warm_up = torch.optim.lr_scheduler.LinearLR(optimizer, 1 / WARM_UP, total_iters=WARM_UP)
        for _ in range(steps):
            loss = toy.loss(torch.randint(WORDS, (BATCH, LENGTH)))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            warm_up.step()
            losses.append(loss.item())
            if _mean(losses) < LEARNED:
                break
    return _mean(losses)


def _mean(losses: list[float]) -> float:
    last = losses[-WINDOW:]
    return sum(last) / len(last)


def reads_cls(case: Case) -> bool:
    """Return whether a [CLS] changes the encoding: it is refused without, or has other parameters or capabilities."""
    without, beside = _built(case, cls=False), _built(case, cls=True)
    return beside is not None and beside != without


def _built(case: Case, *, cls: bool) -> tuple[Any, ...] | None:
    """Return capabilities and parameters in the toy task, or None if the encoding is refused."""
    try:
        pos = case.encoding(StackShape(LAYERS, HEADS, DIM, LENGTH, causal=case.causal, has_cls=cls))
    except ValueError:
        return None
    return pos.capabilities, [(name, parameter.shape) for name, parameter in pos.named_parameters()]


def settings(name: str, args: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options with which the toy task can be learned, for example a slot for every position."""
    needed: dict[str, dict[str, Any]] = {
        "diet-abs-lin": {"slots": LENGTH},
        "pope": {"phases": "uniform"},  # with the phases 0, both directions are the same at the start
    }
    return {**args, **needed.get(name, {})}
