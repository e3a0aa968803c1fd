"""Describe the positions of the queries and keys of one forward pass.

Legend: B batch, Q queries, K keys, i0 = K - Q the column of the first query. A column is the index of a key, from 0.
The queries are always at the last Q of the K columns. The earlier keys come from a cache or from segment memory.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field, fields
from numbers import Integral
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

from .ops.compiled import exporting

__all__ = ["Positions", "restart_ids"]

_T = TypeVar("_T")


class _derived(Generic[_T]):
    """Compute an attribute at its first use and keep it, as `functools.cached_property` does.

    Until Python 3.11, `cached_property` takes a lock, which torch.compile cannot trace.
    """

    def __init__(self, make: Callable[[Any], _T]) -> None:
        self.make = make
        self.__doc__ = make.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, positions: Any, owner: type) -> _T:
        if positions is None:  # documentation tools read the attribute of the class
            return self  # type: ignore[return-value]
        value = self.make(positions)
        if not torch.compiler.is_compiling():  # otherwise it would become an output of the graph
            object.__setattr__(positions, self.name, value)  # from now on, the attribute hides this object
        return value


#: Derived attributes that depend on the mask.
_OF_THE_MASK = ("allowed", "visible", "forbidden", "empty_rows", "for_graphs")


@dataclass(frozen=True, eq=False)
class Positions:
    """Hold the columns, distances and allowed keys of one forward pass, which all layers share.

    No tensor in this object requires a gradient. Derived tensors are computed at their first use and kept. An object
    that was used in inference mode must therefore not be used in training.

    Args:
        query_length: Number of queries, Q.
        key_length: Number of keys, K >= Q. With a cache or memory, K is larger than Q.
        device: Device of the derived tensors.
        causal: Whether keys to the right of a query are hidden from it.
        padding: [B, K] bool, true at padding; None if the batch has no padding. In a sample that is padding only, the
            queries attend to nothing, so the outputs are finite but have no meaning.
        memory: Number of columns at the beginning that hold memory of earlier segments.
        span: Maximum number of keys to which a causal query attends, including its own (Transformer-XL's
            `same_length`).
        radius: Largest number of columns between a query of an encoder and a key to which it attends; None means that
            all keys are near enough. In a decoder, `span` says the same.
        restart_ids: [B, K] int, positions within sentences, from 1 (see the function `restart_ids`).
        segments: [B, K] int, number of the segment to which each column belongs.
        documents: [B, K] int, number of the document to which each column belongs. A query may attend only to keys of
            its own document. Absolute positions begin anew in each document unless `ids` gives the positions. The
            numbers never decrease from left to right. None means that each sample is a single document.
        cls_column: [B] int, column of [CLS], if the samples begin with [CLS].
        ids: [K] or [B, K] int, positions that the caller gives for all columns, from 0; None means that the positions
            are the columns. The order of the tokens, and so `causal` and `span`, still follows the columns.
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
    documents: Tensor | None = None
    cls_column: Tensor | None = None
    ids: Tensor | None = None
    radius: int | None = None
    _copies: dict[Hashable, Positions] = field(default_factory=dict, init=False, repr=False)
    _shared: dict[Hashable, Tensor] = field(default_factory=dict, init=False, repr=False)
    _fits: Any = field(default=None, init=False, repr=False)
    #: The layers that computed attention at these positions on the path `compiled`.
    compiled: set[Any] = field(default_factory=set, init=False, repr=False)

    def __post_init__(self) -> None:
        if not 0 < self.query_length <= self.key_length:
            numbers = f"query_length is {self.query_length} and key_length is {self.key_length}"
            raise ValueError(f"query_length must be from 1 to key_length, but {numbers}")
        if not 0 <= self.memory <= self.offset:
            raise ValueError(
                f"memory={self.memory} must be from 0 to {self.offset}, the number of keys before the queries"
            )
        if self.span is not None and self.span < 1:
            raise ValueError(f"span={self.span} must be at least 1")
        if self.span is not None and not self.causal:
            raise ValueError(f"span={self.span} needs causal=True. Set causal=True, or leave span out.")
        if self.radius is not None and (self.causal or self.radius < 0):
            raise ValueError(f"radius={self.radius} must be at least 0 and needs causal=False. In a decoder, use span.")
        if self.padding is not None and self.padding.dtype != torch.bool:
            raise ValueError(f"padding must be a boolean tensor that is true at padding, not {self.padding.dtype}")
        if self.ids is not None:
            _check_ids(self.ids, self.key_length)
        for name, rows in self._rows.items():
            if rows.dim() != 2:
                raise ValueError(f"{name} must be [B, K], one row per sample, but the shape is {list(rows.shape)}")
            if rows.shape[-1] != self.key_length:
                raise ValueError(
                    f"{name} covers {rows.shape[-1]} of {self.key_length} columns: give a value for every column"
                )
        samples = [rows.shape[0] for rows in self._rows.values()]  # `len` would be a constant in an exported graph
        if any(count != samples[0] for count in samples):
            sizes = " and ".join(f"{name} has {len(rows)} samples" for name, rows in self._rows.items())
            raise ValueError(f"all tensors of one batch must have the same number of samples, but {sizes}")
        if self.cls_column is not None:
            self._check_cls(self.cls_column)
        if self.segments is not None and (self.segments.is_floating_point() or self.segments.dtype == torch.bool):
            raise ValueError(f"segments must hold whole numbers, but the dtype is {self.segments.dtype}")
        if self.documents is not None:
            self._check_documents(self.documents)
        if self.ids is not None:
            _ = self._ends  # read the data now, because a compiled model cannot

    def _check_cls(self, column: Tensor) -> None:
        """Raise ValueError if the columns of [CLS] do not fit the samples or, on a CPU, are out of range.

        On an accelerator, where reading numbers takes time, `common_cls_column` checks the range later. In a compiled
        graph, the range is not checked, because the graph cannot read the numbers.
        """
        if column.dim() != 1 or column.is_floating_point() or column.dtype == torch.bool:
            raise ValueError(
                f"cls_column must hold one integer per sample, [B], but it is {column.dtype} {list(column.shape)}"
            )
        for name, rows in self._rows.items():
            if column.shape[0] != 1 and column.shape[0] != rows.shape[0]:
                raise ValueError(f"cls_column has {len(column)} samples, but {name} has {len(rows)}")
        if column.device.type == "cpu" and not torch.compiler.is_compiling():
            self._check_cls_range(set(column.tolist()))

    def _check_cls_range(self, columns: set[int]) -> None:
        wrong = sorted(column for column in columns if not 0 <= column < self.key_length)
        if wrong:
            raise ValueError(f"cls_column contains {wrong[0]}, but the columns are 0 to {self.key_length - 1}")

    def _check_documents(self, documents: Tensor) -> None:
        """Raise ValueError if the numbers of documents are not whole numbers or, on a CPU, decrease at a token."""
        if documents.is_floating_point() or documents.dtype == torch.bool:
            raise ValueError(f"documents must hold whole numbers, but the dtype is {documents.dtype}")
        if documents.device.type == "cpu":
            decreases = documents[:, 1:] < documents[:, :-1]
            if self.padding is not None:
                decreases = decreases & ~self.padding[:, 1:]
            if bool(decreases.any()):
                sample, column = decreases.nonzero()[0].tolist()
                pair = documents[sample, column : column + 2].tolist()
                raise ValueError(
                    f"documents decrease from {pair[0]} to {pair[1]} at column {column + 1} of sample {sample}: number "
                    "the documents of a sample from left to right"
                )

    def within(self, window: int | None) -> Positions:
        """Return these positions with attention limited to a window of tokens; see the option `window`."""
        if window is None:
            return self
        if torch.compiler.is_compiling():
            return self._limited(window)
        if (window if self.causal else window // 2 + 1) >= min(self.key_length, self.span or self.key_length):
            return self  # a mask would only slow down the kernels for causal attention
        if window not in self._copies:
            self._copies[window] = self._limited(window)
        return self._copies[window]

    def part(self, first: int, begin: int, end: int) -> Positions:
        """Return the positions of the queries from column `first` on and of the keys in columns `begin` to `end` - 1.

        The columns of the part count from 0. If the positions are the columns, the positions of the part do so, too.
        """
        if (first, begin, end) not in self._copies:
            rows: dict[str, Any] = {name: tensor[..., begin:end] for name, tensor in self._rows.items()}
            if self.ids is not None:
                rows["ids"] = self.ids[..., begin:end]
            limits: dict[str, Any] = {"causal": self.causal, "span": self.span, "radius": self.radius}
            part = type(self)(end - first, end - begin, self.device, **limits, **rows)
            self._copies[first, begin, end] = part
        return self._copies[first, begin, end]

    def _limited(self, window: int) -> Positions:
        """Return a copy with a smaller span or radius. Whatever does not depend on the mask is shared."""
        limit: dict[str, Any] = {"span": min(window, self.span or window)} if self.causal else {"radius": window // 2}
        limit |= {"_copies": {}, "compiled": set()}
        if self.ids is not None:
            limit |= {"_distinct": self._distinct, "_ends": self._ends}  # a compiled model cannot read the data again
        copy: Positions = object.__new__(type(self))
        shared = (
            vars(self) if not torch.compiler.is_compiling() else {f.name: getattr(self, f.name) for f in fields(self)}
        )
        for name, value in ({n: v for n, v in shared.items() if n not in _OF_THE_MASK} | limit).items():
            object.__setattr__(copy, name, value)
        return copy

    def fit(self, encoding: object) -> None:
        """Note that these positions fit an encoding, so that not every layer checks them again."""
        if not torch.compiler.is_compiling():
            object.__setattr__(self, "_fits", encoding)

    def fits(self, encoding: object) -> bool:
        """Return whether `fit` was called with the same encoding last."""
        return not torch.compiler.is_compiling() and self._fits is encoding

    def shared(self, key: Hashable, make: Callable[[], Tensor]) -> Tensor:
        """Return a tensor that depends on these positions only, and compute it only once for all layers."""
        if torch.compiler.is_compiling():  # the compiler merges equal computations of the layers by itself
            return make()
        if key not in self._shared:
            self._shared[key] = make()
        return self._shared[key]

    @_derived
    def for_graphs(self) -> Positions:
        """Return these positions for a compiled graph, in which every derived tensor is either made or given.

        The graph thus does not depend on which derived tensors were used before. Numbers that a graph cannot read from
        the data are given. Rows without an allowed key are left out, because the caller of the graph clears them.
        """
        cls = self.common_cls_column if self.cls_column is not None else None
        given = {name: getattr(self, name) for name in ("allowed", "forbidden", "left_padded", "_distinct", "_ends")}
        given |= {
            "_fits": None,
            "compiled": set(),
            "_copies": {},
            "empty_rows": None,
            "common_cls_column": 0 if cls == 0 else None,
        }
        bare: Positions = object.__new__(type(self))
        for name, value in ({f.name: getattr(self, f.name) for f in fields(self)} | given).items():
            object.__setattr__(bare, name, value)
        return bare

    def tensors(self) -> Iterator[Tensor]:
        """Yield all tensors that this object holds now, given or derived."""
        return (value for value in vars(self).values() if isinstance(value, Tensor))

    @property
    def _rows(self) -> dict[str, Tensor]:
        """Return by name those tensors that are not None and have a row [K] for every sample."""
        named = {"padding": self.padding, "restart_ids": self.restart_ids, "segments": self.segments}
        named["documents"] = self.documents
        if self.ids is not None and self.ids.dim() == 2:
            named["ids"] = self.ids
        return {name: rows for name, rows in named.items() if rows is not None}

    @_derived
    def batch(self) -> int | None:
        """Return the number of samples, B, or None if the positions fit any number of samples."""
        for rows in self._rows.values():
            return rows.shape[0]
        return None if self.cls_column is None or self.cls_column.shape[0] == 1 else self.cls_column.shape[0]

    @property
    def offset(self) -> int:
        """Return i0 = K - Q, the column of the first query."""
        return self.key_length - self.query_length

    @_derived
    def query_columns(self) -> Tensor:
        """Return the columns of the queries, from i0 to K-1: [Q] int64."""
        return torch.arange(self.offset, self.key_length, device=self.device)

    @_derived
    def distances(self) -> Tensor:
        """Return every distance j - i that can occur, from -(K-1) to Q-1: [Q+K-1] int64.

        Entry j - r + Q - 1 is the distance from the query in row r to the key in column j; see `shifting.shift`. With
        `ids`, these are the different distances between the positions, in increasing order; see `pairs`.
        """
        if self._distinct is not None:
            return self._distinct[0]
        return torch.arange(1 - self.key_length, self.query_length, device=self.device)

    @_derived
    def delta(self) -> Tensor:
        """Return j - i for all pairs of query and key, [Q, K] int64. Fast code reads `distances` instead.

        With `ids`, these are the distances between the positions, [Q, K] or [B, Q, K].
        """
        return self._column_delta if self.ids is None else self.key_ids[..., None, :] - self.query_ids[..., None]

    @_derived
    def _column_delta(self) -> Tensor:
        """Return how many columns each key is to the right of each query, [Q, K] int64, whatever the positions are."""
        keys = torch.arange(self.key_length, device=self.device)
        return keys[None, :] - self.query_columns[:, None]

    # -- numbers that follow from positions that the caller gives (`ids`)

    @_derived
    def _distinct(self) -> tuple[Tensor, Tensor] | None:
        """Return the different distances, and the index of each pair's distance among them, or None without `ids`."""
        if self.ids is None:
            return None
        distances, pairs = torch.unique(self.delta, return_inverse=True)
        return distances, pairs.reshape(-1, self.query_length, self.key_length)

    @property
    def pairs(self) -> Tensor | None:
        """Return the index in `distances` of the distance of each pair, [1 or B, Q, K] int64.

        Without `ids` the result is None, because the index then depends on the columns alone; see `distances`.
        """
        return None if self.ids is None or self._distinct is None else self._distinct[1]

    @property
    def in_columns(self) -> bool:
        """Return whether the position of each token is its column, in all samples."""
        return self.ids is None and self.documents is None and not self.left_padded

    @property
    def sample_ids(self) -> Tensor:
        """Return `key_ids` with an axis of samples, [1 or B, K]."""
        return self.key_ids.reshape(-1, self.key_length)

    @_derived
    def _ends(self) -> tuple[int, int, int]:
        """Return the largest position and the smallest and largest distance, as Python numbers."""
        if self.ids is None:
            return self.key_length - 1, 1 - self.key_length, self.query_length - 1
        ids = self.key_ids
        least, *ends = torch.stack([ids.min(), ids.max(), self.distances[0], self.distances[-1]]).tolist()
        _check_least(least)
        return ends[0], ends[1], ends[2]

    @property
    def extent(self) -> int:
        """Return how many rows a table of absolute positions needs: the largest position plus 1, or K without `ids`."""
        return self.key_length if self.ids is None else self._ends[0] + 1

    @property
    def ends(self) -> tuple[int, int]:
        """Return the smallest and the largest distance j - i as Python numbers."""
        if self.ids is None:
            return 1 - self.key_length, self.query_length - 1
        return self._ends[1:]

    @property
    def reach(self) -> int:
        """Return the largest distance in either direction, plus 1; without `ids`, this is K."""
        return 1 + max(-self.ends[0], self.ends[1])

    @_derived
    def left_padded(self) -> bool:
        """Return whether a sample may have padding to the left of a token, as a Python bool to branch on.

        A compiled graph cannot read the data, so in such a graph the result is true if the batch has any padding.
        """
        if self.padding is None or torch.compiler.is_compiling():
            return self.padding is not None
        return bool((self.padding[:, :-1] & ~self.padding[:, 1:]).any())

    @_derived
    def key_ids(self) -> Tensor:
        """Return the absolute positions of all columns from 0: [K], or [B, K] if they differ from the columns.

        Positions begin anew in each document, and padding left of a token is not counted. The positions of padding
        have no effect, because attention to padding is masked. If the caller gave `ids`, the result is `ids`.
        """
        if self.ids is not None:
            return self.ids.long()
        if self.documents is not None:
            return _within_documents(self.documents, self.padding)
        if not self.left_padded:
            return torch.arange(self.key_length, device=self.device)
        assert self.padding is not None
        return (~self.padding).cumsum(-1).sub(1).clamp(min=0)

    @_derived
    def common_cls_column(self) -> int | None:
        """Return the column of [CLS] as a Python int if it is the same in all samples, otherwise None.

        The result is also None in a compiled graph, which cannot read the data.
        """
        if torch.compiler.is_compiling():
            return None
        columns = set() if self.cls_column is None else set(self.cls_column.tolist())
        self._check_cls_range(columns)
        return columns.pop() if len(columns) == 1 else None

    @property
    def query_ids(self) -> Tensor:
        """Return the absolute positions of the queries, [Q] or [B, Q]; see `key_ids`."""
        return self.key_ids[..., self.offset :]

    @_derived
    def allowed(self) -> Tensor | None:
        """Return to which keys each query may attend, [1 or B, Q, K] bool, or None if all keys are allowed."""
        mask: Tensor | None = None
        if self.causal and (self.query_length > 1 or self.span is not None):
            seen = self._column_delta <= 0
            if self.span is not None:
                seen &= self._column_delta > -self.span
            mask = seen[None]
        if self.radius is not None:
            mask = (self._column_delta.abs() <= self.radius)[None]
        if self.padding is not None:
            real = ~self.padding[:, None, :]
            mask = real.expand(-1, self.query_length, -1) if mask is None else mask & real
        if self.documents is not None:
            same = self.documents[:, self.offset :, None] == self.documents[:, None, :]
            mask = same if mask is None else mask & same
        return mask

    @_derived
    def visible(self) -> Tensor:
        """Return to how many keys each query may attend, [1 or B, Q] int64."""
        if self.causal and self.padding is None and self.documents is None:
            return (self.query_columns + 1).clamp(max=self.span or self.key_length)[None]
        if self.allowed is None:
            return torch.full((1, self.query_length), self.key_length, device=self.device)
        return self.allowed.sum(-1)

    @_derived
    def forbidden(self) -> Tensor | None:
        """Return the query-key pairs to mask before the softmax, [1 or B, 1, Q, K] bool, or None if there are none.

        Queries without any allowed key are not masked, because the softmax of an empty set and its gradient are NaN.
        The attention weights of such queries are set to zero after the softmax.
        """
        if self.allowed is None:
            return None
        forbidden = ~self.allowed[:, None]
        return forbidden if self.empty_rows is None else forbidden & ~self.empty_rows

    @_derived
    def empty_rows(self) -> Tensor | None:
        """Return which queries have no allowed key, [B, 1, Q, 1] bool, or None if every query has an allowed key.

        A compiled graph cannot read the data, so it always gets a tensor, which may be false everywhere.
        """
        if self.padding is None:
            return None
        if self.causal or self.documents is not None or self.radius is not None:
            assert self.allowed is not None
            empty = ~self.allowed.any(-1)
        else:  # only samples of padding; this needs no tensor [B, Q, K]
            empty = self.padding.all(-1, keepdim=True).expand(-1, self.query_length)
        return empty[:, None, :, None] if torch.compiler.is_compiling() or bool(empty.any()) else None

    @classmethod
    def of_tokens(
        cls,
        tokens: Tensor,
        *,
        pad: int | None,
        boundaries: tuple[int, ...] = (),
        causal: bool = False,
        cached: int = 0,
        memory: int = 0,
        memory_padding: Tensor | None = None,
        span: int | None = None,
        segments: Tensor | None = None,
        documents: Tensor | None = None,
        has_cls: bool = False,
        ids: Tensor | None = None,
    ) -> Positions:
        """Make the positions of `tokens` [B, T], which include the tokens that are already in a cache.

        For a stack use `Stack.positions`, which takes `causal` and `has_cls` from the stack.

        Args:
            tokens: Token ids of all columns up to now, except the columns of memory, [B, T].
            pad: Id of the padding; None if the tokens contain no padding.
            boundaries: Ids of the symbols after which positions restart (<s>, </s>). Positions within sentences are
                computed if `boundaries` is not empty and there is no memory.
            causal, span: See the class `Positions`.
            cached: Number of tokens at the beginning that are in a cache, so that they are keys but not queries.
            memory: Number of columns before the tokens that hold earlier segments.
            memory_padding: True at padding in these columns, [B, memory] bool; None means that there is no padding.
            segments: Number of the segment to which each column belongs, [B, memory + T].
            documents: Number of the document to which each column belongs, [B, memory + T].
            has_cls: Whether each sample begins with [CLS].
            ids: Positions that the caller gives, [memory + T] or [B, memory + T]; see the class `Positions`.

        Raises:
            TypeError: `tokens` is not a tensor, or `pad` is not a whole number.
            ValueError: The tokens are not ids [B, T], or `cached` or `memory` does not fit them.
        """
        if not isinstance(tokens, Tensor):
            raise TypeError(f"tokens must be a tensor of ids, not a {type(tokens).__name__}")
        if not _is_id_or_none(pad):
            name = type(pad).__name__
            raise TypeError(f"pad must be the id of the padding (a whole number) or None, but its type is {name}")
        if tokens.dim() != 2:
            raise ValueError(f"tokens must be [B, T], one row of ids per sample, but the shape is {list(tokens.shape)}")
        if tokens.is_floating_point() or tokens.is_complex():
            raise ValueError(f"tokens must be whole numbers, such as int64, but their type is {tokens.dtype}")
        if tokens.dtype == torch.bool:
            problem = "tokens must be ids, but they are True and False, as in a mask"
            raise ValueError(f"{problem}: give the ids, and the id of the padding as `pad`")
        if tokens.shape[1] < 1:
            raise ValueError("the text is empty: tokens must have at least one column")
        if not 0 <= cached < tokens.shape[1]:
            raise ValueError(
                f"cached={cached} does not fit tokens with {tokens.shape[1]} columns, because at least one token must "
                "be new: give all tokens so far, not only the new ones"
            )
        if memory < 0:
            raise ValueError(f"memory={memory} must be at least 0")
        if memory_padding is not None and memory_padding.shape[-1] != memory:
            raise ValueError(
                f"memory={memory} must equal the number of columns of memory_padding, whose shape is "
                f"{list(memory_padding.shape)}"
            )
        is_pad = _is_pad(tokens, pad)
        columns = is_pad
        if memory:
            earlier = tokens.new_zeros(tokens.shape[0], memory, dtype=torch.bool)
            columns = torch.cat([earlier if memory_padding is None else memory_padding, is_pad], 1)
        possible = pad is not None or memory_padding is not None
        has_padding = possible and (
            torch.compiler.is_compiling() or bool(columns.any())
        )  # a compiled graph cannot read data
        padding = columns if has_padding else None
        return cls(
            query_length=tokens.shape[1] - cached,
            key_length=tokens.shape[1] + memory,
            device=tokens.device,
            causal=causal,
            padding=padding,
            memory=memory,
            span=span,
            restart_ids=restart_ids(tokens, pad, boundaries, documents) if boundaries and not memory else None,
            segments=segments,
            documents=documents,
            cls_column=(~is_pad).long().argmax(1) + memory if has_cls else None,
            ids=ids,
        )


def _check_ids(ids: Tensor, columns: int) -> None:
    """Raise ValueError unless the positions that the caller gives are whole numbers from 0, one for every column."""
    if ids.is_floating_point() or ids.dtype == torch.bool or ids.dim() not in (1, 2) or ids.shape[-1] != columns:
        raise ValueError(
            f"ids must hold a whole number for each of the {columns} columns, [{columns}] or [B, {columns}], but it is "
            f"{ids.dtype} {list(ids.shape)}"
        )
    if ids.device.type == "cpu":  # on an accelerator, `_ends` checks this later
        _check_least(int(ids.min()))


def _is_id_or_none(value: object) -> bool:
    if value is None or type(value) is int:  # torch.compile traces this comparison, but not that with Integral
        return True
    return isinstance(value, Integral) and not isinstance(value, bool)


def _check_least(least: int) -> None:
    if least < 0:
        raise ValueError(f"ids contains {least}, but positions start at 0: add {-least} to all ids")


def _is_pad(tokens: Tensor, pad: int | None) -> Tensor:
    """Return which tokens are padding, in the shape of `tokens`."""
    return torch.zeros_like(tokens, dtype=torch.bool) if pad is None else tokens == pad


def restart_ids(
    tokens: Tensor, pad: int | None, boundaries: tuple[int, ...], documents: Tensor | None = None
) -> Tensor:
    """Return the position of each token within its sentence, from 1 (the 'real' absolute position of the M4M paper).

    The position of a token is its distance to the last boundary before the token. Without such a boundary, the position
    is one more than the number of tokens before the token. Padding gets position 1, which has no effect because
    attention to padding is masked.

    Args:
        tokens: Token ids, [B, T] int64.
        pad: Id of the padding; None if the tokens contain no padding.
        boundaries: Ids of <s> and </s>.
        documents: Number of the document of each token, [B, T]. The last token of a document is a boundary too.

    Returns:
        Positions, [B, T] int64.
    """
    columns = torch.arange(tokens.shape[1], device=tokens.device)
    is_pad = _is_pad(tokens, pad)
    is_boundary = torch.zeros_like(is_pad)
    for symbol in set(boundaries) - {pad}:
        is_boundary |= tokens == symbol
    if documents is not None:
        is_boundary[:, :-1] |= documents[:, 1:] != documents[:, :-1]
    last = _largest_so_far(torch.where(is_boundary, columns, -1))
    # Pad first: `last[:, :-1]` would be contiguous at two tokens only, and an exported graph would refuse this length.
    before = torch.nn.functional.pad(last, (1, 0), value=-1)[:, :-1]
    pads_before = is_pad.cumsum(-1)
    ids = columns - torch.where(before >= 0, before, pads_before - 1)
    return ids.masked_fill(is_pad, 1)


def _largest_so_far(x: Tensor) -> Tensor:
    """Return the running maximum along the columns, for numbers of at least -1: [B, T] -> [B, T]."""
    if not exporting():
        return x.cummax(-1).values
    later = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device).triu(1)  # ONNX has no cummax
    return x[:, None].masked_fill(later, -1).amax(-1)


def _within_documents(documents: Tensor, padding: Tensor | None) -> Tensor:
    """Return the position of each column within its document, from 0, without counting padding: [B, K] int64."""
    real = torch.ones_like(documents, dtype=torch.bool) if padding is None else ~padding
    before = real.cumsum(-1) - real.long()  # number of tokens before each column
    begins = torch.nn.functional.pad(documents[:, 1:] != documents[:, :-1], (1, 0), value=True)
    start = _largest_so_far(torch.where(begins, before, 0))
    return (before - start - (~real).long()).clamp(min=0)
