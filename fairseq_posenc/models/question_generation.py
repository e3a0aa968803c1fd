"""Define `posenc_question_generation`: a BERT-like encoder and a copying decoder with any causal encoding.

Legend: B batch, S source tokens, T target tokens, d width, V symbols of the dictionary,
E >= V symbols including unknown words.
"""

from __future__ import annotations

from typing import Any

import torch
from fairseq.models import FairseqEncoderDecoderModel, register_model
from fairseq.models.transformer import Embedding
from torch import Tensor, nn

from ..core.refusal import InputError
from . import copying
from .config import register_sizes, spell_out
from .copying import MECHANISMS, Copied, known
from .decoder import PosEncDecoder
from .masked_lm import SentenceEncoder, set_epsilon
from .question_generation_config import QuestionGenerationConfig, check, complete, decoder_config, encoder_config
from .weight_decay import refuse_without_effect

Output = tuple[Tensor, dict[str, Any]]


class SourceEncoder(SentenceEncoder):
    """Encode sources; read unknown words as <unk>, but keep their ids for copying."""

    length_flag = "--max-source-positions"
    #: a frozen encoder computes no gradients and uses no dropout
    frozen = False

    def forward(  # type: ignore[override]
        self,
        src_tokens: Tensor,
        src_lengths: Tensor | None = None,
        src_segments: Tensor | None = None,
        return_all_hiddens: bool = False,
    ) -> dict[str, Any]:
        """Encode [B, S] tokens into fairseq's encoder_out dictionary, whose states are [S, B, d].

        The dictionary also contains `src_tokens` and `size`, which is E.

        Args:
            src_tokens: Token ids; V + k is the k-th unknown word of a sample.
            src_segments: Segment of each token, [B, S] int64. By default, tokens after the first </s> are segment 1.
        """
        size = len(self.embed_tokens.weight)
        read = known(src_tokens, size, self.dictionary.unk())
        with torch.set_grad_enabled(torch.is_grad_enabled() and not self.frozen):
            encoded = super().forward(read, return_all_hiddens=return_all_hiddens, segments=src_segments)
        return {**encoded, "src_tokens": [src_tokens], "size": [max(size, int(src_tokens.max()) + 1)]}

    def train(self, mode: bool = True) -> SourceEncoder:
        """Set training or evaluation mode; a frozen encoder stays in evaluation mode."""
        encoder: SourceEncoder = super().train(mode and not self.frozen)
        return encoder

    def reorder_encoder_out(self, encoder_out: dict[str, Any], new_order: Tensor) -> dict[str, Any]:
        """Reorder samples as beam search does. E, the number of words, does not change when samples are removed."""
        return {**super().reorder_encoder_out(encoder_out, new_order), "size": encoder_out["size"]}


class CopyDecoder(PosEncDecoder):
    """Compute the logits of the dictionary's words, and the copy attention (`copied` in the additional outputs)."""

    def __init__(self, cfg: Any, dictionary: Any, embed_tokens: nn.Embedding, *, mechanism: str) -> None:
        super().__init__(cfg, dictionary, embed_tokens)
        self.copier = MECHANISMS[mechanism](cfg.decoder.embed_dim) if mechanism in MECHANISMS else None

    def forward(
        self,
        prev_output_tokens: Tensor,
        encoder_out: dict[str, Any] | None = None,
        incremental_state: dict[str, Any] | None = None,
        features_only: bool = False,
        src_lengths: Tensor | None = None,
        return_all_hiddens: bool = False,
    ) -> Output:
        """Return logits [B, Q, V] of the last Q of T tokens, and fairseq's additional outputs with `copied`."""
        if encoder_out is None:
            raise ValueError("This decoder attends to a source and copies from it: pass the encoder's `encoder_out`.")
        read = known(prev_output_tokens, len(self.embed_tokens.weight), self.dictionary.unk())
        x, extra = self.extract_features_scriptable(read, encoder_out, incremental_state)
        if features_only:
            return x, extra
        logits = self.output_layer(x)
        return logits, {**extra, "copied": self._copied(x, logits, encoder_out)}

    def _copied(self, x: Tensor, logits: Tensor, encoder_out: dict[str, Any]) -> Copied | None:
        if self.copier is None:
            return None
        encoded = encoder_out["encoder_out"][0].transpose(0, 1)  # [S, B, d] -> [B, S, d]
        padding, source = encoder_out["encoder_padding_mask"][0], encoder_out["src_tokens"][0]
        uncopied, size = self._no_words(source) | padding, encoder_out["size"][0]
        copied: Copied = self.copier(x, logits, encoded, uncopied, source, size)
        return copied

    def _no_words(self, source: Tensor) -> Tensor:
        """Return [B, S] bool, true at <s>, </s> and padding, which are not copied.

        As in the LFHC/GCDF paper, the token that ends a question does not occur in the source, so it cannot be copied.
        """
        marks = source.eq(self.dictionary.bos()) | source.eq(self.dictionary.eos()) | source.eq(self.dictionary.pad())
        return marks & ~marks.all(1, keepdim=True)  # the copy attention of an empty source needs a token

    def get_normalized_probs(self, net_output: Output, log_probs: bool, sample: Any = None) -> Tensor:
        """Return probabilities of all E words or their logs, [B, T, E], in at least float32."""
        log_p = copying.log_probs(*_parts(net_output))
        return log_p if log_probs else log_p.exp()


def _parts(net_output: Output) -> tuple[Tensor, Copied | None]:
    """Return the logits, and the copy attention of the tokens that have logits.

    Without a cache, fairseq's generator keeps the logits of the last token only.
    """
    logits, copied = net_output[0], net_output[1]["copied"]
    return logits, None if copied is None else copied.last(logits.shape[1])


@register_model("posenc_question_generation", dataclass=QuestionGenerationConfig)
class PosEncQuestionGeneration(FairseqEncoderDecoderModel):
    """Generate questions with the model of the LFHC/GCDF paper (Qu et al. 2021).

    Only the decoder's self-attention uses `--pos-enc`. Encoder, decoder and output share one embedding.
    """

    encoder: SourceEncoder
    decoder: CopyDecoder

    @classmethod
    def build_model(cls, cfg: Any, task: Any) -> PosEncQuestionGeneration:
        """Build the model; with --encoder-from, `--task posenc_question_generation` sets the sizes and weights.

        Raises:
            ValueError: An encoding or option is unknown or has no effect, or an encoding does not support an
                option.
        """
        values = complete(cfg)
        check(values)
        if values["encoder_from"] and not getattr(task, "starts_encoders", False):
            raise InputError("--encoder-from needs --task posenc_question_generation. Give both flags or neither.")
        dictionary = task.source_dictionary
        embedding = Embedding(len(dictionary), values["encoder_embed_dim"], dictionary.pad())
        config = decoder_config(values)
        encoder = SourceEncoder(encoder_config(values), dictionary, embedding)
        set_epsilon(encoder, values["encoder_layer_norm_eps"])
        model = cls(encoder, CopyDecoder(config, dictionary, embedding, mechanism=str(values["copy_mechanism"])))
        refuse_without_effect(config, encoder, model.decoder)
        if values["freeze_encoder"]:
            model.freeze()
        spell_out(cfg)
        return model

    @property
    def copies(self) -> bool:
        """Return whether the model can copy words from the source."""
        return self.decoder.copier is not None

    def freeze(self) -> None:
        """Freeze the encoder and the embedding."""
        self.encoder.requires_grad_(False)
        self.encoder.frozen = True
        self.encoder.eval()

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Tensor | None,
        prev_output_tokens: Tensor,
        src_segments: Tensor | None = None,
        **options: Any,
    ) -> Output:
        """Return logits [B, T, V] for sources [B, S] and targets [B, T], and additional outputs."""
        encoded = self.encoder(src_tokens, src_lengths, src_segments)
        output: Output = self.decoder(prev_output_tokens, encoder_out=encoded, **options)
        return output

    def get_targets(self, sample: dict[str, Any], net_output: Output) -> Tensor:
        """Return targets [B, T]; if the model does not copy, unknown words become <unk>."""
        target: Tensor = sample["target"]
        return target if self.copies else known(target, net_output[0].shape[-1], self.decoder.dictionary.unk())

    def target_log_probs(self, net_output: Output, target: Tensor) -> Tensor:
        """Return the log-probabilities of the targets, [B, T], without computing the probabilities of all words."""
        return copying.target_log_probs(*_parts(net_output), target)


register_sizes("posenc_question_generation")
