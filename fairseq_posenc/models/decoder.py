"""Transformer decoder with any causal position encoding."""

from __future__ import annotations

from typing import Any

from fairseq.models.transformer import TransformerDecoderBase
from torch import Tensor, nn

from ..positions import Positions
from .layers import PosEncDecoderLayer, tensors_of, wrapped
from .positioned import Positioned


class PosEncDecoder(Positioned, TransformerDecoderBase):
    """fairseq's decoder; `self.pos` is the position encoding of its self-attention."""

    def __init__(self, cfg: Any, dictionary: Any, embed_tokens: nn.Embedding, no_encoder_attn: bool = False) -> None:
        super().__init__(cfg, dictionary, embed_tokens, no_encoder_attn=no_encoder_attn)
        self.use_positions(cfg, "decoder", cfg.decoder.embed_dim, cfg.max_target_positions, "--max-target-positions")

    def build_decoder_layer(self, cfg: Any, no_encoder_attn: bool = False) -> nn.Module:
        return wrapped(PosEncDecoderLayer(cfg, no_encoder_attn), cfg)

    def positions(self, prev_output_tokens: Tensor, incremental_state: dict[str, Any] | None) -> Positions:
        """Where the tokens stand: [B, K], all columns so far, of which the cache holds the first."""
        cached = self._first_attention.cached_length(incremental_state) if self.num_layers else 0
        if cached >= prev_output_tokens.shape[1]:
            raise ValueError(f"{prev_output_tokens.shape[1]} tokens given, {cached} are cached already")
        where = Positions.of_tokens(
            prev_output_tokens, pad=self.padding_idx, boundaries=self.boundaries, causal=True, cached=cached
        )
        self.pos.check(where)
        return where

    @property
    def _first_attention(self) -> Any:
        return self.layers._modules["0"].self_attn  # not by iteration, which LayerDrop cuts short

    def embed(self, tokens: Tensor, where: Positions) -> Tensor:
        """The new tokens [B, Q] with positions, normalised and dropped out: [B, Q, d]."""
        x = self.embed_scale * self.embed_tokens(tokens)
        if self.quant_noise is not None:
            x = self.quant_noise(x)
        if self.project_in_dim is not None:
            x = self.project_in_dim(x)
        x = self.pos.embed(x, where)
        if self.layernorm_embedding is not None:
            x = self.layernorm_embedding(x)
        return self.dropout_module(x)

    def extract_features_scriptable(
        self,
        prev_output_tokens: Tensor,
        encoder_out: dict[str, list[Tensor]] | None,
        incremental_state: dict[str, Any] | None = None,
        full_context_alignment: bool = False,
        alignment_layer: int | None = None,
        alignment_heads: int | None = None,
    ) -> tuple[Tensor, dict[str, list[Tensor | None]]]:
        """[B, K] tokens -> features of the new ones [B, Q, d], and fairseq's extras.

        With `incremental_state` the cache holds the first K - Q columns; without, Q = K.
        """
        if full_context_alignment:
            raise ValueError("full-context alignment would show a decoder's encoding the future")
        alignment_layer = self.num_layers - 1 if alignment_layer is None else alignment_layer
        source = _first(encoder_out, "encoder_out")
        source_padding = _first(encoder_out, "encoder_padding_mask")
        where = self.positions(prev_output_tokens, incremental_state)
        x = self.embed(prev_output_tokens[:, where.offset :], where)
        x = x.transpose(0, 1)  # [B, Q, d] -> [Q, B, d]
        attention: Tensor | None = None
        states: list[Tensor | None] = [x]
        per_layer = self.pos.per_layer(where)
        for index, layer in enumerate(self.layers):
            wanted = index == alignment_layer
            given = tensors_of(layer, per_layer)
            x, weights, _ = layer(
                x, source, source_padding, incremental_state, wanted, wanted, positions=where, **given
            )
            states.append(x)
            if wanted and weights is not None:
                attention = weights.float().to(x)[:alignment_heads].mean(0)  # over heads
        if self.layer_norm is not None:
            x = self.layer_norm(x)
        x = x.transpose(0, 1)  # [Q, B, d] -> [B, Q, d]
        if self.project_out_dim is not None:
            x = self.project_out_dim(x)
        return x, {"attn": [attention], "inner_states": states}


def _first(encoder_out: dict[str, list[Tensor]] | None, name: str) -> Tensor | None:
    return encoder_out[name][0] if encoder_out and encoder_out[name] else None
