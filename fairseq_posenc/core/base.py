"""Define the base class of all position encodings, its hooks, and the classes that describe an encoding.

Legend: B batch, h heads, Q queries, K keys, D head width, d model width, L layers in which the encoding is active,
n maximum length.

A hook is a method that an encoding may implement, and that the stack or the attention calls. The logits of a head are
``scale * q' k'^T + sum of bias + sum of content_bias``, where q' and k' come from `project_q` and `project_k`. The hook
`scores` replaces the term scale * q' k'^T. Then the mask and the softmax are applied to the logits. The hooks
`content_bias` and `scores` get raw q and k, which are not scaled and were not changed by `project_q` and `project_k`.
The hook `project_input` computes numbers from the layer's input, once for each column; the other hooks read these
numbers from `layer.tensors`. The hook `adapt` gets the sum of all biases and the logits to which they are added, and
returns a further term. The hook `row_factor` multiplies the sum of all these terms.
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
from . import schedule
from .families import Family
from .options import Options
from .refusal import InputError
from .starts import draw

HOOKS = (
    *("embed", "compress", "project_q", "project_k", "project_input"),
    *("bias", "content_bias", "scores", "adapt", "row_factor", "values"),
)


@dataclass(frozen=True)
class StackShape:
    """Describe the stack of layers that an encoding is built for.

    Args:
        layers: Number of layers.
        heads: Number of heads, h.
        dim: Model width, d.
        max_length: Length of the longest training sequence, n, including memory. With `drawn`, the number of positions
            N from which the positions of the tokens are drawn.
        causal: Whether the stack is a decoder.
        length_flag, name_flag, args_flag: Names of the settings for n, the encoding and its options; error messages
            quote them. By default, these are arguments of `Stack`, with the flags of fairseq's commands in brackets.
        has_cls: Whether every sample begins with [CLS].
        drawn: Length of the longest sequence if the positions of its tokens are drawn at random from 0 to
            max_length - 1 (Ruoss et al. 2023); None means that the positions are 0, 1, 2 and so on.
        drawn_flag: Command-line flag that sets `drawn`; error messages quote it.
    """

    layers: int
    heads: int
    dim: int
    max_length: int
    causal: bool = False
    length_flag: str = "max_length"
    name_flag: str = "pos_enc (--pos-enc)"
    args_flag: str = "pos_enc_args (--pos-enc-args)"
    has_cls: bool = False
    drawn: int | None = None
    drawn_flag: str = "drawn"

    def __post_init__(self) -> None:
        sizes = {"the number of layers": self.layers, "the number of heads": self.heads, "the width": self.dim}
        for name, size in {**sizes, self.length_flag: self.max_length}.items():
            if size < 1:
                raise InputError(f"{name} is {size}, but it must be at least 1")
        if self.drawn is not None and not 0 < self.drawn <= self.max_length:
            raise InputError(
                f"{self.length_flag} is {self.max_length}, but it must be at least {self.drawn_flag}, which is "
                f"{self.drawn}: every token of the longest sequence needs a position of its own. Raise "
                f"{self.length_flag} or lower {self.drawn_flag}"
            )
        if self.dim % self.heads:
            raise InputError(f"the width {self.dim} must be a multiple of the number of heads, which is {self.heads}")

    @property
    def longest(self) -> tuple[int, str]:
        """Return the length of the longest sequence, and the name of the setting that says so."""
        return (self.max_length, self.length_flag) if self.drawn is None else (self.drawn, self.drawn_flag)

    @property
    def head_dim(self) -> int:
        """Return the head width, D."""
        return self.dim // self.heads


@dataclass(frozen=True)
class Capabilities:
    """Declare what a built encoding can do. Any use that is not declared raises an error.

    Args:
        causal: Whether the encoding works in a decoder.
        bidirectional: Whether the encoding works in an encoder.
        memory: Whether queries may attend to keys of earlier segments.
        documents: Whether a sequence may consist of several documents, where tokens attend only to their own document.
        extrapolates: Whether the encoding is defined for sequences longer than n.
        shift_invariant: Whether the logit of query i and key j depends on j - i, not on i and j separately.
        directional: Whether the encoding distinguishes left from right.
        any_positions: Whether the encoding works with positions other than the columns 0 to K-1 (`Positions.ids`).
    """

    causal: bool = False
    bidirectional: bool = False
    memory: bool = False
    documents: bool = False
    extrapolates: bool = False
    shift_invariant: bool = False
    directional: bool = False
    any_positions: bool = False

    def combined(self, other: Capabilities) -> Capabilities:
        """Return the capabilities of a combination of two encodings.

        The combination has a capability if both encodings have it, except that it is `directional` if at least one
        encoding is.
        """
        both = {name: getattr(self, name) and getattr(other, name) for name in self.__dataclass_fields__}
        return Capabilities(**{**both, "directional": self.directional or other.directional})


#: Capabilities of encodings whose logits depend on positions only through the distance j - i.
RELATIVE = Capabilities(
    causal=True,
    bidirectional=True,
    memory=True,
    documents=True,
    extrapolates=True,
    shift_invariant=True,
    directional=True,
    any_positions=True,
)
#: Capabilities of encodings that add a vector to the input. Such encodings do not allow memory of earlier segments,
#: because the positions of its tokens would change with every segment.
ABSOLUTE = replace(RELATIVE, memory=False, shift_invariant=False)

#: Reason why an encoding that resets the positions of [CLS] does not declare `documents`, and advice for the user.
CLS_AGAINST_DOCUMENTS = "it treats [CLS] in a special way, but only the first document has a [CLS]: set reset=none"


@dataclass(frozen=True)
class Facts:
    """Hold the facts about a method that the documentation shows.

    Args:
        title: Name of the method in the documentation.
        family: Family of the method (see `core/families.py`). The README lists the encodings by family.
        paper: Authors and years of the papers that describe the method.
        equation: Numbers of the method's equations in these papers.
        formula: The method's formula in LaTeX.
        count: Number of parameters, as a formula in n, m (layers), h and d. Further letters are explained after the
            formula.
        notes: Remarks for the documentation.
    """

    title: str
    family: Family
    paper: str
    equation: str
    formula: str
    count: str = "0"
    notes: str = ""


class Cost(NamedTuple):
    """Hold the leading terms of the time and memory that an encoding adds to a whole stack, for example `mn^2d/h`.

    The terms are formulas in n, m (layers), h, d, k (slots) and d_p (rank); `0` means that there is no such cost.
    """

    time: str
    memory: str


@dataclass(frozen=True)
class Layer:
    """Describe a layer to the hooks that the layer calls.

    Args:
        index: Number of the layer in the stack, from 1.
        rank: Number of the layer among the layers in which the encoding is active, from 1. Tables with an entry for
            each layer are ordered by this number.
        tensors: The tensors that `per_layer` returned for this layer and, under the name `project_input`, the result of
            this hook for all K columns.
        project_q, project_k: The layer's projections of vectors to queries and to keys, [B, T, d] -> [B, h, T, D].
        content: The content product q·k, which `content_bias` can compute together with its own terms (see `Content`);
            None if nothing would be saved.
        inputs: The layer's inputs at all columns, [B, K, d]. Only `reference` gets these inputs.
    """

    index: int
    rank: int
    tensors: Mapping[str, Tensor] = field(default_factory=dict)
    project_q: Callable[[Tensor], Tensor] | None = None
    project_k: Callable[[Tensor], Tensor] | None = None
    content: Content | None = None
    inputs: Tensor | None = None

    # Every layer calls these methods in every decoding step. `dataclasses.replace` would take several times as long.

    def with_tensors(self, tensors: Mapping[str, Tensor]) -> Layer:
        """Return the same layer with other tensors."""
        return Layer(self.index, self.rank, tensors, self.project_q, self.project_k, self.content, self.inputs)

    def with_content(self, content: Content) -> Layer:
        """Return the same layer with a content product."""
        return Layer(self.index, self.rank, self.tensors, self.project_q, self.project_k, content, self.inputs)


class PositionEncoding(nn.Module):
    """Provide the base class of all encodings. A subclass implements the hooks that its method needs, and no others.

    A subclass also defines `Options` and `facts` and, if it has parameters, `shapes` and perhaps `reset_parameters`.
    Most methods need no more than this. The names after the hooks declare what only some methods need.
    """

    #: The parameter table, if the encoding has only one.
    weight: Tensor

    Options: ClassVar[type[Options]] = Options
    facts: ClassVar[Facts]

    def __init__(self, options: Any, stack: StackShape) -> None:
        super().__init__()
        self.options = options
        #: Numbers of the stack's layers in which the encoding is active, in ascending order.
        self.layer_numbers = schedule.numbers(options.layers, stack.layers)
        #: The stack as the encoding sees it: its `layers` are only those in which the encoding is active.
        self.stack = _active(options, stack)
        shapes = self.shapes(options, self.stack)
        self._names = tuple(shapes)
        for name, shape in shapes.items():
            self.register_parameter(name, nn.Parameter(torch.empty(shape)))
        if shapes:
            self.reset_parameters()

    @classmethod
    def shapes(cls, options: Any, stack: StackShape) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the parameters by their names; see `tables.shape` for tables.

        `stack` contains only the layers in which the encoding is active.
        """
        return {}

    def reset_parameters(self) -> None:
        """Draw all parameters according to the options `init` and `init_std`."""
        for weight in self.parameters():
            draw(weight, self.options.init, self.options.init_std, unset=self.default_std)

    # -- hooks ----------------------------------------------------------------------------------------

    def embed(self, x: Tensor, positions: Positions) -> Tensor:
        """Add positions to the input vectors, [B, Q, d] -> [B, Q, d], once per forward pass."""
        raise TypeError(f"{type(self).__name__} does not implement the hook embed()")

    def compress(self, k_in: Tensor, v_in: Tensor, positions: Positions, layer: Layer) -> tuple[Tensor, Tensor]:
        """Compress the inputs of the key and value projections to fewer columns, [B, K, d] -> [B, K', d] each."""
        raise TypeError(f"{type(self).__name__} does not implement the hook compress()")

    def project_q(self, q: Tensor, positions: Positions, layer: Layer) -> Tensor:
        """Encode positions in the queries, [B, h, Q, D] -> the same shape, or wider if `project_k` does the same."""
        raise TypeError(f"{type(self).__name__} does not implement the hook project_q()")

    def project_k(self, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        """Encode positions in the keys of the last T columns, [B, h, T, D] -> the same shape, or wider.

        The cache holds the keys that this hook returns.
        """
        raise TypeError(f"{type(self).__name__} does not implement the hook project_k()")

    def project_input(self, x: Tensor, positions: Positions, layer: Layer) -> Tensor:
        """Return N numbers per head for each of the last T columns, from the layer's input: [B, T, d] -> [B, h, T, N].

        The cache holds these numbers. The other hooks read the numbers of all K columns, [B, h, K, N], from
        `layer.tensors["project_input"]`.
        """
        raise TypeError(f"{type(self).__name__} does not implement the hook project_input()")

    def bias(self, positions: Positions, layer: Layer) -> Tensor:
        """Return the term of the logits that does not depend on the content, [1 or B, 1 or h, Q, K]."""
        raise TypeError(f"{type(self).__name__} does not implement the hook bias()")

    def content_bias(self, q: Tensor, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        """Return the term of the logits that depends on the content and on positions, [B, h, Q, K].

        If the hook called `layer.content.take()`, the term includes the content product q·k.
        """
        raise TypeError(f"{type(self).__name__} does not implement the hook content_bias()")

    def scores(self, q: Tensor, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        """Return the logits that replace scale * q k^T, [B, h, Q, K]."""
        raise TypeError(f"{type(self).__name__} does not implement the hook scores()")

    def adapt(self, content: Tensor, bias: Tensor, positions: Positions, layer: Layer) -> Tensor:
        """Return a term of the logits that is computed from two other terms, [B, h, Q, K].

        Args:
            content: The content product scale * q' k'^T or the logits that replace it, [B, h, Q, K], in at least
                float32.
            bias: The sum of the biases of all encodings, [1 or B, 1 or h, Q, K]. Terms that depend on the content
                cannot be combined with `adapt`, because it is not defined whether they would belong to `content` or to
                `bias`.
        """
        raise TypeError(f"{type(self).__name__} does not implement the hook adapt()")

    def row_factor(self, positions: Positions, layer: Layer) -> Tensor:
        """Return the number by which all logits of a query are multiplied, [1 or B, 1 or h, Q, 1]."""
        raise TypeError(f"{type(self).__name__} does not implement the hook row_factor()")

    def values(self, weights: Tensor, positions: Positions, layer: Layer) -> Tensor:
        """Return the term that is added to weights @ v, [B, h, Q, D], where the weights are those after dropout."""
        raise TypeError(f"{type(self).__name__} does not implement the hook values()")

    # -- literal references: the formulas of the papers, with which tests compare the hooks ---------------------------

    def reference_compress(
        self, k_in: Tensor, v_in: Tensor, positions: Positions, layer: Layer
    ) -> tuple[Tensor, Tensor]:
        """Compute the result of `compress` literally by the paper's formula."""
        return k_in, v_in

    def reference_embed(self, x: Tensor, positions: Positions) -> Tensor:
        """Compute the result of `embed` literally by the paper's formula."""
        return x

    def reference(self, q: Tensor, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        """Compute the unmasked logits of raw q and k, [B, h, Q, K], literally by the paper's formula."""
        return q @ k.transpose(-1, -2) * self.stack.head_dim**-0.5

    def reference_row_factor(self, positions: Positions, layer: Layer) -> Tensor:
        """Compute the result of `row_factor` literally by the paper's formula."""
        return torch.ones(1, 1, 1, 1)

    def reference_adapt(self, content: Tensor, bias: Tensor, positions: Positions, layer: Layer) -> Tensor:
        """Compute the result of `adapt` literally by the paper's formula."""
        return torch.zeros_like(content)

    def reference_values(self, weights: Tensor, positions: Positions, layer: Layer) -> Tensor | None:
        """Compute the result of the hook `values` literally by the paper's formula; return None without this hook."""
        return None

    # -- what only some methods declare ---------------------------------------------------------------

    #: True if the encoding reads `positions.restart_ids`, for which the model must search the tokens for sentence ends.
    needs_boundaries: ClassVar[bool] = False
    #: True if the encoding reads `positions.segments`, which only models of sentence pairs provide.
    needs_segments: ClassVar[bool] = False
    #: Names of parameters that should not decay, because decay would make all attention weights equal or gradients
    #: vanish. The fairseq models exempt these parameters from weight decay on request.
    no_decay: ClassVar[tuple[str, ...]] = ()
    #: Class for each value of the option `form`, written as in the registry. Only methods whose forms share little code
    #: set this attribute.
    forms: ClassVar[Mapping[str, str]] = {}
    #: Name of the encoding with which this one is listed, measured and tested, if it cannot be used alone.
    companion: ClassVar[str] = ""
    #: True if `content_bias` reads k. If it does not, decoding need not cache raw keys in addition to projected ones.
    reads_keys: ClassVar[bool] = True
    #: Reason why the encoding cannot use positions other than the columns, if it does not declare `any_positions`.
    only_columns: ClassVar[str] = "it does not declare the capability any_positions"
    #: False if the encoding depends only on the tokens and their order, so that positions have no effect on it.
    uses_positions: ClassVar[bool] = True
    #: Reason why the encoding does not declare `documents`, and advice for the user; the error about documents quotes
    #: it.
    against_documents: ClassVar[str] = "it does not declare the capability documents: choose another encoding"

    @property
    def default_std(self) -> float:
        """Return the standard deviation that init=normal uses if the user does not set `init_std`."""
        return 0.02

    def per_layer(self, positions: Positions) -> list[dict[str, Tensor]]:
        """Return the tensors for each of the L layers in which the encoding is active.

        The stack calls this method once per forward pass. The layers get their tensors as arguments, outside of
        activation checkpoints. A Parameter therefore accumulates its gradient once per backward pass, even if many
        layers use it.
        """
        by_layer: list[dict[str, Tensor]] = [{} for _ in range(self.stack.layers)]
        for name in self.layer_tables:
            give(by_layer, name, getattr(self, name))
        return by_layer

    @property
    def capabilities(self) -> Capabilities:
        """Return the capabilities of this encoding with its options in its stack."""
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
        """Return the names of the tables [L or 1, h or 1, ...] that are split by layer.

        By default, these tables are all parameters.
        """
        return self._names

    @property
    def learned(self) -> dict[str, Tensor]:
        """Return the tensors that hold the parameters, by name.

        Torch may have replaced the parameters by other tensors: when it prunes, and in replicas of `DataParallel`.
        """
        return {name: getattr(self, name) for name in self._names}

    @property
    def constant_along_row(self) -> tuple[str, ...]:
        """Return the parameters, or parts of them (`theta[..., 0]`), that add the same number to all logits of a query.

        Such parameters have no effect and get no gradient, because the softmax cancels them.
        """
        return ()

    @property
    def scale(self) -> float | None:
        """Return the number by which the content product q·k is multiplied, or None for the usual D^-0.5."""
        return None

    @property
    def in_blocks(self) -> bool:
        """Return whether the hooks give the same logits if they see only a part of the queries and keys.

        If so, attention that is limited to a window (option `window`) is computed in blocks, which is faster. By
        default, this holds for encodings that depend on distances only, and compute nothing for all of them at once.
        """
        own, can = type(self).per_layer is not PositionEncoding.per_layer, self.capabilities
        return can.shift_invariant and can.documents and not own

    @property
    def costs(self) -> tuple[Cost, ...] | None:
        """Return the costs of the encoding, or None for the usual costs of its hooks (see the command `params`).

        If there are several costs, the command reports the largest one.
        """
        return None

    @property
    def limit(self) -> int | None:
        """Return the maximum sequence length for which the encoding is defined, or None if there is no limit."""
        return None if self.capabilities.extrapolates else self.stack.max_length

    @property
    def cure_for_length(self) -> str:
        """Return the advice for the error about a sequence that is longer than `limit`."""
        return f"raise {self.stack.length_flag}"

    @property
    def cure_for_direction(self) -> str:
        """Return a sentence of advice for the error about a stack in whose direction the encoding does not work."""
        return ""

    @classmethod
    def count(cls, options: Any, stack: StackShape) -> int:
        """Return the number of parameters."""
        return sum(math.prod(shape) for shape in cls.shapes(options, _active(options, stack)).values())

    def rank(self, index: int) -> int | None:
        """Return the number of the stack's layer `index` among the layers in which the encoding is active, from 1.

        If the encoding is not active in this layer, return None.
        """
        return self.layer_numbers.index(index) + 1 if index in self.layer_numbers else None

    def check_window(self, window: int) -> None:
        """Raise ValueError if the encoding would have no effect in a layer with this window (see the option)."""

    def check(self, positions: Positions) -> None:
        """Raise ValueError if the encoding cannot encode the given positions.

        The caller, `Composition.check`, has already compared length, direction, memory, [CLS] and segments with the
        stack.
        """


def _active(options: Options, stack: StackShape) -> StackShape:
    """Return the stack with only the layers in which an encoding with these options is active."""
    return replace(stack, layers=len(schedule.numbers(options.layers, stack.layers)))


def give(by_layer: list[dict[str, Tensor]], name: str, table: Tensor) -> None:
    """Split a table [L or 1, ...] by layer, and store each part under `name` in the dictionary of its layer.

    The table is split by a single `unbind`, so that its gradient accumulates only once.
    """
    parts = table.unbind(0)
    for tensors, part in zip(by_layer, parts if len(parts) == len(by_layer) else parts * len(by_layer), strict=True):
        tensors[name] = part
