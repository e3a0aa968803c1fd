"""Where the queries and keys of one forward pass stand.

Legend: B batch, Q queries, K keys, i0 = K - Q the column of the first query. The queries are always the
last Q of the K columns: keys before them come from a cache or from segment memory.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Positions:
    """Columns, distances and allowed keys, made anew for every forward and shared by its layers.

    Holds no tensor that requires grad. What is derived is computed at the first use and kept, so positions
    made in inference mode are of no use to training.

    Args:
        query_length: Q.
        key_length: K >= Q; with a cache or memory larger than Q.
        device: where the derived tensors live.
        causal: a query sees no key to its right.
        padding: [B, K] bool, true at pads; None where the batch has none.
        memory: how many of the first columns hold memory of earlier segments.
        span: with `causal`, a query sees at most its last `span` keys, itself included
            (Transformer-XL's `same_length`).
        restart_ids: [B, K] int, sentence positions from 1 (see `restart_ids`).
        segments: [B, K] int, segment of every column.
        cls_column: [B] int, the column of [CLS] where the architecture declares one.
    """

    query_length: int
    key_length: int
    device: torch.device
    causal: bool = False
    padding: Tensor | None = None
    memory: int = 0
    span: int | None = None
    restart_ids: Tensor | None = None
    segments: Tensor | None = None
    cls_column: Tensor | None = None
    _shared: dict[Hashable, Tensor] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        if not 0 < self.query_length <= self.key_length:
            raise ValueError(f"need 0 < queries <= keys, got {self.query_length} and {self.key_length}")
        if not 0 <= self.memory <= self.offset:
            raise ValueError(f"memory={self.memory} must lie in the {self.offset} columns before the queries")
        if self.span is not None and (self.span < 1 or not self.causal):
            raise ValueError(f"span={self.span} counts the last keys that a causal query sees: at least itself")
        if self.padding is not None and self.padding.dtype != torch.bool:
            raise ValueError(f"padding is a bool mask, true at pads; got {self.padding.dtype}")
        for name, rows in self._rows.items():
            if rows.shape[-1] != self.key_length:
                raise ValueError(f"{name} covers {rows.shape[-1]} of {self.key_length} columns")
        if len({len(rows) for rows in self._rows.values()}) > 1:
            sizes = " and ".join(f"{name} of {len(rows)} samples" for name, rows in self._rows.items())
            raise ValueError(f"positions of one batch have {sizes}: give all of them for the same samples")
        if self.cls_column is not None:
            self._check_cls(self.cls_column)

    def _check_cls(self, column: Tensor) -> None:
        """Where a look is free: on an accelerator, the range is checked with the first look (`common_cls_column`)."""
        if column.dim() != 1 or column.is_floating_point() or column.dtype == torch.bool:
            raise ValueError(f"cls_column is one integer a sample, [B]; got {column.dtype} {list(column.shape)}")
        for name, rows in self._rows.items():
            if len(column) not in (1, len(rows)):
                raise ValueError(f"cls_column has {len(column)} samples, {name} {len(rows)}")
        if column.device.type == "cpu":
            self._check_cls_range(set(column.tolist()))

    def _check_cls_range(self, columns: set[int]) -> None:
        wrong = sorted(column for column in columns if not 0 <= column < self.key_length)
        if wrong:
            raise ValueError(f"cls_column says {wrong[0]}: the columns are 0 to {self.key_length - 1}")

    def shared(self, key: Hashable, make: Callable[[], Tensor]) -> Tensor:
        """What an encoding makes of these positions alone: for the first layer that asks, kept for the others."""
        if torch.compiler.is_compiling():  # a graph finds what is the same by itself
            return make()
        if key not in self._shared:
            self._shared[key] = make()
        return self._shared[key]

    def prepared(self) -> Positions:
        """The same with all derived: under torch.compile, whose graphs cannot ask for what the data say."""
        for name, kind in vars(Positions).items():
            if isinstance(kind, cached_property):
                getattr(self, name)
        return self

    @property
    def _rows(self) -> dict[str, Tensor]:
        """What has a row [K] for every sample."""
        named = {"padding": self.padding, "restart_ids": self.restart_ids, "segments": self.segments}
        return {name: rows for name, rows in named.items() if rows is not None}

    @cached_property
    def batch(self) -> int | None:
        """Return the number of samples, B; None where all samples have the same positions, so that any number fits."""
        for rows in self._rows.values():
            return len(rows)
        return None if self.cls_column is None or len(self.cls_column) == 1 else len(self.cls_column)

    @property
    def offset(self) -> int:
        """i0, the column of the first query: from the key count, never from the query length."""
        return self.key_length - self.query_length

    @cached_property
    def query_columns(self) -> Tensor:
        """[Q] int64: i0 .. K-1."""
        return torch.arange(self.offset, self.key_length, device=self.device)

    @cached_property
    def distances(self) -> Tensor:
        """[Q+K-1] int64: every j - i that occurs, -(K-1) .. Q-1.

        Row r, column j of the [Q, K] logits reads entry j - r + Q - 1: see `toeplitz.shift`.
        """
        return torch.arange(1 - self.key_length, self.query_length, device=self.device)

    @cached_property
    def delta(self) -> Tensor:
        """[Q, K] int64, j - i. For references and plots: fast paths read `distances`."""
        keys = torch.arange(self.key_length, device=self.device)
        return keys[None, :] - self.query_columns[:, None]

    @cached_property
    def left_padded(self) -> bool:
        """Some pad stands left of a token (a Python bool: it selects code paths)."""
        return self.padding is not None and bool((self.padding[:, :-1] & ~self.padding[:, 1:]).any())

    @cached_property
    def key_ids(self) -> Tensor:
        """Absolute positions of all columns from 0: [K], or [B, K] where a pad stands left of a token.

        Pads do not count. A pad's own id is that of the token before it (0 at the start): it is masked.
        """
        if not self.left_padded:
            return torch.arange(self.key_length, device=self.device)
        assert self.padding is not None
        return (~self.padding).cumsum(-1).sub(1).clamp(min=0)

    @cached_property
    def common_cls_column(self) -> int | None:
        """The column of [CLS] where all samples have it in the same (no Tensor: it selects code paths)."""
        columns = set() if self.cls_column is None else set(self.cls_column.tolist())
        self._check_cls_range(columns)
        return columns.pop() if len(columns) == 1 else None

    @property
    def query_ids(self) -> Tensor:
        """`key_ids` of the queries: [Q] or [B, Q]."""
        return self.key_ids[..., self.offset :]

    @cached_property
    def allowed(self) -> Tensor | None:
        """[1 or B, Q, K] bool, true where a query may look; None where all is allowed."""
        mask: Tensor | None = None
        if self.causal and (self.query_length > 1 or self.span is not None):
            seen = self.delta <= 0
            if self.span is not None:
                seen &= self.delta > -self.span
            mask = seen[None]
        if self.padding is not None:
            real = ~self.padding[:, None, :]
            mask = real.expand(-1, self.query_length, -1) if mask is None else mask & real
        return mask

    @cached_property
    def forbidden(self) -> Tensor | None:
        """[1 or B, 1, Q, K] bool, what the softmax must not see; None where nothing.

        Rows without any allowed key are left out: a softmax of nothing is NaN, also in its gradient. Their
        weights are set to zero afterwards.
        """
        if self.allowed is None:
            return None
        forbidden = ~self.allowed[:, None]
        return forbidden if self.empty_rows is None else forbidden & ~self.empty_rows

    @cached_property
    def empty_rows(self) -> Tensor | None:
        """[B, 1, Q, 1] bool, true where a query has no allowed key; None where every row has one."""
        if self.padding is None:
            return None
        if self.causal:
            assert self.allowed is not None
            empty = ~self.allowed.any(-1)
        else:  # a sample of pads only; not from [B, Q, K], which nothing else asks for where keys are compressed
            empty = self.padding.all(-1, keepdim=True).expand(-1, self.query_length)
        return empty[:, None, :, None] if bool(empty.any()) else None

    @classmethod
    def of_tokens(
        cls,
        tokens: Tensor,
        *,
        pad: int,
        boundaries: tuple[int, ...] = (),
        causal: bool = False,
        cached: int = 0,
        memory: int = 0,
        memory_padding: Tensor | None = None,
        span: int | None = None,
        segments: Tensor | None = None,
        has_cls: bool = False,
    ) -> Positions:
        """Make the positions of `tokens` [B, T], all columns that have been seen, of which `cached` are keys only.

        For a stack use `Stack.positions`, which sets `causal` and `has_cls` to what the stack was built with.

        Args:
            boundaries: the ids that end a sentence (<s>, </s>); given them, sentence positions are known.
            memory, memory_padding: columns of earlier segments before the tokens, and their pads [B, memory].
            segments: [B, memory + T].
            has_cls: the first token of each sample is [CLS].
            pad, causal, span: see the class.
        """
        if tokens.dim() != 2:
            raise ValueError(f"tokens are [B, T], one row of ids per sample; got the shape {list(tokens.shape)}")
        if not 0 <= cached < tokens.shape[1]:
            raise ValueError(
                f"cached={cached}: from 0 to {tokens.shape[1] - 1} of the {tokens.shape[1]} tokens are cached"
            )
        if memory < 0 or (memory_padding is not None and memory_padding.shape[-1] != memory):
            pads = "no pads" if memory_padding is None else f"pads of {memory_padding.shape[-1]} columns"
            raise ValueError(
                f"memory={memory} and {pads} (memory_padding): give the columns of earlier segments for both"
            )
        padding: Tensor | None = tokens.eq(pad)
        if memory:
            earlier = tokens.new_zeros(len(tokens), memory, dtype=torch.bool)
            padding = torch.cat([earlier if memory_padding is None else memory_padding, tokens.eq(pad)], 1)
        if not bool(padding.any()):  # type: ignore[union-attr]
            padding = None
        return cls(
            query_length=tokens.shape[1] - cached,
            key_length=tokens.shape[1] + memory,
            device=tokens.device,
            causal=causal,
            padding=padding,
            memory=memory,
            span=span,
            restart_ids=restart_ids(tokens, pad, boundaries) if boundaries and not memory else None,
            segments=segments,
            cls_column=tokens.ne(pad).long().argmax(1) + memory if has_cls else None,
        )


def restart_ids(tokens: Tensor, pad: int, boundaries: tuple[int, ...]) -> Tensor:
    """Sentence positions from 1 (METHODS.md 2.4; M4M paper, 'real' absolute).

    A token's id is its distance to the last boundary strictly before it; before any boundary, one more
    than the tokens before it. Pads get 1, which is masked.

    Args:
        tokens: [B, T] int64. pad: the pad's id. boundaries: ids of <s> and </s>.
    Returns:
        [B, T] int64.
    """
    columns = torch.arange(tokens.shape[1], device=tokens.device)
    is_pad = tokens == pad
    is_boundary = torch.zeros_like(is_pad)
    for symbol in set(boundaries) - {pad}:
        is_boundary |= tokens == symbol
    last = torch.where(is_boundary, columns, -1).cummax(-1).values
    before = torch.nn.functional.pad(last[:, :-1], (1, 0), value=-1)
    pads_before = is_pad.cumsum(-1)
    ids = columns - torch.where(before >= 0, before, pads_before - 1)
    return ids.masked_fill(is_pad, 1)
