"""Transformer encoder with any position encoding."""

from __future__ import annotations

import logging
from typing import Any

import torch
from fairseq.models.transformer import TransformerEncoderBase
from torch import Tensor, nn

from ..encodings import StackShape, build
from ..positions import Positions
from .config import encoding_of
from .layers import PosEncEncoderLayer, number, tensors_of, wrapped

logger = logging.getLogger(__name__)

#: fairseq's number for 'no limit of the model's own'; the task's --max-*-positions still holds
UNLIMITED = int(1e5)


class PosEncEncoder(TransformerEncoderBase):
    """fairseq's encoder; `self.pos` is its position encoding."""

    def __init__(self, cfg: Any, dictionary: Any, embed_tokens: nn.Embedding) -> None:
        super().__init__(cfg, dictionary, embed_tokens)
        chosen = encoding_of(cfg, "encoder")
        shape = StackShape(
            layers=cfg.encoder.layers,
            heads=cfg.encoder.attention_heads,
            dim=embed_tokens.embedding_dim,
            max_length=cfg.max_source_positions,
            length_flag="--max-source-positions",
            name_flag=chosen.name_flag,
            args_flag=chosen.args_flag,
        )
        self.pos = build(chosen.name, chosen.args, shape)
        number(self.layers, self.pos)
        parameters = sum(p.numel() for p in self.pos.parameters())
        logger.info("encoder position encoding: %s, %d parameters", self.pos, parameters)

    def build_encoder_layer(self, cfg: Any) -> nn.Module:
        return wrapped(PosEncEncoderLayer(cfg), cfg)

    def positions(self, src_tokens: Tensor) -> Positions:
        """Where the tokens [B, T] stand."""
        where = Positions.of_tokens(src_tokens, pad=self.padding_idx, boundaries=self._boundaries)
        self.pos.check(where)
        return where

    @property
    def _boundaries(self) -> tuple[int, ...]:
        needed = self.pos.needs_boundaries
        return (self.dictionary.bos(), self.dictionary.eos()) if needed else ()

    def embed(self, src_tokens: Tensor, token_embeddings: Tensor | None, where: Positions) -> tuple[Tensor, Tensor]:
        """Scaled embeddings with positions, normalised and dropped out, and without: [B, T, d] each."""
        if token_embeddings is None:
            token_embeddings = self.embed_tokens(src_tokens)
        embedded = self.embed_scale * token_embeddings
        x = self.pos.embed(embedded, where)
        if self.layernorm_embedding is not None:
            x = self.layernorm_embedding(x)
        x = self.dropout_module(x)
        if self.quant_noise is not None:
            x = self.quant_noise(x)
        return x, embedded

    def forward_scriptable(
        self,
        src_tokens: Tensor,
        src_lengths: Tensor | None = None,
        return_all_hiddens: bool = False,
        token_embeddings: Tensor | None = None,
    ) -> dict[str, list[Tensor]]:
        """[B, T] tokens -> fairseq's encoder_out dictionary (states are [T, B, d])."""
        where = self.positions(src_tokens)
        padding = src_tokens.eq(self.padding_idx)
        x, embedded = self.embed(src_tokens, token_embeddings, where)
        if where.padding is not None:
            x = x * (1 - padding[..., None].type_as(x))
        x = x.transpose(0, 1)  # [B, T, d] -> [T, B, d]
        states = [x] if return_all_hiddens else []
        per_layer = self.pos.per_layer(where)
        for layer in self.layers:
            x = layer(x, where.padding, positions=where, **tensors_of(layer, per_layer))
            if return_all_hiddens:
                states.append(x)
        if self.layer_norm is not None:
            x = self.layer_norm(x)
        lengths = (~padding).sum(1, dtype=torch.int32).reshape(-1, 1)
        return {
            "encoder_out": [x],
            "encoder_padding_mask": [padding],
            "encoder_embedding": [embedded],
            "encoder_states": states,
            "fc_results": [],
            "src_tokens": [],
            "src_lengths": [lengths],
        }

    def max_positions(self) -> int:
        """The longest source that the encoding defines."""
        return UNLIMITED if self.pos.limit is None else self.pos.limit
