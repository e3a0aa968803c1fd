"""Absolute positions learned as vectors at the input: counted from the start, or from each sentence's."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ..core import extension, tables
from ..core.base import Facts, StackShape
from ..core.extension import Extended
from ..core.options import Options
from ..ops.precision import promoted
from ..positions import Positions


@dataclass(frozen=True)
class LearnedOptions(Options):
    """Options of the learned absolute tables."""

    extend: str = extension.extend_option()
    extend_to: int | None = extension.extend_to_option()
    init: str = tables.init_option("normal")
    init_std: float | None = tables.init_std_option()


class Learned(Extended):
    """x_i = t_i + w_i with w [n, d] (BERT).

    Row p serves the token with p tokens before it, pads not counted.
    """

    Options = LearnedOptions
    facts = Facts(
        title="Learned absolute",
        paper="Devlin et al. 2019; Huang et al., M4M (arXiv)",
        equation="section 2",
        formula=r"x_i = t_i + w_i",
        count="n d",
    )
    options: LearnedOptions

    layer_tables = ()  # read at the input only

    @classmethod
    def shapes(cls, options: LearnedOptions, stack: StackShape) -> dict[str, tuple[int, ...]]:
        return {"weight": (stack.max_length, stack.dim)}

    def ids(self, positions: Positions) -> Tensor:
        """Return the position of each query, from 0: [Q] or [B, Q]."""
        return positions.query_ids

    def embed(self, x: Tensor, positions: Positions) -> Tensor:
        return x + self.rows(promoted(self.weight), self.ids(positions)).to(x.dtype)

    def reference_embed(self, x: Tensor, positions: Positions) -> Tensor:
        ids = self.ids(positions).expand(x.shape[:2])
        rows = [[self.literal_row(self.weight, int(p)) for p in sample] for sample in ids]
        return x + torch.stack([torch.stack(sample) for sample in rows])


class SentenceRestart(Learned):
    """x_i = t_i + w_{i'} with i' the position in the sentence, from 1; row i' - 1.

    A sentence is what ends with </s> (or <s>): the paper's 'real' absolute position, with which masked-LM
    pretraining did not converge. `positions.restart_ids` come from the model, which knows its symbols.
    """

    needs_boundaries = True
    facts = Facts(
        title="Learned absolute, restarting at each sentence",
        paper="Huang et al., M4M (arXiv)",
        equation="section 5, 'real absolute'",
        formula=r"x_i = t_i + w_{i'},\quad i' = i - \text{column of the last sentence end before } i",
        count="n d",
    )

    def check(self, positions: Positions) -> None:
        if positions.restart_ids is None:
            raise ValueError("sentence-restart needs sentence boundaries, which this model does not give")

    def ids(self, positions: Positions) -> Tensor:
        assert positions.restart_ids is not None
        return positions.restart_ids[:, positions.offset :] - 1
