"""Check that the positions of a forward pass fit the stack of layers that gets them.

Without these checks, a mistake would change the results silently. For example, a decoder whose positions are not causal
would see future tokens, and segments that no encoding reads would be ignored.
"""

from __future__ import annotations

from torch import Tensor

from ..positions import Positions
from .base import StackShape

CURE = "make the positions with stack.positions(tokens, pad=...), which uses the settings of the stack"


def check_direction(positions: Positions, stack: StackShape) -> None:
    """Raise ValueError unless the positions are causal in a decoder and not causal in an encoder."""
    if stack.causal and not positions.causal:
        raise ValueError(
            "the stack is a decoder (StackShape.causal is True), but its positions let every token see the tokens "
            f"after it (Positions.causal is False): {CURE}"
        )
    if positions.causal and not stack.causal:
        raise ValueError(
            "the stack is not a decoder (StackShape.causal is False), but its positions hide the tokens after each "
            f"token (Positions.causal is True): {CURE}"
        )


def check_cls(positions: Positions, stack: StackShape) -> None:
    """Raise ValueError unless the positions and the stack agree on whether the samples begin with [CLS]."""
    if stack.has_cls and positions.cls_column is None:
        raise ValueError(
            "the samples of the stack begin with [CLS] (StackShape.has_cls is True), but the positions do not contain "
            f"its column (Positions.cls_column is None): {CURE}"
        )
    if positions.cls_column is not None and not stack.has_cls:
        raise ValueError(
            "the positions contain the column of [CLS] (Positions.cls_column), but the samples of the stack have no "
            "[CLS] (StackShape.has_cls is False): leave cls_column out, or build the stack with has_cls=True"
        )


def check_drawn(positions: Positions, stack: StackShape) -> None:
    """Raise ValueError if the stack draws the positions of its tokens, but the given positions are column numbers."""
    if stack.drawn is not None and positions.ids is None:
        raise ValueError(
            "the stack draws the positions of its tokens at random (StackShape.drawn), but the given positions are "
            f"the column numbers 0, 1, 2 and so on (Positions.ids is None): {CURE}"
        )


def check_segments(segments: Tensor | None, *, reads: bool, encoding: str, flag: str) -> None:
    """Raise ValueError if the positions contain segments but the encoding does not read segments.

    The opposite case is checked elsewhere: an encoding that reads segments raises an error if there are none.

    Args:
        segments: The segments of the positions, or None.
        reads: Whether the encoding reads segments.
        encoding: Name of the encoding, for the error.
        flag: Command-line flag that chooses the encoding, for the error.
    """
    if segments is not None and not reads:
        raise ValueError(
            f"the positions contain segments (Positions.segments), but {flag} {encoding} would ignore them: leave "
            f"segments out, or add segments-input or segments to {flag}"
        )
