"""Define a Transformer decoder with any causal position encoding."""

from __future__ import annotations

from typing import Any

from fairseq.models.transformer import TransformerDecoderBase
from torch import Tensor, nn

from ..attention.memory import SegmentMemory
from ..positions import Positions
from .layers import PosEncDecoderLayer, tensors_of, wrapped
from .positioned import Positioned


class PosEncDecoder(Positioned, TransformerDecoderBase):
    """Run fairseq's Transformer decoder with the position encoding `self.pos` in its self-attention."""

    #: flag that sets the longest sequence, for error messages
    length_flag = "--max-target-positions"

    def __init__(self, cfg: Any, dictionary: Any, embed_tokens: nn.Embedding, no_encoder_attn: bool = False) -> None:
        super().__init__(cfg, dictionary, embed_tokens, no_encoder_attn=no_encoder_attn)
        self.use_positions(cfg, "decoder", cfg.decoder.embed_dim, cfg.max_target_positions, self.length_flag)

    def build_decoder_layer(self, cfg: Any, no_encoder_attn: bool = False) -> nn.Module:
        return wrapped(PosEncDecoderLayer(cfg, no_encoder_attn), cfg)

    def documents(self, tokens: Tensor) -> Tensor | None:
        """Return the document to which each of the tokens [B, T] belongs, or None if a sequence is one document."""
        return None

    def positions(
        self,
        prev_output_tokens: Tensor,
        incremental_state: dict[str, Any] | None,
        memory: SegmentMemory | None = None,
    ) -> Positions:
        """Return the positions of the tokens [B, T], which follow the positions of the memory.

        The cache holds the keys and values of the memory and of all earlier tokens.
        """
        columns = 0 if memory is None else memory.columns
        first: Any = self.layers._modules.get("0")  # not by iteration, because LayerDrop skips layers then
        cached = first.self_attn.cached_length(incremental_state) if first is not None else 0
        cached = cached - columns if cached else 0
        if cached >= prev_output_tokens.shape[1]:
            length = prev_output_tokens.shape[1]
            raise ValueError(
                f"The input has {length} tokens, but {cached} are cached already. Add new tokens to the input."
            )
        return self.pos.positions(
            prev_output_tokens,
            pad=self.padding_idx,
            boundaries=self.boundaries,
            cached=cached,
            memory=columns,
            span=None if memory is None else memory.span,
            documents=self.documents(prev_output_tokens),
        )

    def embed(self, tokens: Tensor, where: Positions) -> Tensor:
        """Embed the new tokens [B, Q] with positions, layer norm and dropout: [B, Q, d]."""
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
        memory: SegmentMemory | None = None,
    ) -> tuple[Tensor, dict[str, list[Tensor | None]]]:
        """Return the features [B, Q, d] of the new tokens, and fairseq's dictionary of additional outputs.

        With `incremental_state`, the cache holds the first T - Q of the T tokens. Without it, Q = T.
        """
        if full_context_alignment:
            raise ValueError("full_context_alignment is not supported, because it shows future tokens. Leave it out.")
        alignment_layer = self.num_layers - 1 if alignment_layer is None else alignment_layer
        source = _first(encoder_out, "encoder_out")
        source_padding = _first(encoder_out, "encoder_padding_mask")
        where = self.positions(prev_output_tokens, incremental_state, memory)
        x = self.embed(prev_output_tokens[:, prev_output_tokens.shape[1] - where.query_length :], where)
        x = x.transpose(0, 1)  # [B, Q, d] -> [Q, B, d]
        attention: Tensor | None = None
        states: list[Tensor | None] = [x]
        per_layer = self.pos.per_layer(where)
        # The cache holds the memory after the first call, so pass the memory to the layers only once.
        remembered = memory.states if memory is not None and where.offset == where.memory else ()
        for index, layer in enumerate(self.layers):
            weights_needed = index == alignment_layer
            inputs = tensors_of(layer, per_layer)
            if remembered:
                inputs = {**inputs, "memory": remembered[index].to(x)}
            x, weights, _ = layer(
                x, source, source_padding, incremental_state, weights_needed, weights_needed, positions=where, **inputs
            )
            states.append(x)
            if weights_needed and weights is not None:
                attention = weights.float().to(x)[:alignment_heads].mean(0)  # over heads
        if self.layer_norm is not None:
            x = self.layer_norm(x)
        x = x.transpose(0, 1)  # [Q, B, d] -> [B, Q, d]
        if self.project_out_dim is not None:
            x = self.project_out_dim(x)
        return x, {"attn": [attention], "inner_states": states}


def _first(encoder_out: dict[str, list[Tensor]] | None, name: str) -> Tensor | None:
    return encoder_out[name][0] if encoder_out and encoder_out[name] else None
