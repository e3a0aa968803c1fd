"""Read tables of n absolute positions, and encode positions beyond n."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from .base import ABSOLUTE, Capabilities, PositionEncoding, StackShape
from .options import option
from .refusal import InputError


def extend_option() -> Any:
    """Return the option `extend`, which says what happens beyond n positions."""
    return option(
        "error",
        "What to do if a sequence is longer than the n rows of the table: raise an error (error), start again at the "
        "first row (repeat), or stretch the table to `extend_to` positions (interpolate).",
        choices=("error", "repeat", "interpolate"),
        example="repeat",
    )


def extend_to_option() -> Any:
    """Return the option `extend_to`, the number of positions to which a table is stretched."""
    text = "Number of positions to which extend=interpolate stretches the table."
    return option(None, text, between=(2, 10_000_000), example=32)


class Extended(PositionEncoding):
    """Provide the base class of encodings with tables [..., n, width] and the options `extend` and `extend_to`.

    `extend=interpolate` stretches the table to N = `extend_to` positions: position p reads the table at row
    p (n-1)/(N-1), between two rows if necessary. N is the same for all batches, so a token's vector does not depend on
    the lengths of other samples.
    """

    def __init__(self, options: Any, stack: StackShape) -> None:
        super().__init__(options, stack)
        if (options.extend == "interpolate") != (options.extend_to is not None):
            raise InputError("extend=interpolate and extend_to=N belong together: give both or neither")
        least = max(stack.max_length, 2)
        if options.extend_to is not None and options.extend_to < least:
            raise InputError(f"extend_to={options.extend_to} must be at least {least}, the length of the table")

    @property
    def capabilities(self) -> Capabilities:
        return replace(ABSOLUTE, extrapolates=self.options.extend != "error")

    @property
    def limit(self) -> int | None:
        limits = {"error": self.stack.max_length, "repeat": None, "interpolate": self.options.extend_to}
        return limits[self.options.extend]

    @property
    def cure_for_length(self) -> str:
        if self.options.extend == "interpolate":
            return f"raise extend_to in {self.stack.args_flag}"
        return f"{super().cure_for_length} or set {self.stack.args_flag} extend=repeat (or interpolate)"

    def rows(self, table: Tensor, ids: Tensor) -> Tensor:
        """Return the rows of a table at the positions `ids`.

        Args:
            table: [n, width], or [..., n, width] if `ids` has one axis only.
            ids: Positions from 0, which may exceed n - 1 unless `extend=error`.

        Returns:
            The rows: [*ids.shape, width] for a table [n, width], otherwise [..., len(ids), width].
        """
        if self.options.extend == "interpolate":
            return self._stretched(table, ids)
        return _taken(table, ids % self.stack.max_length if self.options.extend == "repeat" else ids)

    def _stretched(self, table: Tensor, ids: Tensor) -> Tensor:
        last = self.stack.max_length - 1
        # Compute in float64 on the CPU, so that the two weights do not depend on the dtype of the model.
        place = ids.to("cpu", torch.float64) * (last / (self.options.extend_to - 1))
        left = place.floor().long().clamp(max=last)
        right = (left + 1).clamp(max=last)
        share = (place - left)[..., None].to(table.device, table.dtype)
        before, after = (_taken(table, side.to(ids.device)) for side in (left, right))
        return torch.lerp(before, after, share)

    def literal_row(self, table: Tensor, p: int) -> Tensor:
        """Return the vector of position p, [..., width], computed literally by the definition."""
        n = self.stack.max_length
        if self.options.extend != "interpolate":
            return table[..., p % n, :]
        place = p * (n - 1) / (self.options.extend_to - 1)
        left = min(int(place), n - 1)
        right = min(left + 1, n - 1)
        return table[..., left, :] * (1 - place + left) + table[..., right, :] * (place - left)


def _taken(table: Tensor, ids: Tensor) -> Tensor:
    return nn.functional.embedding(ids, table) if table.dim() == 2 else table.index_select(-2, ids)
