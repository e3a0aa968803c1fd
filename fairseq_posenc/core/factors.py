"""Define the base class of encodings whose bias is a product of two learned tables of absolute positions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from ..ops import compiled
from ..ops.precision import exact_product
from ..positions import Positions
from . import tables
from .base import Cost, StackShape, give
from .caches import CachingEncoding
from .options import option
from .refusal import InputError
from .relative import SharedBias

FACTOR_INITS = ("normal", "xavier-uniform")  # zeros get no gradient through their product; ones always have rank 1


def rank_option() -> Any:
    """Return the option `rank`, the width d_p of the two factors."""
    text = (
        "Width d_p of the two factors whose product is the bias; the rank of the bias is at most d_p (unset: the head "
        "width D)."
    )
    return option(None, text, between=(1, 4096), example=3)


def rank_of(rank: int | None, stack: StackShape) -> int:
    """Return the width d_p of the factors, which is the option `rank` or, if unset, the head width D."""
    return stack.head_dim if rank is None else rank


class FactoredBias(SharedBias, CachingEncoding):
    """Add bias[i, c] = query[i]·key[c] to the logits, where `query` and `key` are tables [L or 1, h or 1, rows, rank].

    Each row of `query` belongs to a position; each row of `key` belongs to a position or to a slot of compressed keys.
    By default both tables start from N(0, 0.02), so that their product is near zero but both get gradients. The product
    of all positions is computed once per forward pass, so its cost does not depend on the batch size. While a
    model decodes, the product is kept between forward passes.
    """

    query: Tensor
    key: Tensor

    def __init__(self, options: Any, stack: StackShape) -> None:
        if options.init_std == 0:
            raise InputError("init_std=0 makes both factors zero, so they never get a gradient: set init_std above 0")
        super().__init__(options, stack)

    @classmethod
    def factor_shapes(cls, options: Any, stack: StackShape, keys: int) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the two tables: `query` with n rows and `key` with `keys` rows."""
        rank = rank_of(options.rank, stack)
        return {
            "query": tables.shape(options.share, stack, stack.max_length, rank),
            "key": tables.shape(options.share, stack, keys, rank),
        }

    @property
    def costs(self) -> tuple[Cost, ...]:
        """Return two costs: computing the products once per table, and adding them to the logits of each head."""
        return self.costs_of_factors("n^2")

    def costs_of_factors(self, logits: str) -> tuple[Cost, ...]:
        """Return the value of `costs`; `logits` is the formula for the number of logits per head, `n^2` or `nk`."""
        products = f"{tables.axes(self.options.share)}{logits}"
        return Cost(f"{products}d_p", products), Cost(f"mh{logits}", "0")

    # -- methods of subclasses

    def query_rows(self, table: Tensor, length: int) -> Tensor:
        """Return the rows of `table` for positions 0 to length - 1: [..., n, rank] -> [..., length, rank]."""
        if compiled.exporting():  # at n tokens, `narrow` leaves no row out, and the graph would refuse this length
            return table.index_select(-2, torch.arange(length, device=table.device))
        return table.narrow(-2, 0, length)

    def key_rows(self, table: Tensor, length: int) -> Tensor:
        """Return the rows of `table` that a sequence of `length` columns uses: [..., keys, rank] -> [..., C, rank].

        C is `length`, or the number of slots if the keys are compressed.
        """
        raise TypeError(f"{type(self).__name__} does not implement the method key_rows()")

    def read(self, product: Tensor, positions: Positions) -> Tensor:
        """Select a batch's entries [1 or B, h or 1, Q, K] from the product of both tables, [h or 1, N, C]."""
        raise TypeError(f"{type(self).__name__} does not implement the method read()")

    def product_at(self, query: Tensor, key: Tensor, positions: Positions) -> Tensor:
        """Return the product of a layer's two factors at positions that the caller gives: [1 or B, h or 1, Q, K]."""
        raise TypeError(f"{type(self).__name__} does not implement the method product_at()")

    # -- once per forward pass

    def per_layer(self, positions: Positions) -> list[dict[str, Tensor]]:
        """Return the tables of each layer, and the bias if all layers share it.

        While a model decodes, the product of the two factors is added, which is then not computed in every step.
        """
        by_layer, factors = CachingEncoding.per_layer(self, positions), (self.query, self.key)
        # With `ids`, few pairs of positions occur, so the product of all is not computed.
        if positions.ids is None and self._cache.keeps(factors, positions, training=self.training):
            product, _ = self._cache.get(
                positions.key_length,
                factors,
                lambda length: self._product(*factors, length),
                positions,
                training=self.training,
                limit=self.limit,
            )
            give(by_layer, "product", product)
        if len(self.query) == 1:  # otherwise, each layer computes its bias itself, within its activation checkpoint
            give(by_layer, "bias", self.bias_of(by_layer[0], positions)[None])
        return by_layer

    def bias_of(self, tensors: Mapping[str, Tensor], positions: Positions) -> Tensor:
        if "product" in tensors:
            return self.read(tensors["product"], positions)
        if positions.ids is not None:
            return self.product_at(tensors["query"], tensors["key"], positions)
        return self.read(self._product(tensors["query"], tensors["key"], positions.key_length), positions)

    def _product(self, query: Tensor, key: Tensor, length: int) -> Tensor:
        """Return the product of both tables for positions 0 to length - 1, [..., length, C]."""
        rows, columns = self.query_rows(query, length), self.key_rows(key, length)
        return exact_product(rows, columns.transpose(-1, -2))


def of_columns(product: Tensor, positions: Positions) -> Tensor:
    """Select the entries at the positions of a batch, [1 or B, h or 1, Q, K], from `product` [h or 1, N, N]."""
    offset, length = positions.offset, positions.key_length
    if positions.in_columns:
        return product[None, :, offset:length, :length]
    ids = positions.sample_ids
    return columns_by_id(rows_by_id(product[..., : positions.extent], ids[:, offset:]), ids)


def rows_by_id(product: Tensor, ids: Tensor) -> Tensor:
    """Select the rows with the ids [B, Q] from `product` [h or 1, N, C]; return [B, h or 1, Q, C]."""
    rows = product.index_select(1, ids.flatten()).unflatten(1, ids.shape)  # (h, B*Q, C) -> (h, B, Q, C)
    return rows.transpose(0, 1)


def columns_by_id(rows: Tensor, ids: Tensor) -> Tensor:
    """Select the columns with the ids [B, K] from `rows` [B, h or 1, Q, N]; return [B, h or 1, Q, K]."""
    return torch.gather(rows, -1, ids[:, None, None, :].expand(*rows.shape[:-1], -1))
