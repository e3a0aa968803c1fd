"""Define a Transformer encoder with any position encoding."""

from __future__ import annotations

from typing import Any

import torch
from fairseq.models.transformer import TransformerEncoderBase
from torch import Tensor, nn

from ..positions import Positions
from .layers import PosEncEncoderLayer, tensors_of, wrapped
from .positioned import Positioned


class PosEncEncoder(Positioned, TransformerEncoderBase):
    """Run fairseq's Transformer encoder with the position encoding `self.pos` in its self-attention."""

    #: flag that sets the longest sequence, for error messages
    length_flag = "--max-source-positions"

    def __init__(self, cfg: Any, dictionary: Any, embed_tokens: nn.Embedding) -> None:
        super().__init__(cfg, dictionary, embed_tokens)
        self.use_positions(cfg, "encoder", embed_tokens.embedding_dim, cfg.max_source_positions, self.length_flag)

    def build_encoder_layer(self, cfg: Any) -> nn.Module:
        return wrapped(PosEncEncoderLayer(cfg), cfg)

    def positions(self, src_tokens: Tensor) -> Positions:
        """Return the positions of the tokens [B, T]."""
        return self.pos.positions(src_tokens, pad=self.padding_idx, boundaries=self.boundaries)

    def embed(self, src_tokens: Tensor, token_embeddings: Tensor | None, where: Positions) -> tuple[Tensor, Tensor]:
        """Return embeddings with positions, layer norm and dropout, and the scaled embeddings alone: [B, T, d] each."""
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
        """Encode tokens [B, T] into fairseq's encoder_out dictionary, whose states are [T, B, d]."""
        return self.encode(src_tokens, self.positions(src_tokens), return_all_hiddens, token_embeddings)

    def reorder_encoder_out(self, encoder_out: dict[str, list[Tensor]], new_order: Tensor) -> dict[str, list[Tensor]]:
        """Select and repeat samples by new_order [B'] int64.

        All beams of a sample have the same source. At nearly every step, beams only change places within their samples;
        `encoder_out` is then returned without a copy.
        """
        before = encoder_out.get("samples", [])  # for each row of the present batch: its row in the encoder's batch
        samples = before[0].index_select(0, new_order) if before else new_order
        if before and torch.equal(samples, before[0]):
            return encoder_out
        reordered: dict[str, list[Tensor]] = super().reorder_encoder_out(encoder_out, new_order)
        return {**reordered, "samples": [samples]}

    def encode(
        self,
        src_tokens: Tensor,
        where: Positions,
        return_all_hiddens: bool = False,
        token_embeddings: Tensor | None = None,
    ) -> dict[str, list[Tensor]]:
        """Encode tokens like `forward_scriptable`, but with the positions `where`, which the caller has computed."""
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
