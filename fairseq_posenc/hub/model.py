"""Define the model that `fairseq_posenc.load` returns: in plain torch, without fairseq.

Legend: B batch size, T new tokens, K columns including the cache, d width, V vocabulary size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..attention import KeyValueCache
from ..data.documents import SEQUENCE, of_next_tokens
from ..encodings import StackShape
from ..encodings.building import spelled_out
from ..positions import Positions
from ..stack import ACTIVATIONS, Norms, Stack


@dataclass(frozen=True)
class ModelConfig:
    """Hold all settings that are needed to build a masked language model or a (causal) language model.

    Args:
        layers, dim, ffn, heads: Sizes of the model. max_length: Longest sequence in training, in tokens, with memory.
        vocabulary: Number of ids.
        pos_enc, pos_enc_args: The encoding and its options, as on the command line.
        causal: Whether the model is a language model, in which a token attends to no later token.
        activation: A name in `ACTIVATIONS`. layer_norm_eps, normalize_before, layernorm_embedding: See `Norms`.
        attention_bias: Whether the projections of self-attention have biases.
        tied: Whether the embedding is the output matrix.
        scale: Factor of the embeddings.
        cutoffs: End of each frequency band of an adaptive softmax, without the last one; empty for a plain softmax.
        attend_within: Tokens to which a token attends: those of the sequence, of its `document` or of its `line`; see
            `data/documents.py`.
        dropout, attention_dropout: Dropout in training.
        bos, pad, eos, unk, mask: Ids of the special tokens. In a masked language model, each sample begins with bos,
            which serves as [CLS]. first: Id of the token before each text of a language model, eos or bos.
    """

    layers: int
    dim: int
    ffn: int
    heads: int
    max_length: int
    vocabulary: int
    pos_enc: str = "learned"
    pos_enc_args: str | None = None
    causal: bool = False
    activation: str = "gelu"
    layer_norm_eps: float = 1e-5
    normalize_before: bool = False
    layernorm_embedding: bool = True
    attention_bias: bool = True
    tied: bool = True
    scale: float = 1.0
    cutoffs: Sequence[int] = ()
    attend_within: str = SEQUENCE
    dropout: float = 0.1
    attention_dropout: float = 0.1
    bos: int = 0
    pad: int = 1
    eos: int = 2
    unk: int = 3
    mask: int | None = None
    first: int = 2

    def __post_init__(self) -> None:
        """Move options in brackets from `pos_enc` to `pos_enc_args`, so that both spellings give equal settings."""
        name, args = spelled_out(self.pos_enc, self.pos_enc_args, "pos_enc", "pos_enc_args")
        object.__setattr__(self, "pos_enc", name)  # because the class is frozen
        object.__setattr__(self, "pos_enc_args", args)

    @property
    def side(self) -> str:
        """Return the name of the stack of layers in weights and in fairseq's settings, encoder or decoder."""
        return "decoder" if self.causal else "encoder"

    @property
    def stack(self) -> StackShape:
        """Return the shape of the stack of layers."""
        return StackShape(
            self.layers,
            self.heads,
            self.dim,
            self.max_length,
            causal=self.causal,
            length_flag="max_length",
            name_flag="pos_enc",
            args_flag="pos_enc_args",
            has_cls=not self.causal,
        )

    @property
    def beginning(self) -> str | None:
        """Return the symbol that begins each text of a language model; None for a masked language model."""
        return ("<s>" if self.first == self.bos else "</s>") if self.causal else None

    @property
    def has_segments(self) -> bool:
        """Return whether the encoding distinguishes the two texts of a sample."""
        return any(name.startswith("segments") for name in self.pos_enc.split("+"))


class Past:
    """Hold the tokens that a language model has read, and the keys and values of each layer."""

    def __init__(self, layers: int) -> None:
        self.layers = [KeyValueCache() for _ in range(layers)]
        #: Tokens of all columns, [B, K]; padding has the padding id. None before the first token.
        self.tokens: Tensor | None = None

    @property
    def length(self) -> int:
        """Return the number of tokens that were read in each sample."""
        return 0 if self.tokens is None else self.tokens.shape[1]

    def reorder(self, order: Tensor) -> None:
        """Select and repeat the samples at the indices `order`, [B'] int64, as beam search requests."""
        if self.tokens is not None:
            self.tokens = self.tokens.index_select(0, order)
            for layer in self.layers:
                layer.reorder(order)


class MaskedHead(nn.Module):
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


class CausalHead(nn.Module):
    """Compute the logits [..., V] of a language model from the decoder's outputs [..., d].

    With an adaptive softmax, the logits are log-probabilities. The output matrix of a tied model is the embedding.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.cutoffs, bands = config.cutoffs, len(config.cutoffs)
        self.weight = None if config.tied else nn.Parameter(torch.empty(config.vocabulary, config.dim))
        self.bias = nn.Parameter(torch.zeros(config.vocabulary)) if bands else None
        self.band_weight = nn.Parameter(torch.zeros(bands, config.dim)) if bands else None
        self.band_bias = nn.Parameter(torch.zeros(bands)) if bands else None

    def forward(self, x: Tensor, embedding: Tensor) -> Tensor:
        logits = F.linear(x, embedding if self.weight is None else self.weight, self.bias)
        if self.band_weight is None:
            return logits
        return in_bands(logits.float(), F.linear(x, self.band_weight, self.band_bias).float(), self.cutoffs)


def in_bands(words: Tensor, bands: Tensor, cutoffs: Sequence[int]) -> Tensor:
    """Return the log-probabilities [..., V] of an adaptive softmax, p(w) = p(band) p(w | band).

    Args:
        words: Logits of all words, [..., V]. bands: Logits of each band after the first, [..., bands].
        cutoffs: End of each band but the last. One softmax covers the first band's words and all other bands.
    """
    first, *others = words.tensor_split(list(cutoffs), -1)
    head = torch.cat([first, bands], -1).log_softmax(-1)
    inside, of_bands = head.split([first.shape[-1], len(cutoffs)], -1)
    return torch.cat([inside, *(o.log_softmax(-1) + of_bands[..., i, None] for i, o in enumerate(others))], -1)


class LanguageModel(nn.Module):
    """Combine embedding, layers and head into a masked language model or, if `config.causal`, a language model.

    The outputs equal those of the model from which the weights were converted, if that model reads each text without
    memory. The layers are called `encoder` or `decoder`, as in fairseq.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.embed_tokens = nn.Embedding(config.vocabulary, config.dim, config.pad)
        layers = Stack(
            config.pos_enc,
            config.pos_enc_args,
            config.stack,
            ffn=config.ffn,
            dropout=config.dropout,
            attention_dropout=config.attention_dropout,
            norms=Norms(config.normalize_before, config.layernorm_embedding, config.layer_norm_eps),
            activation=config.activation,
            attention_bias=config.attention_bias,
        )
        self.add_module(config.side, layers)
        self.lm_head = (CausalHead if config.causal else MaskedHead)(config)
        self.reset_parameters()

    @property
    def layers(self) -> Stack:
        """Return the stack of layers, which is called `encoder` or `decoder` in the weights."""
        layers: Stack = getattr(self, self.config.side)
        return layers

    def reset_parameters(self) -> None:
        """Draw the weights from N(0, 0.02), as in BERT and GPT-2. The encoding keeps its own initial values."""
        for module in self.modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                nn.init.normal_(module.weight, std=0.02)
            if isinstance(module, nn.Linear) and module.bias is not None:
                nn.init.zeros_(module.bias)
        if self.lm_head.weight is not None:
            nn.init.normal_(self.lm_head.weight, std=0.02)
        with torch.no_grad():
            self.embed_tokens.weight[self.config.pad] = 0

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        past: Past | None = None,
    ) -> Tensor:
        """Return logits of the new tokens.

        Args:
            input_ids: New tokens, [B, T] int64.
            attention_mask: [B, T] or [B, K], 0 at padding. By default, tokens with the padding id are padding.
            token_type_ids: Segments [B, T]. Default: all 0. An encoding that does not read segments accepts only 0.
            past: Tokens that a language model read before, to which the new tokens are added.
        Returns:
            [B, T, V].
        Raises:
            ValueError: There is a second segment, but the encoding does not read segments; or there are more columns
                than the encoding is defined for.
        """
        columns = self._columns(input_ids, attention_mask, past)
        where = self.positions(columns, token_type_ids, cached=0 if past is None else past.length)
        x = self.config.scale * self.embed_tokens(input_ids)
        x, _ = self.layers(x, where, caches=None if past is None else past.layers)
        if past is not None:
            past.tokens = columns
        logits: Tensor = self.lm_head(x, self.embed_tokens.weight)
        return logits

    def positions(self, columns: Tensor, token_type_ids: Tensor | None = None, cached: int = 0) -> Positions:
        """Return the positions of the tokens, as the layers read them.

        Args:
            columns: Tokens [B, K], with the padding id at padding.
            token_type_ids: See `forward`.
            cached: Number of columns that the caches of the layers hold.
        """
        config, documents = self.config, None
        if config.attend_within != SEQUENCE:
            documents = of_next_tokens(columns, config.attend_within, bos=config.bos, eos=config.eos)
        return self.layers.positions(
            columns,
            pad=config.pad,
            boundaries=(config.bos, config.eos),
            cached=cached,
            segments=self._segments(columns, token_type_ids),
            documents=documents,
        )

    def _columns(self, input_ids: Tensor, attention_mask: Tensor | None, past: Past | None) -> Tensor:
        """Return all tokens [B, K]. If there is a mask, exactly the masked tokens have the padding id."""
        config = self.config
        if attention_mask is not None:  # a padding id that the mask does not hide is an ordinary token
            visible = torch.where(input_ids.eq(config.pad), config.unk, input_ids)
            input_ids = visible.masked_fill(attention_mask[:, -input_ids.shape[1] :].eq(0), config.pad)
        return input_ids if past is None or past.tokens is None else torch.cat([past.tokens, input_ids], 1)

    def _segments(self, columns: Tensor, token_type_ids: Tensor | None) -> Tensor | None:
        """Return the segments [B, T] for the encoding; None if the encoding does not read segments."""
        if self.layers.pos.needs_segments:
            return torch.zeros_like(columns) if token_type_ids is None else token_type_ids
        if token_type_ids is not None and bool(token_type_ids.any()):
            raise ValueError(
                f"token_type_ids are not all 0, but the encoding of this model, {self.config.pos_enc}, does not read "
                "segments. Leave token_type_ids out, or load a model whose pos_enc has segments-input or segments."
            )
        return None
