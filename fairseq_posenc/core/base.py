"""The base class of all position encodings, with its hooks, capabilities and facts.

Legend: B batch, h heads, Q queries, K keys, D head width, d model width, L layers, n maximum length.

The logits of a head are ``scale * q' k'^T + sum of bias + sum of content_bias``. The mask and the softmax follow. The
hook `scores` replaces the first term, the product of q' and k'. Hooks get raw q and k: unscaled, and before
`project_q` and `project_k`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from ..ops.content import Content
from ..positions import Positions
from .options import Options
from .starts import draw

HOOKS = ("embed", "compress", "project_q", "project_k", "bias", "content_bias", "scores", "values")


@dataclass(frozen=True)
class StackShape:
    """Describe the stack of layers that an encoding is built for.

    Args:
        layers: Number of layers, L.
        heads: Number of heads, h.
        dim: Model width, d.
        max_length: Length of the longest training sequence, n, including memory.
        causal: Whether the stack is a decoder.
        length_flag, name_flag, args_flag: Names of the flags that set n, the encoding and its options, for
            error messages.
        has_cls: Whether every sample begins with [CLS].
    """

    layers: int
    heads: int
    dim: int
    max_length: int
    causal: bool = False
    length_flag: str = "max_length"
    name_flag: str = "--pos-enc"
    args_flag: str = "--pos-enc-args"
    has_cls: bool = False

    def __post_init__(self) -> None:
        if self.dim % self.heads:
            raise ValueError(f"the width {self.dim} must be a multiple of the number of heads, which is {self.heads}")

    @property
    def head_dim(self) -> int:
        """Return the head width, D."""
        return self.dim // self.heads


@dataclass(frozen=True)
class Capabilities:
    """Declare what a built encoding can do. Using an encoding for anything else raises an error.

    Args:
        causal: It works in a decoder.
        bidirectional: It works in an encoder.
        memory: It allows keys of earlier segments.
        extrapolates: It is defined for sequences longer than n.
        shift_invariant: Its logits depend on j - i, not on i and j separately.
        directional: It distinguishes left from right.
    """

    causal: bool = False
    bidirectional: bool = False
    memory: bool = False
    extrapolates: bool = False
    shift_invariant: bool = False
    directional: bool = False

    def combined(self, other: Capabilities) -> Capabilities:
        """Return what two combined encodings can do: only what both of them can, but `directional` if either one is."""
        both = {name: getattr(self, name) and getattr(other, name) for name in self.__dataclass_fields__}
        return Capabilities(**{**both, "directional": self.directional or other.directional})


#: The capabilities of encodings that depend on j - i only.
RELATIVE = Capabilities(
    causal=True, bidirectional=True, memory=True, extrapolates=True, shift_invariant=True, directional=True
)
#: The capabilities of encodings that add a vector to the input. Memory is impossible: its tokens would be renumbered.
ABSOLUTE = replace(RELATIVE, memory=False, shift_invariant=False)


@dataclass(frozen=True)
class Facts:
    """The source of a method, for the documentation.

    Args:
        title: Name of the method in the docs.
        paper: Authors and year of its papers.
        equation: Numbers of its equations in these papers.
        formula: Its formula in LaTeX.
        count: Its number of parameters in terms of n, m (layers), h, d and k.
        notes: Remarks for the docs.
    """

    title: str
    paper: str
    equation: str
    formula: str
    count: str = "0"
    notes: str = ""


class Cost(NamedTuple):
    """Leading terms of the cost that an encoding adds to a whole stack, for example `mn^2d/h`.

    The terms are written in n, m (layers), h, d, k (slots) and d_p (rank); `0` means no such cost.
    """

    time: str
    memory: str


@dataclass(frozen=True)
class Layer:
    """Describe a layer to the hooks that it calls.

    Args:
        index: Number of the layer, from 1.
        tensors: The tensors that `per_layer` returned for this layer.
        project_q, project_k: Content projections of the layer, [B, T, d] -> [B, h, T, D] in every model.
        content: The content product, which a `content_bias` can compute together with its own terms (see `Content`).
    """

    index: int
    tensors: Mapping[str, Tensor] = field(default_factory=dict)
    project_q: Callable[[Tensor], Tensor] | None = None
    project_k: Callable[[Tensor], Tensor] | None = None
    content: Content | None = None


class PositionEncoding(nn.Module):
    """Base of all encodings. A subclass implements the hooks that its method needs, and no others.

    A subclass also defines `Options` and `facts` and, if it has parameters, `shapes` and perhaps `reset_parameters`.
    Its `reference` (with `reference_embed`, `reference_compress` and `reference_values`) computes the paper's formula
    literally in plain torch. The tests compare the hooks with this reference, which may be slow.
    """

    #: The table of encodings that have a single one.
    weight: Tensor

    Options: ClassVar[type[Options]] = Options
    facts: ClassVar[Facts]
    #: True if it reads `positions.restart_ids`, for which the model must search the tokens for sentence ends.
    needs_boundaries: ClassVar[bool] = False
    #: True if it reads `positions.segments`, which only models of sentence pairs provide.
    needs_segments: ClassVar[bool] = False
    #: Parameters that weight decay would pull to values at which attention is flat or dead. The fairseq models exempt
    #: them from weight decay on request.
    no_decay: ClassVar[tuple[str, ...]] = ()
    #: Classes, written as in the registry, by the values of the option `form`. It is for methods whose forms share
    #: little code.
    forms: ClassVar[Mapping[str, str]] = {}
    #: True if `content_bias` reads k. Otherwise decoding need not cache raw keys in addition to projected ones.
    reads_keys: ClassVar[bool] = True

    def __init__(self, options: Any, stack: StackShape) -> None:
        super().__init__()
        self.options = options
        self.stack = stack
        for name, shape in self.shapes(options, stack).items():
            self.register_parameter(name, nn.Parameter(torch.empty(shape)))
        if self._parameters:
            self.reset_parameters()

    # -- declarations ----------------------------------------------------------------------------------

    @property
    def capabilities(self) -> Capabilities:
        """Return what this encoding can do with its options on its stack."""
        return RELATIVE

    @property
    def hooks(self) -> tuple[str, ...]:
        """Return the hooks that the encoding implements and uses, in the order of `HOOKS`."""
        base, own = PositionEncoding, type(self)
        written = (name for name in HOOKS if getattr(own, name) is not getattr(base, name))
        return tuple(name for name in written if name not in self.unused_hooks)

    @property
    def unused_hooks(self) -> frozenset[str]:
        """Return the hooks that are implemented but do nothing with these options."""
        return frozenset()

    @property
    def layer_tables(self) -> tuple[str, ...]:
        """Return the names of the tables [L or 1, h or 1, ...] of which each layer gets its part.

        By default these are all parameters of the encoding itself, without those of submodules.
        """
        return tuple(name for name, _ in self.named_parameters(recurse=False))

    @property
    def constant_along_row(self) -> tuple[str, ...]:
        """Return the parameters, or parts of them (`theta[..., 0]`), that add the same number to all logits of a query.

        The softmax cancels them, so that they have no effect and get no gradient.
        """
        return ()

    @property
    def scale(self) -> float | None:
        """Return the factor on q.k, or None for the usual D^-0.5."""
        return None

    @property
    def costs(self) -> tuple[Cost, ...] | None:
        """Return the costs of the encoding, or None for the general costs of its hooks (see the command `params`).

        If there are several costs, the largest one is reported.
        """
        return None

    @property
    def limit(self) -> int | None:
        """Return the maximum sequence length for which the encoding is defined, or None if there is no limit."""
        return None if self.capabilities.extrapolates else self.stack.max_length

    @property
    def cure_for_length(self) -> str:
        """Return the advice of the error about a sequence longer than `limit`."""
        return f"raise {self.stack.length_flag}"

    @classmethod
    def shapes(cls, options: Any, stack: StackShape) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the parameters by their names; see `tables.shape` for tables."""
        return {}

    @classmethod
    def count(cls, options: Any, stack: StackShape) -> int:
        """Return the number of parameters."""
        return sum(math.prod(shape) for shape in cls.shapes(options, stack).values())

    def check(self, positions: Positions) -> None:
        """Raise ValueError if the encoding cannot encode these positions.

        `Composition.check` has already compared length, direction, memory, [CLS] and segments with the stack.
        """

    @property
    def default_std(self) -> float:
        """Return the standard deviation of init=normal if the user does not set one."""
        return 0.02

    def reset_parameters(self) -> None:
        """Draw all parameters according to the options `init` and `init_std`."""
        for weight in self.parameters():
            draw(weight, self.options.init, self.options.init_std, unset=self.default_std)

    # -- hooks -----------------------------------------------------------------------------------------

    def per_layer(self, positions: Positions) -> list[dict[str, Tensor]]:
        """Return the tensors that each of the L layers needs; this is called once per forward.

        The layers get them as arguments, outside of their activation checkpoints. A Parameter therefore accumulates
        its gradient once per backward, even if many layers use it.
        """
        by_layer: list[dict[str, Tensor]] = [{} for _ in range(self.stack.layers)]
        for name in self.layer_tables:
            give(by_layer, name, getattr(self, name))
        return by_layer

    def embed(self, x: Tensor, positions: Positions) -> Tensor:
        """Return the input vectors with positions, [B, Q, d] -> [B, Q, d]; this is called once per forward."""
        raise TypeError(f"{type(self).__name__} does not implement the hook embed()")

    def compress(self, k_in: Tensor, v_in: Tensor, positions: Positions, layer: Layer) -> tuple[Tensor, Tensor]:
        """Compress the inputs of the key and value projections to fewer columns, [B, K, d] -> [B, K', d] each."""
        raise TypeError(f"{type(self).__name__} does not implement the hook compress()")

    def project_q(self, q: Tensor, positions: Positions, layer: Layer) -> Tensor:
        """Return the queries with positions, [B, h, Q, D] -> the same shape."""
        raise TypeError(f"{type(self).__name__} does not implement the hook project_q()")

    def project_k(self, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        """Return the new keys (the last T columns) with positions, [B, h, T, D] -> the same shape, for the cache."""
        raise TypeError(f"{type(self).__name__} does not implement the hook project_k()")

    def bias(self, positions: Positions, layer: Layer) -> Tensor:
        """Return the term of the logits that does not depend on the content, [1 or B, 1 or h, Q, K]."""
        raise TypeError(f"{type(self).__name__} does not implement the hook bias()")

    def content_bias(self, q: Tensor, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        """Return the term of the logits that depends on the content, [B, h, Q, K].

        If the hook called `layer.content.take()`, the term includes the content product.
        """
        raise TypeError(f"{type(self).__name__} does not implement the hook content_bias()")

    def scores(self, q: Tensor, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        """Return the replacement of scale * q k^T, [B, h, Q, K]."""
        raise TypeError(f"{type(self).__name__} does not implement the hook scores()")

    def values(self, weights: Tensor, positions: Positions, layer: Layer) -> Tensor:
        """Return the term that is added to weights @ v, [B, h, Q, D]; the weights are those after dropout."""
        raise TypeError(f"{type(self).__name__} does not implement the hook values()")

    # -- literal references ----------------------------------------------------------------------------

    def reference_compress(
        self, k_in: Tensor, v_in: Tensor, positions: Positions, layer: Layer
    ) -> tuple[Tensor, Tensor]:
        """Return what `compress` returns, computed literally by the paper's formula."""
        return k_in, v_in

    def reference_embed(self, x: Tensor, positions: Positions) -> Tensor:
        """Return what `embed` returns, computed literally by the paper's formula."""
        return x

    def reference(self, q: Tensor, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        """Return the unmasked logits of raw q and k, [B, h, Q, K], computed literally by the paper's formula."""
        return q @ k.transpose(-1, -2) * self.stack.head_dim**-0.5

    def reference_values(self, weights: Tensor, positions: Positions, layer: Layer) -> Tensor | None:
        """Return what `values` returns, computed literally by the paper's formula; None without this hook."""
        return None


def give(by_layer: list[dict[str, Tensor]], name: str, table: Tensor) -> None:
    """Split a table [L or 1, ...] by layer, and store each part under `name` in the dict of its layer.

    A single `unbind` for all layers makes the table accumulate its gradient only once.
    """
    parts = table.unbind(0)
    for tensors, part in zip(by_layer, parts if len(parts) == len(by_layer) else parts * len(by_layer), strict=True):
        tensors[name] = part
