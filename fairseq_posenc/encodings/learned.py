"""Add learned vectors of absolute positions at the input, counted from the start of the sample or of the sentence."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ..core import extension, tables
from ..core.base import Capabilities, Facts, StackShape
from ..core.extension import Extended
from ..core.options import Options
from ..core.refusal import InputError
from ..ops.precision import promoted
from ..positions import Positions


@dataclass(frozen=True)
class LearnedOptions(Options):
    """Define the options of the learned tables of absolute positions."""

    extend: str = extension.extend_option()
    extend_to: int | None = extension.extend_to_option()
    init: str = tables.init_option("normal")
    init_std: float | None = tables.init_std_option()


class Learned(Extended):
    """Add a learned vector of the absolute position to each token: x_i = t_i + w_i with w [n, d] (BERT).

    Row p belongs to the token with p tokens before it; padding is not counted.
    """

    Options = LearnedOptions
    facts = Facts(
        title="Learned absolute",
        family="input vectors",
        paper="Devlin et al. 2019; Huang et al., M4M (arXiv)",
        equation="section 3.2, equation (6), without the segment vector s_i",
        formula=r"x_i = t_i + w_i",
        count="n d",
    )
    options: LearnedOptions

    layer_tables = ()  # the table is read at the input only

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
    """Add a learned vector of the position i' in the sentence: x_i = t_i + w_{i'}, where w_{i'} is row i' - 1 of w.

    i' counts from 1, and restarts after each </s> or <s>. The M4M paper calls i' the 'real' absolute position; in that
    paper, masked-LM pretraining with this encoding did not converge. fairseq models know the ids of </s> and <s>; a
    program that uses `Stack` must give these ids as `boundaries`.
    """

    needs_boundaries = True
    only_columns = "it counts positions within sentences by itself"
    facts = Facts(
        title="Learned absolute, restarting at each sentence",
        family="input vectors",
        paper="Huang et al., M4M (arXiv)",
        equation="section 5.2 ('real absolute')",
        formula=r"x_i = t_i + w_{i'},\quad i' = i - \text{column of the last sentence end before } i",
        count="n d",
    )

    @property
    def capabilities(self) -> Capabilities:
        return replace(super().capabilities, any_positions=False)

    def check(self, positions: Positions) -> None:
        if positions.restart_ids is None:
            raise InputError(
                "sentence-restart needs sentence boundaries (Positions.restart_ids), which this model does not "
                f"provide: choose another {self.stack.name_flag}, for example learned"
            )

    def ids(self, positions: Positions) -> Tensor:
        assert positions.restart_ids is not None
        return positions.restart_ids[:, positions.offset :] - 1
