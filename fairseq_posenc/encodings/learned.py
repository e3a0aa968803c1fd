"""Absolute positions learned as vectors at the input: counted from the start, or from each sentence's."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from ..positions import Positions
from . import tables
from .base import ABSOLUTE, Capabilities, Facts, PositionEncoding, StackShape
from .options import Options, option


@dataclass(frozen=True)
class LearnedOptions(Options):
    """Options of the learned absolute tables."""

    extend: str = option(
        "error",
        "beyond n: refuse, start again from the first row, or stretch the table to `extend_to` positions",
        choices=("error", "repeat", "interpolate"),
        example="repeat",
    )
    extend_to: int | None = option(
        None, "with extend=interpolate: the length that the table is stretched to", example=32
    )
    init: str = tables.init_option("normal")
    init_std: float | None = tables.init_std_option()


class Learned(PositionEncoding):
    """x_i = t_i + w_i with w [n, d] (BERT; METHODS.md 2.2).

    Row p serves the token with p tokens before it, pads not counted. `extend=interpolate` reads position p
    of N = `extend_to` at p (n-1)/(N-1), whatever the length of the batch, so that a token's vector does
    not depend on its neighbours.
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

    def __init__(self, options: LearnedOptions, stack: StackShape) -> None:
        super().__init__(options, stack)
        _check_extension(options, stack)
        self.weight = nn.Parameter(torch.empty(stack.max_length, stack.dim))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """N(0, 0.02) unless told otherwise."""
        tables.draw(self.weight[None, None], self.options.init, self.options.init_std)

    @property
    def capabilities(self) -> Capabilities:
        return replace(ABSOLUTE, extrapolates=self.options.extend != "error")

    @property
    def layer_tables(self) -> tuple[str, ...]:
        return ()  # read at the input only

    @property
    def limit(self) -> int | None:
        limits = {"error": self.stack.max_length, "repeat": None, "interpolate": self.options.extend_to}
        return limits[self.options.extend]

    @property
    def cure_for_length(self) -> str:
        if self.options.extend == "interpolate":
            return f"raise extend_to in {self.stack.args_flag}"
        return f"{super().cure_for_length} or set {self.stack.args_flag} extend=repeat (or interpolate)"

    @classmethod
    def count(cls, options: LearnedOptions, stack: StackShape) -> int:
        return stack.max_length * stack.dim

    def ids(self, positions: Positions) -> Tensor:
        """[Q] or [B, Q]: the position of each query, from 0."""
        return positions.query_ids

    def embed(self, x: Tensor, positions: Positions) -> Tensor:
        ids = self.ids(positions)
        if self.options.extend == "interpolate":
            return x + self._stretched(ids).to(x.dtype)
        if self.options.extend == "repeat":
            ids = ids % self.stack.max_length
        return x + nn.functional.embedding(ids, self.weight).to(x.dtype)

    def _stretched(self, ids: Tensor) -> Tensor:
        assert self.options.extend_to is not None
        last = self.stack.max_length - 1
        # float64 on the host, so that the two weights are the same in every dtype of the model
        place = ids.to("cpu", torch.float64) * (last / (self.options.extend_to - 1))
        left = place.floor().long().clamp(max=last)
        right = (left + 1).clamp(max=last)
        share = (place - left)[..., None].to(self.weight.device, self.weight.dtype)
        before, after = (nn.functional.embedding(side.to(ids.device), self.weight) for side in (left, right))
        return torch.lerp(before, after, share)

    def reference_embed(self, x: Tensor, positions: Positions) -> Tensor:
        ids = self.ids(positions).expand(x.shape[:2])
        rows = [[self._row(int(p)) for p in sample] for sample in ids]
        return x + torch.stack([torch.stack(sample) for sample in rows])

    def _row(self, p: int) -> Tensor:
        n = self.stack.max_length
        if self.options.extend != "interpolate":
            return self.weight[p % n]
        place = p * (n - 1) / ((self.options.extend_to or n) - 1)
        left = min(int(place), n - 1)
        return self.weight[left] * (1 - place + left) + self.weight[min(left + 1, n - 1)] * (place - left)


class SentenceRestart(Learned):
    """x_i = t_i + w_{i'} with i' the position in the sentence, from 1; row i' - 1 (METHODS.md 2.4).

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


def _check_extension(options: LearnedOptions, stack: StackShape) -> None:
    if (options.extend == "interpolate") != (options.extend_to is not None):
        raise ValueError("extend=interpolate and extend_to=N belong together: give both or neither")
    if options.extend_to is not None and options.extend_to < max(stack.max_length, 2):
        raise ValueError(f"extend_to={options.extend_to} is less than the table's {stack.max_length} positions")
