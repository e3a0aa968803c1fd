"""Refuse positions that say something else than the stack that gets them.

A disagreement changes what a model computes without any error of torch's: a decoder whose positions are not causal
sees the future, segments that no encoding reads are ignored.
"""

from __future__ import annotations

from torch import Tensor

from ..positions import Positions
from .base import StackShape

CURE = "make the positions with stack.positions(tokens, pad=...), which takes over what the stack was built with"


def check_direction(positions: Positions, stack: StackShape) -> None:
    """Raise unless the positions hide the tokens to the right exactly where the stack is a decoder."""
    if stack.causal and not positions.causal:
        raise ValueError(
            "the stack is a decoder (StackShape.causal is True), but its positions let every token see the tokens "
            f"after it (Positions.causal is False): {CURE}"
        )
    if positions.causal and not stack.causal:
        raise ValueError(
            "the stack is no decoder (StackShape.causal is False), but its positions hide from every token the tokens "
            f"after it (Positions.causal is True): {CURE}"
        )


def check_cls(positions: Positions, stack: StackShape) -> None:
    """Raise unless the positions say where [CLS] stands exactly where the samples of the stack have one."""
    if stack.has_cls and positions.cls_column is None:
        raise ValueError(
            "the samples of the stack begin with [CLS] (StackShape.has_cls is True), but the positions do not say in "
            f"which column it stands (Positions.cls_column is None): {CURE}"
        )
    if positions.cls_column is not None and not stack.has_cls:
        raise ValueError(
            "the positions say in which column [CLS] stands (Positions.cls_column), but the samples of the stack have "
            "none (StackShape.has_cls is False): leave cls_column out, or build the stack with has_cls=True"
        )


def check_segments(segments: Tensor | None, *, reads: bool, encoding: str, flag: str) -> None:
    """Raise where segments would be ignored. An encoding that misses them refuses that itself.

    Args:
        segments: those of the positions. reads: whether the encoding reads them.
        encoding, flag: the encoding's name and the flag that sets it, for the message.
    """
    if segments is not None and not reads:
        raise ValueError(
            f"the positions say which segment every token belongs to (Positions.segments), but {flag} {encoding} does "
            f"not read segments and would ignore them: leave segments out, or add segments-input or segments to {flag}"
        )
