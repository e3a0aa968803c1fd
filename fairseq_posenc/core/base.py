"""What a position encoding is: hooks, capabilities, facts.

Legend: B batch, h heads, Q queries, K keys, D head width, d model width, L layers, n maximum length.
The logits of a head are ``scale * q' k'^T + sum of bias + sum of content_bias``, then the mask, then the
softmax; `scores` replaces the first term. q and k given to hooks are raw: unscaled, not yet projected.
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
    """The stack of layers that an encoding serves.

    Args:
        layers: L. heads: h. dim: d. max_length: n, the longest sequence of training (memory included).
        causal: the stack is a decoder.
        length_flag, name_flag, args_flag: the flags that set n, the encoding and its options, for messages.
        has_cls: the architecture puts a [CLS] first.
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
            raise ValueError(f"width {self.dim} is not a multiple of {self.heads} heads")

    @property
    def head_dim(self) -> int:
        """Return D."""
        return self.dim // self.heads


@dataclass(frozen=True)
class Capabilities:
    """What a built encoding can do. Whatever is not declared raises when asked for.

    causal, bidirectional: works in a decoder, in an encoder. memory: keys of earlier segments are allowed.
    extrapolates: sequences beyond n are defined. shift_invariant: logits depend on j - i only.
    directional: tells left from right.
    """

    causal: bool = False
    bidirectional: bool = False
    memory: bool = False
    extrapolates: bool = False
    shift_invariant: bool = False
    directional: bool = False

    def combined(self, other: Capabilities) -> Capabilities:
        """Return what a composition of both can do: the intersection, but the union of `directional`."""
        both = {name: getattr(self, name) and getattr(other, name) for name in self.__dataclass_fields__}
        return Capabilities(**{**both, "directional": self.directional or other.directional})


#: what a function of j - i can do (METHODS.md 1.3, profile REL)
RELATIVE = Capabilities(
    causal=True, bidirectional=True, memory=True, extrapolates=True, shift_invariant=True, directional=True
)
#: what a vector at the input can do (profile ABS-IN): memory tokens would be re-numbered
ABSOLUTE = replace(RELATIVE, memory=False, shift_invariant=False)


@dataclass(frozen=True)
class Facts:
    """Where a method comes from. `formula` is LaTeX; `count` the parameter count in n, m, h, d, k."""

    title: str
    paper: str
    equation: str
    formula: str
    count: str = "0"
    notes: str = ""


class Cost(NamedTuple):
    """Leading terms beyond the logits' own in a whole stack, as `mn^2d/h`.

    In n, m (layers), h, d, k (slots) and d_p (rank); `0` where nothing is left.
    """

    time: str
    memory: str


@dataclass(frozen=True)
class Layer:
    """What a hook gets to know of its layer.

    Args:
        index: from 1.
        tensors: what `per_layer` handed out for this layer.
        project_q, project_k: the layer's content projections, [B, T, d] -> [B, h, T, D] in every model.
        content: the product of the content, for a `content_bias` that makes both at once (see `Content`).
    """

    index: int
    tensors: Mapping[str, Tensor] = field(default_factory=dict)
    project_q: Callable[[Tensor], Tensor] | None = None
    project_k: Callable[[Tensor], Tensor] | None = None
    content: Content | None = None


class PositionEncoding(nn.Module):
    """Base of all encodings: implement the hooks that the method needs, and no others.

    A subclass has `Options`, `facts`, its hooks, `shapes` and `reset_parameters` if it has parameters, and `reference`
    (and `reference_embed`, `reference_values`): the literal formula in plain torch, however slow, which the tests
    compare with.
    """

    #: what encodings with one table call it
    weight: Tensor

    Options: ClassVar[type[Options]] = Options
    facts: ClassVar[Facts]
    #: reads `positions.restart_ids`, which cost the model a look at its symbols
    needs_boundaries: ClassVar[bool] = False
    #: reads `positions.segments`, which only models of sentence pairs give
    needs_segments: ClassVar[bool] = False
    #: parameters that weight decay would pull to where attention is flat or dead; adapters spare them on demand
    no_decay: ClassVar[tuple[str, ...]] = ()
    #: where a method has forms that share little but its name: the class that serves each value of the option `form`,
    #: as the registry writes it
    forms: ClassVar[Mapping[str, str]] = {}
    #: `content_bias` reads k; if not, decoding need not keep raw keys beside projected ones
    reads_keys: ClassVar[bool] = True

    def __init__(self, options: Any, stack: StackShape) -> None:
        super().__init__()
        self.options = options
        self.stack = stack
        for name, shape in self.shapes(options, stack).items():
            self.register_parameter(name, nn.Parameter(torch.empty(shape)))
        if self._parameters:
            self.reset_parameters()

    # -- what it declares ------------------------------------------------------------------------------

    @property
    def capabilities(self) -> Capabilities:
        """Return what this encoding, with these options on this stack, can do."""
        return RELATIVE

    @property
    def hooks(self) -> tuple[str, ...]:
        """Return the hooks that it implements and uses, in the order of `HOOKS`."""
        base, own = PositionEncoding, type(self)
        written = (name for name in HOOKS if getattr(own, name) is not getattr(base, name))
        return tuple(name for name in written if name not in self.unused_hooks)

    @property
    def unused_hooks(self) -> frozenset[str]:
        """Return the hooks that are written but do nothing with these options."""
        return frozenset()

    @property
    def layer_tables(self) -> tuple[str, ...]:
        """Return the names of its tables [L or 1, h or 1, ...], whose parts the layers get: all its own parameters."""
        return tuple(name for name, _ in self.named_parameters(recurse=False))

    @property
    def constant_along_row(self) -> tuple[str, ...]:
        """Return the parameters, or parts of them (`theta[..., 0]`), that move all logits of a query alike.

        The softmax does not see them: they have no effect and get no gradient.
        """
        return ()

    @property
    def scale(self) -> float | None:
        """Return the factor on q.k where it is not D^-0.5, otherwise None."""
        return None

    @property
    def costs(self) -> tuple[Cost, ...] | None:
        """Return what it costs, where that is not what its hooks cost in general (`params`); the largest counts."""
        return None

    @property
    def limit(self) -> int | None:
        """Return the length of the longest sequence that is defined; None where there is no limit."""
        return None if self.capabilities.extrapolates else self.stack.max_length

    @property
    def cure_for_length(self) -> str:
        """Return what to do about a sequence beyond `limit`."""
        return f"raise {self.stack.length_flag}"

    @classmethod
    def shapes(cls, options: Any, stack: StackShape) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the parameters by their names; `tables.shape` has that of a table."""
        return {}

    @classmethod
    def count(cls, options: Any, stack: StackShape) -> int:
        """Return the number of parameters."""
        return sum(math.prod(shape) for shape in cls.shapes(options, stack).values())

    def check(self, positions: Positions) -> None:
        """Raise where these positions cannot be encoded.

        `Composition.check` compares length, direction, memory, [CLS] and segments with the stack before.
        """

    @property
    def default_std(self) -> float:
        """Return the standard deviation of init=normal where the user gives none."""
        return 0.02

    def reset_parameters(self) -> None:
        """Draw all parameters as `init` and `init_std` say."""
        for weight in self.parameters():
            draw(weight, self.options.init, self.options.init_std, unset=self.default_std)

    # -- hooks -----------------------------------------------------------------------------------------

    def per_layer(self, positions: Positions) -> list[dict[str, Tensor]]:
        """Return what each of the L layers needs of the parameters, taken once a forward.

        The layers get these as tensor arguments, outside their activation checkpoints, so that a
        Parameter accumulates its gradient once a backward however many layers use it.
        """
        by_layer: list[dict[str, Tensor]] = [{} for _ in range(self.stack.layers)]
        for name in self.layer_tables:
            give(by_layer, name, getattr(self, name))
        return by_layer

    def embed(self, x: Tensor, positions: Positions) -> Tensor:
        """Return the input vectors with positions, [B, Q, d] -> [B, Q, d]; called once."""
        raise TypeError(f"{type(self).__name__} has no hook embed")

    def compress(self, k_in: Tensor, v_in: Tensor, positions: Positions, layer: Layer) -> tuple[Tensor, Tensor]:
        """Return fewer columns, [B, K, d] -> [B, K', d] each, before the key and value projections."""
        raise TypeError(f"{type(self).__name__} has no hook compress")

    def project_q(self, q: Tensor, positions: Positions, layer: Layer) -> Tensor:
        """Return the queries with positions, [B, h, Q, D] -> the same shape."""
        raise TypeError(f"{type(self).__name__} has no hook project_q")

    def project_k(self, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        """Return the new keys (the last T columns) with positions, [B, h, T, D] -> the same; the cache holds them."""
        raise TypeError(f"{type(self).__name__} has no hook project_k")

    def bias(self, positions: Positions, layer: Layer) -> Tensor:
        """Return what is added to the logits and does not depend on the content, [1 or B, 1 or h, Q, K]."""
        raise TypeError(f"{type(self).__name__} has no hook bias")

    def content_bias(self, q: Tensor, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        """Return what is added to the logits, [B, h, Q, K], with `layer.content` in it where that was taken."""
        raise TypeError(f"{type(self).__name__} has no hook content_bias")

    def scores(self, q: Tensor, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        """Return what replaces scale * q k^T, [B, h, Q, K]."""
        raise TypeError(f"{type(self).__name__} has no hook scores")

    def values(self, weights: Tensor, positions: Positions, layer: Layer) -> Tensor:
        """Return what is added to weights @ v, [B, h, Q, D]; the weights are those after dropout."""
        raise TypeError(f"{type(self).__name__} has no hook values")

    # -- literal references ----------------------------------------------------------------------------

    def reference_compress(
        self, k_in: Tensor, v_in: Tensor, positions: Positions, layer: Layer
    ) -> tuple[Tensor, Tensor]:
        """Compress by the literal formula."""
        return k_in, v_in

    def reference_embed(self, x: Tensor, positions: Positions) -> Tensor:
        """Embed by the literal formula."""
        return x

    def reference(self, q: Tensor, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        """Return the unmasked logits [B, h, Q, K] of raw q and k, literally by the paper's formula."""
        return q @ k.transpose(-1, -2) * self.stack.head_dim**-0.5

    def reference_values(self, weights: Tensor, positions: Positions, layer: Layer) -> Tensor | None:
        """Return what is added to weights @ v, by the literal formula."""
        return None


def give(by_layer: list[dict[str, Tensor]], name: str, table: Tensor) -> None:
    """Give each layer its part [...] of a table [L or 1, ...]; one `unbind`, so one gradient accumulation."""
    parts = table.unbind(0)
    for tensors, part in zip(by_layer, parts if len(parts) == len(by_layer) else parts * len(by_layer), strict=True):
        tensors[name] = part
