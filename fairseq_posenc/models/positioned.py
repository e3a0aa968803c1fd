"""Provide the base class of encoder and decoder, which builds the position encoding of the stack."""

from __future__ import annotations

import logging
from typing import Any

from torch import nn

from ..core.refusal import InputError
from ..data.documents import SEQUENCE
from ..encodings import Composition, StackShape, build
from ..encodings.segments import missing
from .attention_log import log_attention
from .config import encoding_of
from .layers import number
from .weight_decay import Watch, spare

logger = logging.getLogger(__name__)

#: fairseq's value for a model without a length limit; the task's --max-*-positions still applies
UNLIMITED = int(1e5)


class Positioned:
    """Give a fairseq encoder or decoder the position encoding `self.pos` in its self-attention."""

    pos: Composition
    no_decay: Watch | None
    layers: nn.ModuleList
    dictionary: Any
    #: the positions include the segment of each token
    gives_segments = False
    #: each sample begins with [CLS]
    has_cls = False
    #: part of a sequence to which the attention of a token is limited (--attend-within)
    attend_within = SEQUENCE

    def use_positions(self, cfg: Any, side: str, dim: int, max_length: int, length_flag: str) -> None:
        """Build the encoding of this `side` (encoder or decoder) and pass it to the layers."""
        chosen, sizes, count = encoding_of(cfg, side), getattr(cfg, side), cfg.pos_enc_random
        shape = StackShape(
            layers=sizes.layers,
            heads=sizes.attention_heads,
            dim=dim,
            max_length=max_length if count is None else count,
            causal=side == "decoder",
            length_flag=length_flag if count is None else "--pos-enc-random",
            name_flag=chosen.name_flag,
            args_flag=chosen.args_flag,
            has_cls=self.has_cls,
            drawn=None if count is None else max_length,
            drawn_flag=length_flag,
        )
        self.pos = build(chosen.name, chosen.args, shape)
        needing = [name for name, member in self.pos.members.items() if member.needs_segments]
        if needing and not self.gives_segments:  # raise before any data is read
            raise InputError(missing(needing[0], chosen.name_flag))
        number(self.layers, self.pos, str(cfg.pos_enc_path))
        self.no_decay = spare(self.pos) if cfg.pos_enc_no_decay else None
        if cfg.pos_enc_log_interval is not None:
            log_attention(cfg.pos_enc_log_interval)
        parameters = sum(p.numel() for p in self.pos.parameters())
        logger.info("The %s has the position encoding %s with %d parameters.", side, self.pos, parameters)

    def use_documents(self, within: str) -> None:
        """Limit the attention of each token to its document or line; raise ValueError if the encoding cannot do so."""
        self.attend_within = within
        if within != SEQUENCE:
            try:
                self.pos.check_documents()
            except InputError as error:
                raise InputError(f"--attend-within {within}: {error}") from None

    @property
    def boundaries(self) -> tuple[int, ...]:
        """Return the ids of the symbols that begin or end sentences: <s> and </s>."""
        return self.dictionary.bos(), self.dictionary.eos()

    def max_positions(self) -> int:
        """Return the limit of the encoding or, with --pos-enc-random, the maximum length in the model's options."""
        if self.pos.stack.drawn is not None:
            return self.pos.stack.drawn
        return UNLIMITED if self.pos.limit is None else self.pos.limit
