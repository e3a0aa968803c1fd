"""Define `posenc_roberta`, fairseq's RoBERTa with any position encoding; the presets also include BERT."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from fairseq.models import BaseFairseqModel, FairseqEncoder, register_model
from fairseq.models.roberta import RobertaEncoder, RobertaModel
from torch import Tensor, nn

from ..core.refusal import InputError
from ..data.documents import SEQUENCE, of_tokens
from .config import register_sizes, spell_out
from .documents import check_masked_language_model
from .encoder import PosEncEncoder
from .masked_lm_config import PretrainingPosEncConfig, stack_config
from .span_head import WithSpanHead
from .weight_decay import refuse_without_effect


class SentenceEncoder(PosEncEncoder):
    """Encode samples that begin with <s>, which serves as [CLS]; samples may be pairs of sentences."""

    gives_segments = True
    has_cls = True
    length_flag = "--max-positions"

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Tensor | None = None,
        return_all_hiddens: bool = False,
        token_embeddings: Tensor | None = None,
        *,
        unmasked: Tensor | None = None,
        segments: Tensor | None = None,
        documents: Tensor | None = None,
    ) -> dict[str, list[Tensor]]:
        """Encode tokens [B, T] into fairseq's encoder_out dictionary, whose states are [T, B, d].

        Args:
            unmasked: Tokens before masking, [B, T], from which sentence boundaries are read. Default: `src_tokens`.
            segments: Segment of each token, [B, T] int64; some encodings ignore segments. Default: the result of
                `pair_segments`.
            documents: Document to which each token belongs, [B, T] int64. Default: all tokens see each other.
        """
        seen = src_tokens if unmasked is None else unmasked
        if not self.pos.needs_segments:
            segments = None
        elif segments is None:
            segments = pair_segments(seen, self.dictionary.eos(), self.padding_idx)
        where = self.pos.positions(
            seen, pad=self.padding_idx, boundaries=self.boundaries, segments=segments, documents=documents
        )
        return self.encode(src_tokens, where, return_all_hiddens, token_embeddings)


def pair_segments(tokens: Tensor, eos: int, pad: int) -> Tensor:
    """Return the segment of each token: 1 after the first </s>, otherwise 0.

    In RoBERTa's pairs, `<s> a </s></s> b </s>`, segment 1 begins with the second </s>. In BERT's pairs, `<s> a </s> b
    </s>`, segment 1 begins with b. Single sentences and padding are segment 0.

    Args:
        tokens: [B, T] int64.
    Returns:
        [B, T] int64.
    """
    ended = nn.functional.pad(tokens.eq(eos)[:, :-1], (1, 0)).cumsum(1).clamp(max=1)
    return ended.masked_fill(tokens.eq(pad), 0)


class PosEncRobertaEncoder(RobertaEncoder):
    """Run RoBERTa's encoder with the head of the masked language model."""

    def __init__(self, cfg: Any, dictionary: Any, max_positions: int) -> None:
        FairseqEncoder.__init__(self, dictionary)
        self.args = cfg
        embed_tokens = self.build_embedding(len(dictionary), cfg.encoder_embed_dim, dictionary.pad())
        self.sentence_encoder = SentenceEncoder(stack_config(cfg, max_positions), dictionary, embed_tokens)
        self.lm_head = self.build_lm_head(
            embed_dim=cfg.encoder_embed_dim,
            output_dim=len(dictionary),
            activation_fn=cfg.activation_fn,
            weight=None if cfg.untie_weights_roberta else embed_tokens.weight,
        )

    def forward(
        self,
        src_tokens: Tensor,
        features_only: bool = False,
        return_all_hiddens: bool = False,
        masked_tokens: Tensor | None = None,
        unmasked_tokens: Tensor | None = None,
        segments: Tensor | None = None,
        **unused: Any,
    ) -> tuple[Tensor, dict[str, Any]]:
        """Return logits [B, T, vocabulary] or features [B, T, d] of tokens [B, T], and fairseq's additional outputs.

        With `masked_tokens`, logits are computed at the masked tokens only.

        Args:
            unmasked_tokens: Tokens before masking, [B, T], from --task posenc_masked_lm; masks may hide the ends of
                sentences. With --attend-within, masked language modelling finds documents or lines in the unmasked
                tokens. For features, all tokens attend to each other, whatever the value of --attend-within.
            segments: Segment of each token, [B, T]. By default, masked language modelling uses one segment, and other
                tasks use the segments of sentence pairs.
        """
        pos = self.sentence_encoder.pos
        if not features_only:
            if pos.needs_boundaries and unmasked_tokens is None:
                raise InputError(
                    f"--pos-enc {pos.name} needs the tokens before masking. Use --task posenc_masked_lm, which "
                    "provides these tokens."
                )
            segments = torch.zeros_like(src_tokens) if segments is None else segments
        documents = None if features_only else self._documents(unmasked_tokens)
        encoded = self.sentence_encoder(
            src_tokens,
            return_all_hiddens=return_all_hiddens,
            unmasked=unmasked_tokens,
            segments=segments,
            documents=documents,
        )
        x = encoded["encoder_out"][0].transpose(0, 1)  # [T, B, d] -> [B, T, d]
        if not features_only:
            x = self.output_layer(x, masked_tokens=masked_tokens)
        return x, {"inner_states": encoded["encoder_states"] if return_all_hiddens else None}

    def _documents(self, unmasked_tokens: Tensor | None) -> Tensor | None:
        """Return the document or line of each token [B, T], or None if all tokens see each other."""
        within = self.sentence_encoder.attend_within
        if within == SEQUENCE:
            return None
        if unmasked_tokens is None:
            raise InputError(
                f"--attend-within {within} needs the tokens before masking (unmasked_tokens), which --task "
                "posenc_masked_lm gives. Add them to the input."
            )
        return of_tokens(unmasked_tokens, within, bos=self.dictionary.bos(), eos=self.dictionary.eos())

    def max_positions(self) -> int:
        """Return the length of the longest sequence for which the encoding is defined."""
        return self.sentence_encoder.max_positions()


@register_model("posenc_roberta", dataclass=PretrainingPosEncConfig)
class PosEncRoberta(WithSpanHead, RobertaModel):
    """Run fairseq's RoBERTa and its classification heads, with `--pos-enc` in self-attention."""

    # Add the flat options without defaults: the architecture sets its defaults first, then the dataclass.
    add_args: Any = classmethod(BaseFairseqModel.add_args.__func__)

    def apply(self, fn: Callable[[nn.Module], Any]) -> PosEncRoberta:
        """Apply a function to all modules, except on the meta device.

        Tensors on the meta device have no values, but fairseq's initialisation copies random numbers from the CPU.
        """
        return self if next(self.parameters()).is_meta else super().apply(fn)

    @classmethod
    def build_model(cls, cfg: Any, task: Any) -> PosEncRoberta:
        """Build the model from the flat options.

        Raises:
            ValueError: An encoding or option is unknown, or an encoding does not support an option.
        """
        within = str(getattr(cfg, "attend_within", SEQUENCE))  # older checkpoints do not have the option
        check_masked_language_model(within, task)
        longest = task.max_positions() if cfg.max_positions is None else cfg.max_positions
        model = cls(cfg, PosEncRobertaEncoder(cfg, task.source_dictionary, longest))
        model.encoder.sentence_encoder.use_documents(within)
        set_epsilon(model, cfg.layer_norm_eps)
        refuse_without_effect(cfg, model.encoder.sentence_encoder)
        spell_out(cfg)
        return model


def set_epsilon(model: Any, value: float) -> None:
    """Set the epsilon of all layer norms of a model."""
    for module in model.modules():
        if "LayerNorm" in type(module).__name__:  # the class may be torch's or apex's
            module.eps = value


register_sizes("posenc_roberta")
