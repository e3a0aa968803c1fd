"""Define the masked language model that `fairseq_posenc.load` returns: in plain torch, without fairseq.

Legend: B batch size, T tokens, d width, V vocabulary size.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..encodings import StackShape
from ..encodings.building import spelled_out
from ..positions import Positions
from ..stack import ACTIVATIONS, Norms, Stack


@dataclass(frozen=True)
class ModelConfig:
    """Hold all settings that are needed to build the model.

    Args:
        layers, dim, ffn, heads: Sizes of the model. max_length: Longest sequence in training, in tokens.
        vocabulary: Number of ids.
        pos_enc, pos_enc_args: The encoding and its options, as on the command line.
        activation: A name in `ACTIVATIONS`. layer_norm_eps, normalize_before, layernorm_embedding: See `Norms`.
        tied: Whether the head uses the embedding as its output matrix.
        dropout, attention_dropout: Dropout in training.
        bos, pad, eos, unk, mask: Ids of the special tokens. Each sample begins with bos, which serves as [CLS].
    """

    layers: int
    dim: int
    ffn: int
    heads: int
    max_length: int
    vocabulary: int
    pos_enc: str = "learned"
    pos_enc_args: str | None = None
    activation: str = "gelu"
    layer_norm_eps: float = 1e-5
    normalize_before: bool = False
    layernorm_embedding: bool = True
    tied: bool = True
    dropout: float = 0.1
    attention_dropout: float = 0.1
    bos: int = 0
    pad: int = 1
    eos: int = 2
    unk: int = 3
    mask: int | None = None

    def __post_init__(self) -> None:
        """Move options in brackets from `pos_enc` to `pos_enc_args`, so that both spellings give equal settings."""
        name, args = spelled_out(self.pos_enc, self.pos_enc_args, "pos_enc", "pos_enc_args")
        object.__setattr__(self, "pos_enc", name)  # because the class is frozen
        object.__setattr__(self, "pos_enc_args", args)

    @property
    def stack(self) -> StackShape:
        """Return the shape of the encoder."""
        return StackShape(
            self.layers,
            self.heads,
            self.dim,
            self.max_length,
            length_flag="max_length",
            name_flag="pos_enc",
            args_flag="pos_enc_args",
            has_cls=True,
        )

    @property
    def has_segments(self) -> bool:
        """Return whether the encoding distinguishes the two texts of a sample."""
        return any(name.startswith("segments") for name in self.pos_enc.split("+"))


class Head(nn.Module):
    """Compute the logits [..., V] of a masked language model from the encoder's outputs [..., d].

    The output matrix of a tied model is the embedding, which the head does not own.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.dim, config.dim)
        self.layer_norm = nn.LayerNorm(config.dim, eps=config.layer_norm_eps)
        self.weight = None if config.tied else nn.Parameter(torch.empty(config.vocabulary, config.dim))
        self.bias = nn.Parameter(torch.zeros(config.vocabulary))
        self.activation = ACTIVATIONS[config.activation]

    def forward(self, x: Tensor, embedding: Tensor) -> Tensor:
        weight = embedding if self.weight is None else self.weight
        return F.linear(self.layer_norm(self.activation(self.dense(x))), weight, self.bias)


class MaskedLM(nn.Module):
    """Combine embedding, encoder and head into a masked language model.

    The outputs equal those of the fairseq model from which the weights were converted.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.embed_tokens = nn.Embedding(config.vocabulary, config.dim, config.pad)
        self.encoder = Stack(
            config.pos_enc,
            config.pos_enc_args,
            config.stack,
            ffn=config.ffn,
            dropout=config.dropout,
            attention_dropout=config.attention_dropout,
            norms=Norms(config.normalize_before, config.layernorm_embedding, config.layer_norm_eps),
            activation=config.activation,
        )
        self.lm_head = Head(config)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the weights from N(0, 0.02), as in BERT. The encoding keeps its own initial values."""
        for module in self.modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                nn.init.normal_(module.weight, std=0.02)
            if isinstance(module, nn.Linear):
                nn.init.zeros_(module.bias)
        if self.lm_head.weight is not None:
            nn.init.normal_(self.lm_head.weight, std=0.02)
        with torch.no_grad():
            self.embed_tokens.weight[self.config.pad] = 0

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, token_type_ids: Tensor | None = None
    ) -> Tensor:
        """Return logits.

        Args:
            input_ids: [B, T] int64.
            attention_mask: [B, T], 0 at padding. By default, tokens with the padding id are padding.
            token_type_ids: Segments [B, T]. Default: all 0. An encoding that does not read segments accepts only 0.
        Returns:
            [B, T, V].
        Raises:
            ValueError: There is a second segment, but the encoding does not read segments.
        """
        features = self.features(input_ids, attention_mask, token_type_ids)
        logits: Tensor = self.lm_head(features, self.embed_tokens.weight)
        return logits

    def features(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, token_type_ids: Tensor | None = None
    ) -> Tensor:
        """Return the output of the encoder, [B, T, d]."""
        where = self.positions(input_ids, attention_mask, token_type_ids)
        x, _ = self.encoder(self.embed_tokens(input_ids), where)
        return x

    def positions(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, token_type_ids: Tensor | None = None
    ) -> Positions:
        """Return the positions of the tokens, as the encoder reads them."""
        config = self.config
        tokens = input_ids
        if attention_mask is not None:  # a padding id that the mask does not hide is an ordinary token
            tokens = torch.where(input_ids.eq(config.pad), config.unk, input_ids)
            tokens = tokens.masked_fill(attention_mask.eq(0), config.pad)
        segments = self._segments(input_ids, token_type_ids)
        return self.encoder.positions(tokens, pad=config.pad, boundaries=(config.bos, config.eos), segments=segments)

    def _segments(self, input_ids: Tensor, token_type_ids: Tensor | None) -> Tensor | None:
        """Return the segments [B, T] for the encoding; None if the encoding does not read segments."""
        if self.encoder.pos.needs_segments:
            return torch.zeros_like(input_ids) if token_type_ids is None else token_type_ids
        if token_type_ids is not None and bool(token_type_ids.any()):
            raise ValueError(
                f"token_type_ids are not all 0, but the encoding of this model, {self.config.pos_enc}, does not read "
                "segments. Leave token_type_ids out, or load a model whose pos_enc has segments-input or segments."
            )
        return None
