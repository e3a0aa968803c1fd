"""Define the language model that `fairseq_posenc.load` returns: in plain torch, without fairseq.

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
from ..stack import Norms, Stack


@dataclass(frozen=True)
class CausalConfig:
    """Hold all settings that are needed to build the model.

    Args:
        layers, dim, ffn, heads: Sizes of the model. max_length: Longest sequence in training, in tokens, with memory.
        vocabulary: Number of ids.
        pos_enc, pos_enc_args: The encoding and its options, as on the command line.
        activation: A name in `stack.ACTIVATIONS`. normalize_before, layernorm_embedding: See `stack.Norms`.
        attention_bias: Whether the projections of self-attention have biases.
        tied: Whether the embedding is the output matrix.
        scale: Factor of the embeddings.
        cutoffs: End of each frequency band of an adaptive softmax, without the last one; empty for a plain softmax.
        attend_within: Tokens to which a token attends: those of the sequence, of its `document` or of its `line`; see
            `data/documents.py`.
        dropout, attention_dropout: Dropout in training.
        bos, pad, eos, unk: Ids of the special tokens. first: Id of the token before each text, eos or bos.
    """

    layers: int
    dim: int
    ffn: int
    heads: int
    max_length: int
    vocabulary: int
    pos_enc: str = "sinusoidal"
    pos_enc_args: str | None = None
    activation: str = "relu"
    normalize_before: bool = False
    layernorm_embedding: bool = False
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
    first: int = 2

    def __post_init__(self) -> None:
        """Move options in brackets from `pos_enc` to `pos_enc_args`, so that both spellings give equal settings."""
        name, args = spelled_out(self.pos_enc, self.pos_enc_args, "pos_enc", "pos_enc_args")
        object.__setattr__(self, "pos_enc", name)  # because the class is frozen
        object.__setattr__(self, "pos_enc_args", args)

    @property
    def stack(self) -> StackShape:
        """Return the shape of the decoder."""
        return StackShape(
            self.layers,
            self.heads,
            self.dim,
            self.max_length,
            causal=True,
            length_flag="max_length",
            name_flag="pos_enc",
            args_flag="pos_enc_args",
        )


class Past:
    """Hold the tokens that a model has read, and the keys and values of each layer."""

    def __init__(self, layers: int) -> None:
        self.layers = [KeyValueCache() for _ in range(layers)]
        #: Tokens of all columns, [B, K]; padding has the padding id. None before the first token.
        self.tokens: Tensor | None = None

    @property
    def length(self) -> int:
        """Return the number of tokens that were read in each sample."""
        return 0 if self.tokens is None else self.tokens.shape[1]

    def append(self, tokens: Tensor) -> Tensor:
        """Add new tokens [B, T] and return the tokens of all columns."""
        self.tokens = tokens if self.tokens is None else torch.cat([self.tokens, tokens], 1)
        return self.tokens

    def reorder(self, order: Tensor) -> None:
        """Select and repeat the samples at the indices `order`, [B'] int64, as beam search requests."""
        if self.tokens is not None:
            self.tokens = self.tokens.index_select(0, order)
            for layer in self.layers:
                layer.reorder(order)


class Output(nn.Module):
    """Compute the logits [..., V] from the decoder's outputs [..., d].

    With an adaptive softmax, the logits are log-probabilities. The output matrix of a tied model is the embedding.
    """

    def __init__(self, config: CausalConfig) -> None:
        super().__init__()
        self.config = config
        size = (config.vocabulary, config.dim)
        self.weight = None if config.tied else nn.Parameter(torch.empty(size).normal_(std=config.dim**-0.5))
        bands = len(config.cutoffs)
        self.bias = nn.Parameter(torch.zeros(config.vocabulary)) if bands else None
        self.band_weight = nn.Parameter(torch.empty(bands, config.dim).normal_(std=config.dim**-0.5)) if bands else None
        self.band_bias = nn.Parameter(torch.zeros(bands)) if bands else None

    def forward(self, x: Tensor, embedding: Tensor) -> Tensor:
        logits = F.linear(x, embedding if self.weight is None else self.weight, self.bias)
        if self.band_weight is None:
            return logits
        return in_bands(logits.float(), F.linear(x, self.band_weight, self.band_bias).float(), self.config.cutoffs)


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


class CausalLM(nn.Module):
    """Combine embedding, decoder and output into a language model.

    The outputs equal those of the fairseq model from which the weights were converted, if that model reads each text
    without memory.
    """

    def __init__(self, config: CausalConfig) -> None:
        super().__init__()
        self.config = config
        self.embed_tokens = nn.Embedding(config.vocabulary, config.dim, config.pad)
        self.decoder = Stack(
            config.pos_enc,
            config.pos_enc_args,
            config.stack,
            ffn=config.ffn,
            dropout=config.dropout,
            attention_dropout=config.attention_dropout,
            norms=Norms(config.normalize_before, config.layernorm_embedding),
            activation=config.activation,
            attention_bias=config.attention_bias,
        )
        self.lm_head = Output(config)

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None, past: Past | None = None) -> Tensor:
        """Return logits of the new tokens.

        Args:
            input_ids: New tokens, [B, T] int64.
            attention_mask: [B, T] or [B, K], 0 at padding. By default, tokens with the padding id are padding.
            past: Tokens that were read before, to which the new tokens are added.
        Returns:
            [B, T, V].
        Raises:
            ValueError: There are more columns than the encoding is defined for.
        """
        tokens, cached = self._masked(input_ids, attention_mask), 0 if past is None else past.length
        columns = tokens if past is None or past.tokens is None else torch.cat([past.tokens, tokens], 1)
        where = self.decoder.positions(
            columns,
            pad=self.config.pad,
            boundaries=(self.config.bos, self.config.eos),
            cached=cached,
            documents=self._documents(columns),
        )
        x = self.config.scale * self.embed_tokens(input_ids)
        x, _ = self.decoder(x, where, caches=None if past is None else past.layers)
        if past is not None:
            past.append(tokens)
        logits: Tensor = self.lm_head(x, self.embed_tokens.weight)
        return logits

    def _masked(self, input_ids: Tensor, attention_mask: Tensor | None) -> Tensor:
        """Return the tokens that the encoding reads: given a mask, exactly the masked tokens have the padding id."""
        if attention_mask is None:
            return input_ids
        config = self.config
        tokens = torch.where(input_ids.eq(config.pad), config.unk, input_ids)
        return tokens.masked_fill(attention_mask[:, -input_ids.shape[1] :].eq(0), config.pad)

    def _documents(self, tokens: Tensor) -> Tensor | None:
        config = self.config
        if config.attend_within == SEQUENCE:
            return None
        return of_next_tokens(tokens, config.attend_within, bos=config.bos, eos=config.eos)
