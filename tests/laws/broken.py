"""Define broken encodings with one fault each, which the tests of the laws must detect."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from fairseq_posenc.core.options import option
from fairseq_posenc.encodings import Capabilities, Composition, Layer, PositionEncoding
from fairseq_posenc.encodings.alibi import Alibi, AlibiOptions
from fairseq_posenc.encodings.huang import M2
from fairseq_posenc.encodings.learned import Learned
from fairseq_posenc.encodings.m4 import M4M
from fairseq_posenc.encodings.none import NoEncoding
from fairseq_posenc.encodings.raffel import Raffel
from fairseq_posenc.encodings.shaw import Shaw
from fairseq_posenc.encodings.t5 import T5, bucket
from fairseq_posenc.positions import Positions


def declaring(cls: type[PositionEncoding], **claims: bool) -> type[PositionEncoding]:
    """Return an encoding like `cls` that declares other capabilities, whatever it can do."""

    @property  # type: ignore[misc]
    def capabilities(self: PositionEncoding) -> Capabilities:
        declared = super(declared_class, self).capabilities
        return replace(declared, **claims)

    declared_class = type(f"Declaring{cls.__name__}", (cls,), {"capabilities": capabilities, "only_columns": "so"})
    return declared_class


# These encodings claim a property that they do not have, or deny one that they have.
ClaimsShift, DeniesShift = declaring(Learned, shift_invariant=True), declaring(Alibi, shift_invariant=False)
ClaimsDirection, DeniesDirection = declaring(Alibi, directional=True), declaring(M2, directional=False)
#: An encoding that works in encoders, but declares nothing else.
DeclaresNothing = declaring(
    NoEncoding, causal=False, memory=False, documents=False, any_positions=False, extrapolates=False
)


# -- the reference (law 1) -----------------------------------------------------------------------------


class WrongSign(Shaw):
    """Reads the table at i - j."""

    def content_bias(self, q: Tensor, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        flipped = replace(layer, tensors={"weight": layer.tensors["weight"].flip(-2)})
        return super().content_bias(q, k, positions, flipped)


class ForgetsTheLayer(Shaw):
    """Gives every layer the table of the first."""

    def per_layer(self, positions: Positions) -> list[dict[str, Tensor]]:
        return [super().per_layer(positions)[0]] * self.stack.layers


class Detached(Shaw):
    """Gives the right output without a gradient for its table."""

    def per_layer(self, positions: Positions) -> list[dict[str, Tensor]]:
        return [{key: x.detach() for key, x in one.items()} for one in super().per_layer(positions)]


class WrongInInference(Raffel):
    """Forgets its bias if no gradients are recorded."""

    def by_distance(self, tensors: Mapping[str, Tensor], distances: Tensor) -> Tensor:
        return super().by_distance(tensors, distances) * torch.is_grad_enabled()


# -- causality (law 2) ---------------------------------------------------------------------------------


class LooksAhead(Learned):
    """Adds the mean of the whole sequence."""

    def embed(self, x: Tensor, positions: Positions) -> Tensor:
        return super().embed(x, positions) + x.mean(1, keepdim=True)


# -- padding, batches, empty rows (laws 3 and 4) -------------------------------------------------------


class CountsPads(Learned):
    """Counts padding on the left in the position ids."""

    def ids(self, positions: Positions) -> Tensor:
        return positions.query_columns


class AddsToAllRows(Shaw):
    """Adds to the values independently of the weights."""

    @property
    def hooks(self) -> tuple[str, ...]:
        return (*super().hooks, "values")

    def values(self, weights: Tensor, positions: Positions, layer: Layer) -> Tensor:
        return weights.new_ones(*weights.shape[:3], self.stack.head_dim)


class BadGradient(Shaw):
    """Gives a finite output with an infinite derivative at padding."""

    def content_bias(self, q: Tensor, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        if positions.padding is None:
            return super().content_bias(q, k, positions, layer)
        pads = positions.padding[:, None, None, :]
        size = (q.square().sum(-1, keepdim=True) * ~pads).sqrt()  # the square root is infinitely steep at 0
        return super().content_bias(q, k, positions, layer) + 0.1 * size


class ReadsTheFirstSample(Shaw):
    """Fails if there is no sample, or if torch.func runs all samples at once."""

    def content_bias(self, q: Tensor, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        assert q[0].isfinite().all()
        return super().content_bias(q, k, positions, layer)


# -- decoding and memory (laws 5 and 6) ----------------------------------------------------------------


class CountsRowsFromZero(Alibi):
    """Computes distances from the row of the query instead of its column."""

    def bias(self, positions: Positions, layer: Layer) -> Tensor:
        rows, keys = torch.arange(positions.query_length), torch.arange(positions.key_length)
        return -0.1 * (rows[:, None] - keys).abs()[None, None].double()


class Permissive(Composition):
    """Lets its members do what they do not declare."""

    def check(self, positions: Positions) -> None:
        pass

    def check_capabilities(self, positions: Positions) -> None:
        pass


# -- length (law 8) ------------------------------------------------------------------------------------


class WrapsAround(Raffel):
    """Reads the table modulo its length instead of clipping distances."""

    def by_distance(self, tensors: Mapping[str, Tensor], distances: Tensor) -> Tensor:
        table = tensors["weight"]
        return table[:, (distances + self.clip) % table.shape[-1]] * self.stack.head_dim**-0.5


class IgnoresItsLimit(Learned):
    """Declares a limit and works beyond it."""

    def ids(self, positions: Positions) -> Tensor:
        return positions.query_ids.clamp(max=self.stack.max_length - 1)


class SilentlyClips(IgnoresItsLimit):
    """Gives all later tokens the last position."""

    limit = None


# -- parameters and options (laws 9 to 11) -------------------------------------------------------------


class WrongCount(Shaw):
    """Forgets the row of distance 0."""

    @classmethod
    def count(cls, options: Any, stack: Any) -> int:
        return super().count(options, stack) - stack.layers * stack.head_dim


class ReadsItsWeight(Shaw):
    """Each layer reads the parameter itself, within its checkpoint."""

    def content_bias(self, q: Tensor, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        own = replace(layer, tensors={"weight": self.weight[(layer.rank - 1) % len(self.weight)]})
        return super().content_bias(q, k, positions, own)


@dataclass(frozen=True)
class SlopeOptions(AlibiOptions):
    """Define an option that is never read."""

    steepness: float = option(1.0, "how steep", example=2.0)


class DropsItsOption(Alibi):
    """Computes ALiBi, but ignores the option `steepness`."""

    Options = SlopeOptions


# -- numbers and copies (laws 12 and 14) ---------------------------------------------------------------


class RoundsPositions(Alibi):
    """Computes its penalty in the dtype of the queries; bfloat16 rounds far columns to the same number."""

    @property
    def hooks(self) -> tuple[str, ...]:
        return ("content_bias",)

    def content_bias(self, q: Tensor, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        columns = torch.arange(positions.key_length).to(q.dtype)
        penalty = -(columns[positions.offset :, None] - columns).abs()
        return penalty.expand(*q.shape[:3], -1)


class DoublesGradientsInHalf(Shaw):
    """Has the right output, but in half precision twice the gradients."""

    def content_bias(self, q: Tensor, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        bias = super().content_bias(q, k, positions, layer)
        return bias if q.dtype.itemsize > 2 else 2 * bias - bias.detach()


class SumsInHalf(T5):
    """Reads its table in half precision, in which the gradients of all pairs are then summed."""

    def by_distance(self, tensors: Mapping[str, Tensor], distances: Tensor) -> Tensor:
        rows = bucket(distances, self.options.buckets, self.options.max_distance, not self.stack.causal)
        return tensors["weight"].index_select(-1, rows)


class StaleCache(Raffel):
    """Caches its bias for each length and never computes it again."""

    def per_layer(self, positions: Positions) -> list[dict[str, Tensor]]:
        kept = self.__dict__.setdefault("kept", {})
        size = positions.query_length, positions.key_length
        if size not in kept:
            kept[size] = [{key: x.detach().clone() for key, x in one.items()} for one in super().per_layer(positions)]
        return kept[size]


class KeepsTheLongest(Alibi):
    """Multiplies its penalty by the longest length that it has seen."""

    longest = 0

    def bias(self, positions: Positions, layer: Layer) -> Tensor:
        self.longest = max(self.longest, positions.key_length)
        return super().bias(positions, layer) * self.longest


class SharesItsWeight(Shaw):
    """Reads its table through a closure, which a copy shares with the original."""

    def __init__(self, options: Any, stack: Any) -> None:
        super().__init__(options, stack)
        self.read = lambda: super(SharesItsWeight, self).per_layer

    def per_layer(self, positions: Positions) -> list[dict[str, Tensor]]:
        return self.read()(positions)


# -- the start (law 16) --------------------------------------------------------------------------------


class OneHeadStartsDead(M4M):
    """The second head of each layer has a table of zeros."""

    def __init__(self, options: Any, stack: Any) -> None:
        super().__init__(replace(options, share="none"), stack)

    def reset_parameters(self) -> None:
        super().reset_parameters()
        nn.init.zeros_(self.weight[:, 1])


class ListsWhatLearns(Raffel):
    """Lists its table as constant along a row, although the table learns."""

    @property
    def constant_along_row(self) -> tuple[str, ...]:
        return ("weight",)


# -- how parameters start (law 17) ---------------------------------------------------------------------


class ForgetsToDraw(Shaw):
    """Leaves its table uninitialised."""

    def reset_parameters(self) -> None:
        pass


class Shifted(Shaw):
    """Draws its table with the mean 0.004."""

    def reset_parameters(self) -> None:
        nn.init.normal_(self.weight, mean=0.004, std=0.02)


# -- layers (law 25) -----------------------------------------------------------------------------------


class ReadsByIndex(Shaw):
    """Takes the number of a layer in the stack for its number among the layers of the encoding."""

    def content_bias(self, q: Tensor, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        own = replace(layer, tensors={"weight": self.weight[(layer.index - 1) % len(self.weight)]})
        return super().content_bias(q, k, positions, own)


# -- graphs (law 18) -----------------------------------------------------------------------------------


class LooksAtData(Raffel):
    """Branches on the numbers in its parameters."""

    def bias(self, positions: Positions, layer: Layer) -> Tensor:
        bias = super().bias(positions, layer)
        return bias if bool(bias.sum() > 0) else bias * 1.0


class OtherWhenCompiled(Raffel):
    """Forgets its bias in a compiled graph."""

    def by_distance(self, tensors: Mapping[str, Tensor], distances: Tensor) -> Tensor:
        return super().by_distance(tensors, distances) * (not torch.compiler.is_compiling())


class ShortWhenCompiled(Raffel):
    """Has a bias for short sequences, which a graph for all lengths cannot choose."""

    def bias(self, positions: Positions, layer: Layer) -> Tensor:
        bias = super().bias(positions, layer)
        return bias if positions.key_length < 10 else bias * 2


class GraphForEachLength(Raffel):
    """Looks up a Python number for the length, so that torch makes a graph for each length."""

    def bias(self, positions: Positions, layer: Layer) -> Tensor:
        bias = super().bias(positions, layer)
        return bias * {positions.key_length: 1.0}[positions.key_length]


# -- positions that the caller gives (law 24) ----------------------------------------------------------


class ReadsColumns(Shaw):
    """Reads the distances of the columns, whatever the positions are."""

    def content_bias(self, q: Tensor, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        return super().content_bias(q, k, replace(positions, ids=None), layer)
