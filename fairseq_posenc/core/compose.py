"""Combine the encodings of a stack of layers, and give each layer access to the hooks of the combination."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce

from torch import Tensor, nn

from ..ops.content import Content
from ..positions import Positions
from .agreement import check_cls, check_direction, check_drawn, check_segments
from .base import Capabilities, Layer, PositionEncoding, StackShape
from .conflicts import refuse_conflicts
from .drawing import drawn_positions
from .refusal import InputError

logger = logging.getLogger(__name__)

Projection = Callable[[Tensor], Tensor]


class Composition(nn.Module):
    """Apply one or several encodings to a stack.

    Each encoding is a submodule under its name, even if there is only one. The hooks `embed`, `compress`, `project_q`
    and `project_k` of the encodings are called one after another. The results of the hooks `bias`, `content_bias` and
    `values` are added.

    Args:
        members: Pairs of name and encoding, in the order of the command line.
        stack: The stack of layers that the encodings are for.

    Raises:
        ValueError: The encodings cannot be combined, or they do not work in this stack.
    """

    def __init__(self, members: Sequence[tuple[str, PositionEncoding]], stack: StackShape) -> None:
        super().__init__()
        self.stack = stack
        for name, member in members:
            if name in self._modules:
                layered = (
                    f", or call the second one {name}-2 and let them be active in different layers (option layers)"
                )
                cure = "remove one of them" + ("" if "embed" in member.hooks else layered)
                raise InputError(f"{stack.name_flag} contains {name} twice; {cure}")
            self.add_module(name, member)
        refuse_conflicts(dict(members), stack.layers)
        own = [member for _, member in members]
        #: Capabilities of all encodings together; `directional` is true if one encoding is directional.
        self.capabilities: Capabilities = reduce(Capabilities.combined, [member.capabilities for member in own])
        #: Maximum sequence length for which all encodings are defined, or None if there is no limit.
        self.limit = min([member.limit for member in own if member.limit is not None], default=None)
        #: Whether an encoding reads positions within sentences, which depend on the ids that end a sentence.
        self.needs_boundaries = any(member.needs_boundaries for member in own)
        #: Whether an encoding reads the segments of the tokens.
        self.needs_segments = any(member.needs_segments for member in own)
        self._embedding = [name for name, member in members if "embed" in member.hooks]
        self._refuse_stack()
        self._warned = False
        #: The paths of attention that were already logged, with their reasons, so that each appears once.
        self.logged: set[tuple[str, str]] = set()
        #: Why torch could not compile the attention with this composition; an empty text as long as it could.
        self.uncompiled = ""

    # -- properties ------------------------------------------------------------------------------------

    @property
    def members(self) -> dict[str, PositionEncoding]:
        """Return the encodings by name, in the order of the command line."""
        return self._modules  # type: ignore[return-value]  # it has no other submodules

    @property
    def name(self) -> str:
        """Return the value of --pos-enc that names this composition."""
        return "+".join(self._modules)

    def __str__(self) -> str:
        return "+".join(f"{name}({member.options})" for name, member in self.members.items())

    # -- once per forward pass -------------------------------------------------------------------------

    def positions(
        self,
        tokens: Tensor,
        *,
        pad: int | None,
        boundaries: tuple[int, ...] = (),
        cached: int = 0,
        memory: int = 0,
        memory_padding: Tensor | None = None,
        span: int | None = None,
        segments: Tensor | None = None,
        documents: Tensor | None = None,
        ids: Tensor | None = None,
    ) -> Positions:
        """Make the positions of `tokens`. The stack decides whether the positions are causal and contain [CLS].

        If the stack draws positions at random (`StackShape.drawn`), each call in training mode draws new positions.

        Args:
            tokens: Token ids of all columns up to now, except the columns of memory, [B, T].
            pad: Id of the padding; None if the tokens contain no padding.
            boundaries: Ids of the symbols after which positions restart (<s>, </s>). These ids are ignored if no
                encoding counts positions within sentences.
            cached: Number of tokens at the beginning that are in a cache, so that they are keys but not queries.
            memory: Number of columns before the tokens that hold earlier segments.
            memory_padding: True at padding in these columns, [B, memory] bool; None means that there is no padding.
            span: Maximum number of keys to which a query of a decoder attends, including its own.
            segments: Segment of every column, [B, memory + T], for encodings that read segments.
            documents: Document of every column, [B, memory + T]; None means that each sample is a single document.
            ids: Positions that replace the column numbers, whole numbers from 0, [memory + T] or [B, memory + T],
                for example the positions in a document from which some tokens were left out. These positions also
                replace positions that the stack would draw.

        Raises:
            ValueError: The boundaries are missing, or the positions do not fit the stack or one of the encodings, which
                for example does not allow memory, cannot separate `documents` or cannot use the `ids`.
        """
        if self.needs_boundaries and not boundaries:
            raise ValueError(
                f"{self.stack.name_flag} {self.name} counts positions within sentences, but boundaries is empty: give "
                "the ids of the tokens that end a sentence, for example boundaries=(bos, eos)"
            )
        positions = Positions.of_tokens(
            tokens,
            pad=pad,
            boundaries=boundaries if self.needs_boundaries else (),
            causal=self.stack.causal,
            cached=cached,
            memory=memory,
            memory_padding=memory_padding,
            span=span,
            segments=segments,
            documents=documents,
            has_cls=self.stack.has_cls,
            ids=ids,
        )
        if self.stack.drawn is not None and ids is None:
            self._check_length(positions)
            positions = drawn_positions(positions, self.stack, training=self.training)
        self.check(positions)
        return positions

    def check(self, positions: Positions) -> None:
        """Raise an error for positions that do not fit the stack, or that one of the encodings cannot encode.

        Raises:
            ValueError: The positions do not fit the stack or one of the encodings. The message says what to change.
        """
        if positions.fits(self):
            return
        self.check_capabilities(positions)
        check_drawn(positions, self.stack)
        self._check_length(positions)
        check_cls(positions, self.stack)
        self._check_segments(positions.segments)
        for member in self.members.values():
            member.check(positions)
        positions.fit(self)

    def check_capabilities(self, positions: Positions) -> None:
        """Raise ValueError for positions that need a capability which one of the encodings does not declare."""
        check_direction(positions, self.stack)
        if positions.memory and not self.capabilities.memory:
            unable = [name for name, member in self.members.items() if not member.capabilities.memory]
            raise InputError(
                f"{' and '.join(unable) or self} does not allow segment memory: choose another {self.stack.name_flag}"
            )
        self._check_any_positions(positions.ids)
        if positions.documents is not None:
            self.check_documents()

    def check_documents(self) -> None:
        """Raise ValueError if an encoding cannot separate documents in a sequence, or positions are drawn at random."""
        if self.stack.drawn is not None:
            raise InputError(
                "several documents in one sequence do not work with positions that are drawn at random "
                f"({self.stack.length_flag}), because positions are drawn for whole sequences: "
                f"leave out the documents or {self.stack.length_flag}"
            )
        for name, member in self.members.items():
            if not member.capabilities.documents:
                raise InputError(
                    f"{name} ({self.stack.name_flag}) cannot separate documents that share a sequence, because "
                    f"{member.against_documents}"
                )

    def _check_segments(self, segments: Tensor | None) -> None:
        check_segments(segments, reads=self.needs_segments, encoding=self.name, flag=self.stack.name_flag)

    def _check_any_positions(self, ids: Tensor | None) -> None:
        if ids is not None and self._only_columns:
            raise ValueError(
                f"positions of your own (Positions.ids) are not possible, because {self._only_columns}: leave ids out, "
                f"or choose another {self.stack.name_flag}"
            )

    @property
    def _only_columns(self) -> str:
        """Return the reason why positions must be column numbers, or an empty text if any positions are possible."""
        for name, member in self.members.items():
            if not member.capabilities.any_positions:
                return f"{name} works with columns only ({member.only_columns})"
        uses = any(member.uses_positions for member in self.members.values())
        return "" if uses else f"they would have no effect on {self.name}, which uses no positions"

    def _check_length(self, positions: Positions) -> None:
        limit, flag, trained = self.limit, self.stack.length_flag, self.stack.max_length
        drawn, columns = self.stack.drawn, positions.key_length
        if drawn is not None and columns > drawn:
            raise InputError(
                f"a sequence has {columns} tokens, but {self.stack.drawn_flag} is {drawn}: raise "
                f"{self.stack.drawn_flag}, which can be up to {trained} ({flag}), or shorten the sequence"
            )
        length = positions.extent
        if limit is not None and length > limit:
            cures = [member.cure_for_length for member in self.members.values() if member.limit == limit]
            raise InputError(
                f"{self.name} is defined up to {limit} positions, but there are {length} "
                f"({flag} is {trained}): {cures[0]}"
            )
        length = positions.reach if self.capabilities.shift_invariant else length
        if length > trained and not self._warned:
            self._warned = True
            logger.warning("%s: a sequence has %d positions, more than %s=%d", self.name, length, flag, trained)

    def embed(self, x: Tensor, positions: Positions) -> Tensor:
        """Apply the hook `embed` of each encoding, in the order of the command line: [B, Q, d] -> [B, Q, d]."""
        for name in self._embedding:
            member = self.members[name]
            _refresh(member)
            x = member.embed(x, positions)
        return x

    def per_layer(self, positions: Positions) -> list[dict[str, dict[str, Tensor]]]:
        """Return the tensors of each layer of the stack by the names of their encodings.

        See `PositionEncoding.per_layer`.
        """
        merged: list[dict[str, dict[str, Tensor]]] = [{} for _ in range(self.stack.layers)]
        for name, member in self.members.items():
            _refresh(member)
            for index, tensors in zip(member.layer_numbers, member.per_layer(positions), strict=True):
                merged[index - 1][name] = tensors
        return merged

    def layer(self, index: int, project_q: Projection | None = None, project_k: Projection | None = None) -> LayerView:
        """Return the object through which layer `index` (from 1) calls the hooks.

        The projections must be bound methods or modules, not lambdas. A deep copy of the model would share a lambda
        with the original and so use the original's weights.
        """
        if not 1 <= index <= self.stack.layers:
            raise ValueError(f"layer {index} does not exist: the layers of the stack are 1 to {self.stack.layers}")
        return LayerView(self, index, project_q, project_k)

    def _refuse_stack(self) -> None:
        needed = "causal" if self.stack.causal else "bidirectional"
        own = "does not work in a decoder" if self.stack.causal else "does not work in an encoder"
        unable = [member for member in self.members.values() if not getattr(member.capabilities, needed)]
        if unable:
            cure = "`python -m fairseq_posenc list` shows where each encoding works"
            if self.stack.name_flag == "--pos-enc":
                other = "encoder" if self.stack.causal else "decoder"
                cure = f"In an encoder-decoder, choose it for the {other} only: --pos-enc-{other} {self.name}"
            cures = [f" {member.cure_for_direction}" for member in unable if member.cure_for_direction]
            raise InputError(f"{self.stack.name_flag} {self.name} {own}. {cure}.{''.join(cures)}")
        if self.stack.drawn is not None and self._only_columns:
            raise InputError(
                f"{self.stack.length_flag}: positions cannot be drawn at random, because {self._only_columns}: choose "
                f"another {self.stack.name_flag}, or leave {self.stack.length_flag} out"
            )


class LayerView:
    """Let one layer call the hooks of the encodings that are active in it. A view is no module and owns no parameters.

    A layer keeps one view. Each forward pass calls the hooks of the copy that `at` returns, which also holds the
    positions and tensors of this pass.
    """

    positions: Positions

    def __init__(
        self, encoding: Composition, index: int, project_q: Projection | None, project_k: Projection | None
    ) -> None:
        self.encoding = encoding
        self.index = index
        #: The layer as each of its encodings sees it, by name. The encodings themselves are not stored, because a
        #: copied model has encodings of its own.
        self.layers = {
            name: Layer(index, rank, {}, project_q, project_k)
            for name, member in encoding.members.items()
            if (rank := member.rank(index))
        }
        #: For each hook, the names of the encodings in this layer that implement it.
        self.by_hook = _by_hook(self.members)
        #: The number of tokens to which attention is limited in this layer, or None.
        self.window = next((member.options.window for member in self.members.values() if member.options.window), None)
        scales = [member.scale for member in self.members.values() if member.scale is not None]
        #: `scale` as a text. A compiled graph would take an attribute that is a number for a variable.
        self._scale = repr(float(scales[0] if scales else encoding.stack.head_dim**-0.5))
        #: Whether raw keys must be cached in addition to the keys k' that `project_k` returns, because one encoding's
        #: `content_bias` reads keys and another one's `project_k` changes keys.
        self.reads_raw_keys = self.has("project_k") and any(
            encoding.members[name].reads_keys for name in self.by_hook.get("content_bias", ())
        )

    def has(self, hook: str) -> bool:
        """Return whether one of the encodings in this layer implements the given hook."""
        return hook in self.by_hook

    @property
    def members(self) -> dict[str, PositionEncoding]:
        """Return the encodings that are active in this layer by name, in the order of the command line."""
        members = self.encoding.members
        return {name: members[name] for name in self.layers}

    @property
    def scale(self) -> float:
        """Return the number by which the content product q·k is multiplied in this layer."""
        return float(self._scale)

    @property
    def key(self) -> tuple[Composition, int]:
        """Return what identifies the layer, whichever copy of its view this is."""
        return self.encoding, self.index

    # -- one forward pass ------------------------------------------------------------------------------

    def at(self, positions: Positions, tensors: Mapping[str, Mapping[str, Tensor]]) -> LayerView:
        """Return the view for one forward pass; `tensors` are those of this layer from `Composition.per_layer`."""
        return self.bound(
            positions.within(self.window),
            {name: layer.with_tensors(tensors.get(name, {})) for name, layer in self.layers.items()},
        )

    def bound(self, positions: Positions, layers: dict[str, Layer]) -> LayerView:
        """Return a copy of this view that has the given positions and layers."""
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__, positions=positions, layers=layers)
        return copy

    def tensors(self) -> Iterator[Tensor]:
        """Yield the tensors of all encodings."""
        for layer in self.layers.values():
            yield from layer.tensors.values()

    def _members(self, hook: str) -> list[tuple[PositionEncoding, Layer]]:
        members = self.encoding.members
        return [(members[name], self.layers[name]) for name in self.by_hook.get(hook, ())]

    def compress(self, k_in: Tensor, v_in: Tensor) -> tuple[Tensor, Tensor]:
        """Compress the inputs of the key and value projections to fewer columns, [B, K, d] -> [B, K', d] each."""
        for member, layer in self._members("compress"):
            k_in, v_in = member.compress(k_in, v_in, self.positions, layer)
        return k_in, v_in

    def project_q(self, q: Tensor) -> Tensor:
        """Apply each encoding's hook `project_q` to the queries, and return q', [B, h, Q, D] -> the same shape."""
        for member, layer in self._members("project_q"):
            q = member.project_q(q, self.positions, layer)
        return q

    def project_k(self, k: Tensor) -> Tensor:
        """Apply each encoding's hook `project_k` to the new keys, and return k', [B, h, T, D] -> the same shape."""
        for member, layer in self._members("project_k"):
            k = member.project_k(k, self.positions, layer)
        return k

    def project_input(self, x: Tensor) -> dict[str, Tensor]:
        """Return the result of each encoding's hook `project_input` for new columns, by the encoding's name.

        The inputs [B, T, d] become [B, h, T, N].
        """
        names = self.by_hook.get("project_input", ())
        return {name: self.encoding.members[name].project_input(x, self.positions, self.layers[name]) for name in names}

    def with_inputs(self, x: Tensor) -> LayerView:
        """Apply `project_input` to the inputs x [B, K, d] of all columns, and return hooks that read the results."""
        return self.reading(self.project_input(x))

    def reading(self, projected: Mapping[str, Tensor]) -> LayerView:
        """Return hooks that read the results of `project_input` for all K columns, which are keyed by encoding."""
        if not projected:
            return self
        layers = dict(self.layers)
        for name, tensor in projected.items():
            layers[name] = layers[name].with_tensors({**layers[name].tensors, "project_input": tensor})
        return self.bound(self.positions, layers)

    def additive(self, q: Tensor, k: Tensor, content: Content | None = None) -> Tensor | None:
        """Return the sum of all biases, [1 or B, 1 or h, Q, K], or None if there are none.

        The sum includes the content product q·k if one of the encodings called `content.take()`.
        """
        terms = [member.bias(self.positions, layer) for member, layer in self._members("bias")]
        for member, layer in self._members("content_bias"):
            of_layer = layer if content is None else layer.with_content(content)
            terms.append(member.content_bias(q, k, self.positions, of_layer))
        return reduce(Tensor.add, terms) if terms else None

    def scores(self, q: Tensor, k: Tensor) -> Tensor | None:
        """Return the logits that replace scale * q k^T, [B, h, Q, K], or None if no encoding replaces this product."""
        for member, layer in self._members("scores"):
            return member.scores(q, k, self.positions, layer)
        return None

    def adapt(self, content: Tensor, bias: Tensor) -> Tensor:
        """Return the sum of the terms that the hooks `adapt` compute from content and biases, [B, h, Q, K]."""
        terms = [member.adapt(content, bias, self.positions, layer) for member, layer in self._members("adapt")]
        return reduce(Tensor.add, terms)

    def row_factor(self) -> Tensor | None:
        """Return the number by which all logits of a query are multiplied, [1 or B, 1 or h, Q, 1], or None."""
        factors = [member.row_factor(self.positions, layer) for member, layer in self._members("row_factor")]
        return reduce(Tensor.mul, factors) if factors else None

    def values(self, weights: Tensor) -> Tensor | None:
        """Return the sum that is added to weights @ v, [B, h, Q, D], or None if no encoding adds anything."""
        terms = [member.values(weights, self.positions, layer) for member, layer in self._members("values")]
        return reduce(Tensor.add, terms) if terms else None


def _by_hook(members: Mapping[str, PositionEncoding]) -> dict[str, list[str]]:
    hooks = {hook for member in members.values() for hook in member.hooks}
    return {hook: [name for name, member in members.items() if hook in member.hooks] for hook in hooks}


def _refresh(member: PositionEncoding) -> None:
    """Run the hooks that torch.nn.utils.prune and its like register to compute a table before each forward pass."""
    for hook in member._forward_pre_hooks.values():
        hook(member, ())
