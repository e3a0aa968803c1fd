"""Implement TUPE: products of positions, separate from the content, and learned scalars for [CLS] (Ke et al. 2021).

TUPE has two forms. With `form=paper` (M4M papers), which is in this file, each layer has small tables. With
`form=original` (tupe_original.py), all layers share one table.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from ..core import extension, tables
from ..core.base import CLS_AGAINST_DOCUMENTS, Capabilities, Cost, Facts, Layer, StackShape
from ..core.caches import CachingEncoding
from ..core.extension import Extended
from ..core.factors import of_columns
from ..core.options import Options, option
from ..core.refusal import InputError
from ..core.relative import SharedBias
from ..core.starts import draw_with_matrices
from ..ops import shifting, toeplitz
from ..ops.precision import exact_product, promoted
from ..positions import Positions

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class TupeOptions(Options):
    """Define the options of TUPE."""

    form: str = option(
        "paper",
        "With form=paper, the heads of each layer share a table of positions of width D, two matrices and relative "
        "scalars (M4M paper). With form=original, all layers share one table of positions of width d, which is "
        "projected for each head, and scalars for T5's buckets of distances (authors' code).",
        choices=("paper", "original"),
    )
    relative: bool = option(
        True, "Add learned scalars of relative distances (true: TUPE-R, false: TUPE-A).", example=False
    )
    reset: str = option(
        "auto",
        "When to replace the position terms of pairs that contain [CLS] by learned scalars: if samples begin with "
        "[CLS] (auto), or never (none).",
        choices=("auto", "none"),
    )
    extend: str = extension.extend_option()
    extend_to: int | None = extension.extend_to_option()
    share: str = tables.share_option("head-wise")
    init: str = tables.init_option("normal")
    init_std: float | None = tables.init_std_option()


class Tupe(Extended, SharedBias, CachingEncoding):
    """TUPE adds a product of positions: e_ij = q_i·k_j / sqrt(2D) + reset(v_ij).

    In this formula v_ij = (p_i U^Q)·(p_j U^K) / sqrt(2D) + a_ij, where the relative scalars a_ij are not divided by
    sqrt(2D). reset(v_ij) is theta_1 if i is [CLS], theta_2 if only j is [CLS], and v_ij otherwise. theta_1 adds the
    same number to all logits of [CLS], so it has no effect; this code has theta_1 because the papers define it. With
    reset, a sequence cannot consist of several documents, because only the first document begins with [CLS]. The option
    `init` applies to the position vectors p. The matrices start from N(0, 0.02) and the scalars at zero.
    """

    Options = TupeOptions
    facts = Facts(
        title="TUPE: untied positions",
        family="biases",
        paper="Ke et al. 2021, equation (10); for form=paper: Huang et al., M4M (arXiv)",
        equation="equations (14), (15) and (19)",
        formula=r"e_{ij} = \frac{q_i \cdot k_j}{\sqrt{2D}}"
        r" + \mathrm{reset}_\theta\left(\frac{(p_i U^Q) \cdot (p_j U^K)}{\sqrt{2D}} + a_{ij}, i, j\right)",
        count="m (n d/h + 2 (d/h)^2 + 2n-1 + 2). The papers count only one of the two matrices of "
        "(d/h)^2 numbers, and do not count the two scalars of theta. With `form=original`, the number of parameters is "
        "(n+1) d + 2 (d^2 + d) + 2 d + 33 h. Both forms have fewer parameters without reset or without relative "
        "scalars.",
    )
    forms: ClassVar = {"paper": "tupe:PaperTupe", "original": "tupe_original:OriginalTupe"}
    options: TupeOptions
    u_q: Tensor
    u_k: Tensor
    scalars: Tensor

    def __init__(self, options: TupeOptions, stack: StackShape) -> None:
        self._check_start(options)
        super().__init__(options, stack)
        self.resets = resets(options, stack)
        if not self.resets and options.reset == "auto":
            _log_that_nothing_is_reset()

    def reset_parameters(self) -> None:
        """Draw p according to the options and the matrices from N(0, 0.02), and set biases and scalars to zero."""
        draw_with_matrices(self, self.options, "u_q", "u_k")

    @classmethod
    def _check_start(cls, options: TupeOptions) -> None:
        """Raise ValueError if the table of position vectors starts at zeros, because it would then get no gradient."""
        if options.init == "zeros" or options.init_std == 0:
            raise InputError(
                "a table of positions that starts at zeros never learns, because its gradient is zero: choose another "
                "init or init_std"
            )

    against_documents = CLS_AGAINST_DOCUMENTS

    @property
    def capabilities(self) -> Capabilities:
        return replace(super().capabilities, causal=not self.resets, documents=not self.resets)

    @property
    def scale(self) -> float | None:
        return float((2 * self.stack.head_dim) ** -0.5)

    @property
    def costs(self) -> tuple[Cost, ...]:
        """Return two costs: computing the products once per table, and adding them to the logits of each head."""
        axes = tables.axes(self.options.share)
        products = {"mh": "mn^2d", "m": "mn^2d/h", "h": "n^2d", "": "n^2d/h"}[axes]  # the width of each head is d/h
        return Cost(products, f"{axes}n^2"), Cost("mhn^2", "0")

    # -- methods of the forms --------------------------------------------------------------------------

    def project(self, length: int) -> Tensor:
        """Return p U^Q / sqrt(2D) and p U^K of positions 0 .. length - 1, [2, L or 1, h or 1, length, D]."""
        raise TypeError(f"{type(self).__name__} does not implement the method project()")

    def by_distance(self, tensors: Mapping[str, Tensor], positions: Positions) -> Tensor:
        """Return the relative scalars of all distances, [h or 1, L]."""
        raise TypeError(f"{type(self).__name__} does not implement the method by_distance()")

    def thetas(self, tensors: Mapping[str, Tensor]) -> Tensor:
        """Return theta_1 and theta_2, [h or 1, 2]."""
        raise TypeError(f"{type(self).__name__} does not implement the method thetas()")

    # -- hooks -----------------------------------------------------------------------------------------

    def parts(self, positions: Positions) -> list[dict[str, Tensor]]:
        """Return the scalars and the projected positions; in evaluation mode, return cached products instead of the
        positions."""
        parameters = list(self.learned.values())
        if self._cache.keeps(parameters, positions, training=self.training):
            product, _ = self._cache.get(
                positions.extent, parameters, self._product, positions, training=self.training, limit=self.limit
            )
            parts, name = product.unbind(0), "product"
        else:
            parts, name = self.project(positions.extent).unbind(1), "projected"
        # If all layers share everything, there is a single part, and the tables of the other layers are not read.
        return [{**own, name: part} for own, part in zip(super().parts(positions), parts, strict=False)]

    def _product(self, length: int) -> Tensor:
        """Return the products of all pairs of projected positions, [L or 1, h or 1, length, length]."""
        queries, keys = self.project(length)
        return exact_product(queries, keys.transpose(-1, -2))

    def bias_of(self, tensors: Mapping[str, Tensor], positions: Positions) -> Tensor:
        """Return the bias [1 or B, h or 1, Q, K] of a layer."""
        if "product" in tensors:
            bias = of_columns(tensors["product"], positions)
        else:
            queries, keys = tensors["projected"]
            bias = _products(queries, keys, positions)
        if self.options.relative:
            bias = bias + shifting.to_pairs(self.by_distance(tensors, positions), positions)
        return self._reset(bias, self.thetas(tensors), positions) if self.resets else bias

    def _reset(self, bias: Tensor, thetas: Tensor, positions: Positions) -> Tensor:
        """Replace the row and the column of [CLS] in the bias by the scalars theta_1 and theta_2.

        If [CLS] is in the same column in all samples, the mask is made for one sample only.
        """
        assert positions.cls_column is not None
        first = positions.cls_column[:, None] if positions.common_cls_column is None else positions.cls_column[:1, None]
        is_query = (positions.query_columns == first)[:, None, :, None]
        is_key = (torch.arange(positions.key_length, device=first.device) == first)[:, None, None, :]
        from_cls, to_cls = promoted(thetas)[..., None, None].unbind(1)  # [h or 1, 1, 1] each
        return torch.where(is_query, from_cls, torch.where(is_key, to_cls, bias))

    # -- literal references ----------------------------------------------------------------------------

    def reference(self, q: Tensor, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        absolute, relative, thetas = self.reference_parts(positions, layer)
        parts = []
        for sample, j in enumerate(positions.key_ids.expand(len(q), -1)):
            i = j[positions.offset :]
            v = (absolute[:, i[:, None], j[None, :]] + relative).clone()  # [h, Q, K]
            if self.resets:
                assert positions.cls_column is not None
                cls = int(positions.cls_column[sample])
                v[:, :, cls] = thetas[:, 1, None]
                if cls >= positions.offset:
                    v[:, cls - positions.offset] = thetas[:, 0, None]
            parts.append(v)
        return torch.einsum("bhid,bhjd->bhij", q, k) / (2 * self.stack.head_dim) ** 0.5 + torch.stack(parts)

    def reference_parts(self, positions: Positions, layer: Layer) -> tuple[Tensor, Tensor, Tensor]:
        """Return the products [h, K, K] and scalars [h, Q, K] of all pairs of positions, and theta [h, 2]."""
        raise TypeError(f"{type(self).__name__} does not implement the method reference_parts()")


class PaperTupe(Tupe):
    """Learn p [n, D], U^Q and U^K [D, D], a [2n-1] and theta [2] in each layer, as in the M4M papers.

    Equations (14), (15) and (19) of M4M (arXiv) define `form=paper`. `share` applies to p, both matrices, a and theta.
    The papers' numbers of parameters include only one of U^Q and U^K.
    """

    @classmethod
    def shapes(cls, options: TupeOptions, stack: StackShape) -> dict[str, tuple[int, ...]]:
        dim, longest = stack.head_dim, stack.max_length
        own: dict[str, tuple[int, ...]] = {"weight": (longest, dim), "u_q": (dim, dim), "u_k": (dim, dim)}
        if options.relative:
            own["scalars"] = (2 * longest - 1,)
        if resets(options, stack):
            own["theta"] = (2,)
        return {name: tables.shape(options.share, stack, *extents) for name, extents in own.items()}

    @property
    def constant_along_row(self) -> tuple[str, ...]:
        return ("theta[..., 0]",) if self.resets else ()

    @property
    def layer_tables(self) -> tuple[str, ...]:
        return tuple(name for name in ("scalars", "theta") if hasattr(self, name))  # `project` reads the others

    def project(self, length: int) -> Tensor:
        p = self.rows(self.weight, torch.arange(length, device=self.weight.device))
        queries = exact_product(p, self.u_q) * (2 * self.stack.head_dim) ** -0.5
        return torch.stack([queries, exact_product(p, self.u_k)])

    def by_distance(self, tensors: Mapping[str, Tensor], positions: Positions) -> Tensor:
        rows = tables.rows_of(positions, self.stack.max_length - 1)
        return toeplitz.take(promoted(tensors["scalars"]), rows, -1)

    def thetas(self, tensors: Mapping[str, Tensor]) -> Tensor:
        return tensors["theta"]

    def reference_parts(self, positions: Positions, layer: Layer) -> tuple[Tensor, Tensor, Tensor]:
        own = {name: tables.of_layer(p, layer.rank, self.stack.heads) for name, p in self.learned.items()}
        p = torch.stack([self.literal_row(own["weight"], i) for i in range(positions.extent)], 1)
        factors = [torch.einsum("hic,hcd->hid", p, own[name]) for name in ("u_q", "u_k")]
        absolute = torch.einsum("hid,hjd->hij", *factors) / (2 * self.stack.head_dim) ** 0.5
        last = self.stack.max_length - 1
        relative = p.new_zeros(())
        if self.options.relative:
            relative = own["scalars"][:, positions.delta.clamp(-last, last) + last]
        return absolute, relative, own.get("theta", relative)


@functools.cache  # logs only once
def _log_that_nothing_is_reset() -> None:
    logger.info("tupe: reset=auto has no effect, because samples do not begin with [CLS]")


def resets(options: TupeOptions, stack: StackShape) -> bool:
    """Return whether learned scalars take the place of the position terms of pairs that contain [CLS]."""
    return options.reset == "auto" and stack.has_cls


def _products(queries: Tensor, keys: Tensor, positions: Positions) -> Tensor:
    """Return the products [1 or B, h or 1, Q, K] of projected positions of queries and keys, both [h or 1, N, D].

    If positions differ from columns (padding on the left, documents), each sample has its own product.
    """
    offset, length = positions.offset, positions.key_length
    if positions.in_columns:
        return exact_product(queries[:, offset:length], keys[:, :length].transpose(-1, -2))[None]
    ids = positions.sample_ids
    queries, keys = queries[:, ids[:, offset:]], keys[:, ids]  # [h or 1, 1 or B, T, D]
    return exact_product(queries, keys.transpose(-1, -2)).transpose(0, 1)
