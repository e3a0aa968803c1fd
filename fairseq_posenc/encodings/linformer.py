"""Implement Linformer, which compresses keys and values to a few slots, alone or with DIET's factors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from ..core import factors, tables
from ..core.base import ABSOLUTE, Cost, Facts, Layer, PositionEncoding, StackShape
from ..core.factors import FACTOR_INITS, FactoredBias
from ..core.options import N, Options, option
from ..core.refusal import InputError
from ..core.starts import draw
from ..positions import Positions
from .diet import DIVISOR, PAPER


def slots_of(slots: int | None, stack: StackShape) -> int:
    """Return the number k of slots, which is the option `slots` or, if unset, n / 4.

    Raises:
        ValueError: There are no slots, or more slots than columns.
    """
    if slots is None:
        return max(1, stack.max_length // 4)
    if not 1 <= slots <= stack.max_length:
        raise InputError(
            f"slots={slots} must be a number from 1 to n, and n is {stack.max_length} ({stack.length_flag})"
        )
    return slots


class Compressing(PositionEncoding):
    """Provide the base class of encodings that compute keys from E X and values from F X, where `weight` holds E and F.

    `weight` is [L or 1, 1 or 2, slots, n]. E is applied before the heads are split, so all heads share E. Column p
    of E and F belongs to the token with p tokens before it. Padding is replaced by zeros; with padding on the left,
    column 0 belongs to the first token. These encodings work in encoders only, because a slot mixes all columns.
    """

    capabilities = replace(ABSOLUTE, causal=False, documents=False, extrapolates=False, any_positions=False)
    only_columns = "its matrices compress the columns of a sequence"
    against_documents = "each of its slots mixes the keys of all documents: choose another encoding"

    @property
    def costs(self) -> tuple[Cost, ...]:
        """Return the cost of compressing keys and values."""
        return (Cost("mknd", "mkd"),)

    @classmethod
    def shapes(cls, options: Any, stack: StackShape) -> dict[str, tuple[int, ...]]:
        copies = 1 if options.share_layers else stack.layers, 1 if options.share_kv else 2
        return {"weight": (*copies, slots_of(options.slots, stack), stack.max_length)}

    def reset_parameters(self) -> None:
        """Draw E and F as fairseq's Linformer does, by Xavier initialisation with gain 1/sqrt(2)."""
        draw(self.weight, "xavier-uniform", None, gain=2**-0.5)

    def compress(self, k_in: Tensor, v_in: Tensor, positions: Positions, layer: Layer) -> tuple[Tensor, Tensor]:
        mixes = _of_columns(layer.tensors["weight"], positions)
        keys = torch.matmul(mixes[0], k_in)
        if len(mixes) == 1 and k_in is v_in:
            return keys, keys
        return keys, torch.matmul(mixes[-1], v_in)

    def reference_compress(
        self, k_in: Tensor, v_in: Tensor, positions: Positions, layer: Layer
    ) -> tuple[Tensor, Tensor]:
        mixes = self.weight[(layer.rank - 1) % len(self.weight)]
        pads = torch.zeros(k_in.shape[:2], dtype=torch.bool) if positions.padding is None else positions.padding
        return _literal_slots(mixes[0], k_in, pads), _literal_slots(mixes[-1], v_in, pads)


def _of_columns(weight: Tensor, positions: Positions) -> Tensor:
    """Return the columns of E and F [1 or 2, slots, n] that belong to the K columns of a batch.

    Returns:
        [1 or 2, slots, K], or [1 or 2, B, slots, K] if there is padding on the left.
    """
    if not positions.left_padded:
        return weight[..., : positions.key_length]
    columns = nn.functional.embedding(positions.key_ids, weight.flatten(0, 1).t())  # [B, K, (1 or 2) slots]
    return columns.unflatten(-1, weight.shape[:2]).permute(2, 0, 3, 1)


def _literal_slots(mix: Tensor, x: Tensor, pads: Tensor) -> Tensor:
    """Return E X for each sample, computed from its tokens without padding."""
    tokens = [sample[~of_sample] for sample, of_sample in zip(x, pads, strict=True)]
    return torch.stack([mix[:, : len(sample)] @ sample for sample in tokens])


@dataclass(frozen=True)
class LinformerOptions(Options):
    """Define the options of Linformer."""

    slots: int | None = option(
        None,
        "Number k of slots to which the n columns are compressed (unset: n / 4, as in fairseq's example).",
        between=(1, N),
        example=2,
    )
    share_kv: bool = option(False, "Compress the values with the same matrix as the keys (F = E).", example=True)
    share_layers: bool = option(False, "Use the same matrices E and F in all layers.", example=True)


class Linformer(Compressing):
    """Linformer compresses the columns of keys and values to k slots by two learned matrices E and F.

    The formulas are e_ij = q_i·(E X W_K)_j / sqrt(D) and z_i = sum_j alpha_ij (F X W_V)_j, where j is the number of a
    slot. Positions have an effect only through the columns of E and F. Use `learned+linformer` for the Linformer of the
    DIET paper.
    """

    Options = LinformerOptions
    facts = Facts(
        title="Linformer: compressed keys and values",
        family="low rank",
        paper="Wang et al. 2020; Chen et al. 2021 (DIET)",
        equation="equation (4) without the position term",
        formula=r"e_{ij} = \frac{q_i \cdot (E X W_K)_j}{\sqrt{D}},\quad z_i = \sum_j \alpha_{ij} (F X W_V)_j",
        count="2 m k n, where k is `slots` (n/4 if unset). `share_kv` halves the number of parameters, and "
        "`share_layers` divides it by m.",
    )
    options: LinformerOptions


@dataclass(frozen=True)
class DietAbsLinOptions(LinformerOptions):
    """Define the options of DIET-ABS-LIN: the options of Linformer, and most options of DIET-ABS."""

    rank: int | None = factors.rank_option()
    share: str = tables.share_option("layer-wise")
    init: str = tables.init_option("normal", FACTOR_INITS)
    init_std: float | None = tables.init_std_option()


class DietAbsLin(Compressing, FactoredBias):
    """DIET-ABS-LIN is Linformer with a product of learned tables: e_ij = q_i·(E X W_K)_j / sqrt(D) + P_Q[i]·P_K[j].

    Here j is the number of a slot. Each head has its own P_Q [n, rank] and P_K [slots, rank]. The paper prints the
    width d for both tables, and calls the number of slots d_p in its result tables. The options `share`, `init` and
    `init_std` apply to P_Q and P_K as in DIET-ABS; `share_kv` and `share_layers` apply to E and F as in Linformer.
    """

    Options = DietAbsLinOptions
    facts = Facts(
        title="DIET-ABS-LIN: Linformer with absolute factors",
        family="low rank",
        paper=PAPER,
        equation="equation (4)",
        formula=r"e_{ij} = \frac{q_i \cdot (E X W_K)_j}{\sqrt{D}} + (P_Q P_K^\top)_{ij}",
        count="2 m k n + h r (n + k), where k is `slots` (n/4 if unset) and r is `rank` (d/h if unset). `share_kv` "
        "divides the first term by 2, and `share_layers` divides it by m. With `share=none`, the second term is "
        "multiplied by m.",
        notes=DIVISOR,
    )
    options: DietAbsLinOptions

    @classmethod
    def shapes(cls, options: DietAbsLinOptions, stack: StackShape) -> dict[str, tuple[int, ...]]:
        return super().shapes(options, stack) | cls.factor_shapes(options, stack, slots_of(options.slots, stack))

    def reset_parameters(self) -> None:
        """Draw E and F as Linformer does, and P_Q and P_K as DIET-ABS does."""
        super().reset_parameters()
        for factor in (self.query, self.key):
            draw(factor, self.options.init, self.options.init_std)

    @property
    def costs(self) -> tuple[Cost, ...]:
        """Return the costs of compressing keys and values, and of the factors for n queries and k slots."""
        return *super().costs, *self.costs_of_factors("nk")

    def key_rows(self, table: Tensor, length: int) -> Tensor:
        return table  # all slots, for any number of columns

    def read(self, product: Tensor, positions: Positions) -> Tensor:
        if positions.left_padded:
            return factors.rows_by_id(product, positions.query_ids)
        return product[None, :, positions.offset : positions.key_length]

    def reference(self, q: Tensor, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        p_q, p_k = (tables.of_layer(table, layer.rank, self.stack.heads) for table in (self.query, self.key))
        of_queries = torch.stack([p_q[:, ids] for ids in positions.query_ids.expand(len(q), -1)])  # [B, h, Q, rank]
        content = torch.einsum("bhid,bhjd->bhij", q, k) / self.stack.head_dim**0.5
        return content + torch.einsum("bhir,hjr->bhij", of_queries, p_k)
