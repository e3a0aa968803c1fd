"""Define fairseq's Transformer layers with the plugin's self-attention. Cross-attention is unchanged."""

from __future__ import annotations

from typing import Any

from fairseq.distributed import fsdp_wrap
from fairseq.modules.checkpoint_activations import checkpoint_wrapper
from fairseq.modules.transformer_layer import TransformerDecoderLayerBase, TransformerEncoderLayerBase
from torch import Tensor, nn

from ..encodings import Composition
from ..positions import Positions
from .attention import Place, PosEncSelfAttention


def _self_attention(layer: Any, dim: int, heads: int, cfg: Any) -> PosEncSelfAttention:
    return PosEncSelfAttention(
        dim,
        heads,
        dropout=cfg.attention_dropout,
        bias=not getattr(cfg, "no_attention_bias", False),
        q_noise=layer.quant_noise,
        qn_block_size=layer.quant_noise_block_size,
    )


class PosEncEncoderLayer(TransformerEncoderLayerBase):
    """Run an encoder layer, and pass positions to its self-attention.

    The encoding's tensors are separate keyword arguments, because fairseq's activation checkpointing computes gradients
    for top-level tensors only.
    """

    def build_self_attention(self, embed_dim: int, cfg: Any) -> PosEncSelfAttention:
        return _self_attention(self, embed_dim, cfg.encoder.attention_heads, cfg)

    def forward(
        self, x: Tensor, encoder_padding_mask: Tensor | None, *, positions: Positions, **tensors: Tensor
    ) -> Tensor:
        """Return the layer's outputs [T, B, d] for the inputs [T, B, d]."""
        out: Tensor = super().forward(x, Place(positions, _by_encoding(tensors)))
        return out


class PosEncDecoderLayer(TransformerDecoderLayerBase):
    """Run a decoder layer, and pass positions to its self-attention."""

    def build_self_attention(
        self, embed_dim: int, cfg: Any, add_bias_kv: bool = False, add_zero_attn: bool = False
    ) -> PosEncSelfAttention:
        if add_bias_kv or add_zero_attn:
            raise ValueError("add_bias_kv and add_zero_attn add keys that have no position. Leave out both arguments.")
        return _self_attention(self, embed_dim, cfg.decoder.attention_heads, cfg)

    def forward(
        self,
        x: Tensor,
        encoder_out: Tensor | None = None,
        encoder_padding_mask: Tensor | None = None,
        incremental_state: dict[str, Any] | None = None,
        need_attn: bool = False,
        need_head_weights: bool = False,
        *,
        positions: Positions,
        memory: Tensor | None = None,
        **tensors: Tensor,
    ) -> tuple[Tensor, Tensor | None, None]:
        """Apply the layer to [T, B, d]; return the output, the weights of the cross-attention, and None.

        Args:
            memory: Inputs of this layer in earlier segments, [M, B, d].
        """
        if memory is not None and self.normalize_before:
            memory = self.self_attn_layer_norm(memory)  # keys and queries are computed from normalised states
        out: tuple[Tensor, Tensor | None, None] = super().forward(
            x,
            encoder_out,
            encoder_padding_mask,
            incremental_state,
            self_attn_padding_mask=Place(positions, _by_encoding(tensors), memory),
            need_attn=need_attn,
            need_head_weights=need_head_weights,
        )
        return out


def wrapped(layer: nn.Module, cfg: Any) -> nn.Module:
    """Apply activation checkpointing and FSDP to a layer, as fairseq's own build_encoder_layer does.

    --offload-activations implies --checkpoint-activations, as in fairseq's translation models.
    """
    checkpointed = cfg.checkpoint_activations or cfg.offload_activations
    if checkpointed:
        layer = checkpoint_wrapper(layer, offload_to_cpu=cfg.offload_activations)
    wrapped_layer: nn.Module = fsdp_wrap(layer, min_num_params=0 if checkpointed else cfg.min_params_to_wrap)
    return wrapped_layer


def number(layers: nn.ModuleList, encoding: Composition, path: str) -> None:
    """Give each layer its index and its way of computing attention (--pos-enc-path).

    Indices begin at 1. The indices are set here, because `forward` cannot count layers if LayerDrop skips some of them.
    """
    for index in range(len(layers)):
        attention: PosEncSelfAttention = layers._modules[str(index)].self_attn  # type: ignore[assignment]
        attention.use(encoding, index + 1)
        attention.path = path


def tensors_of(layer: Any, per_layer: list[dict[str, dict[str, Tensor]]]) -> dict[str, Tensor]:
    """Return the tensors that `per_layer` holds for this layer as keyword arguments, such as `shaw.weight`."""
    by_encoding = per_layer[layer.self_attn.view.index - 1]
    return {f"{name}.{key}": tensor for name, own in by_encoding.items() for key, tensor in own.items()}


def _by_encoding(tensors: dict[str, Tensor]) -> dict[str, dict[str, Tensor]]:
    """Return the keyword arguments that `tensors_of` made by the names of the encodings."""
    by_encoding: dict[str, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        encoding, _, key = name.partition(".")
        by_encoding.setdefault(encoding, {})[key] = tensor
    return by_encoding
