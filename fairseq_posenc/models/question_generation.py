"""`posenc_question_generation`: an encoder of BERT's kind and a copying decoder with any causal position encoding.

Legend: B batch, S source tokens, T target tokens, d width, V dictionary, E >= V dictionary and unknown words.
"""

from __future__ import annotations

from typing import Any

import torch
from fairseq.models import FairseqEncoderDecoderModel, register_model
from fairseq.models.transformer import Embedding
from torch import Tensor, nn

from . import copying
from .config import register_sizes
from .copying import Copied, Copier, known
from .decoder import PosEncDecoder
from .masked_lm import SentenceEncoder, set_epsilon
from .presets import QUESTION_GENERATION
from .question_generation_config import QuestionGenerationConfig, check, complete, decoder_config, encoder_config
from .weight_decay import refuse_without_effect

Output = tuple[Tensor, dict[str, Any]]


class SourceEncoder(SentenceEncoder):
    """Reads unknown words as <unk> and remembers which they were."""

    length_flag = "--max-source-positions"
    #: its numbers stay: it gives no gradients and drops nothing out
    frozen = False

    def forward(  # type: ignore[override]
        self,
        src_tokens: Tensor,
        src_lengths: Tensor | None = None,
        src_segments: Tensor | None = None,
        return_all_hiddens: bool = False,
    ) -> dict[str, Any]:
        """[B, S] -> fairseq's encoder_out dictionary (states are [S, B, d]), with `src_tokens` and `size`, E.

        Args:
            src_tokens: V + k is the k-th word of a sample that the dictionary does not have.
            src_segments: [B, S] int64; unset: what stands behind the first </s> is segment 1.
        """
        size = len(self.embed_tokens.weight)
        read = known(src_tokens, size, self.dictionary.unk())
        with torch.set_grad_enabled(torch.is_grad_enabled() and not self.frozen):
            found = super().forward(read, return_all_hiddens=return_all_hiddens, segments=src_segments)
        return {**found, "src_tokens": [src_tokens], "size": [max(size, int(src_tokens.max()) + 1)]}

    def train(self, mode: bool = True) -> SourceEncoder:
        """Set the mode; a frozen encoder stays in evaluation."""
        made: SourceEncoder = super().train(mode and not self.frozen)
        return made

    def reorder_encoder_out(self, encoder_out: dict[str, Any], new_order: Tensor) -> dict[str, Any]:
        """Follow the beams; E stays that of the whole batch, though samples leave it."""
        return {**super().reorder_encoder_out(encoder_out, new_order), "size": encoder_out["size"]}


class CopyDecoder(PosEncDecoder):
    """The stack, whose output is logits of the dictionary and what is copied (`copied` of the extras)."""

    def __init__(self, cfg: Any, dictionary: Any, embed_tokens: nn.Embedding, *, copy: bool) -> None:
        super().__init__(cfg, dictionary, embed_tokens)
        self.copier = Copier(cfg.decoder.embed_dim) if copy else None

    def forward(
        self,
        prev_output_tokens: Tensor,
        encoder_out: dict[str, Any] | None = None,
        incremental_state: dict[str, Any] | None = None,
        features_only: bool = False,
        src_lengths: Tensor | None = None,
        return_all_hiddens: bool = False,
    ) -> Output:
        """[B, T] tokens -> logits [B, Q, V] of the new ones, and fairseq's extras with `copied`."""
        if encoder_out is None:
            raise ValueError("This decoder attends to a source and copies from it: pass the encoder's `encoder_out`.")
        read = known(prev_output_tokens, len(self.embed_tokens.weight), self.dictionary.unk())
        x, extra = self.extract_features_scriptable(read, encoder_out, incremental_state)
        if features_only:
            return x, extra
        return self.output_layer(x), {**extra, "copied": self._copied(x, encoder_out)}

    def _copied(self, x: Tensor, encoder_out: dict[str, Any]) -> Copied | None:
        if self.copier is None:
            return None
        encoded = encoder_out["encoder_out"][0].transpose(0, 1)  # [S, B, d] -> [B, S, d]
        padding, source = encoder_out["encoder_padding_mask"][0], encoder_out["src_tokens"][0]
        found: Copied = self.copier(x, encoded, self._no_words(source) | padding, source, encoder_out["size"][0])
        return found

    def _no_words(self, source: Tensor) -> Tensor:
        """Return [B, S] bool, true at <s> and </s>: ends are not copied. The paper's questions have their own end."""
        marks = source.eq(self.dictionary.bos()) | source.eq(self.dictionary.eos()) | source.eq(self.dictionary.pad())
        return marks & ~marks.all(1, keepdim=True)  # of an empty source they are all that is there

    def get_normalized_probs(self, net_output: Output, log_probs: bool, sample: Any = None) -> Tensor:
        """Return probabilities of the dictionary and of unknown words, or their logs: [B, T, E], at least float32."""
        made = copying.log_probs(*_parts(net_output))
        return made if log_probs else made.exp()


def _parts(net_output: Output) -> tuple[Tensor, Copied | None]:
    """Return logits and what is copied; fairseq's generator without a cache keeps the last token's logits only."""
    logits, copied = net_output[0], net_output[1]["copied"]
    return logits, None if copied is None else copied.last(logits.shape[1])


@register_model("posenc_question_generation", dataclass=QuestionGenerationConfig)
class PosEncQuestionGeneration(FairseqEncoderDecoderModel):
    """Question generation of the LFHC/GCDF paper (METHODS.md 6.C): only the decoder's self-attention takes `--pos-enc`.

    Both stacks and the output have one embedding.
    """

    encoder: SourceEncoder
    decoder: CopyDecoder

    @classmethod
    def build_model(cls, cfg: Any, task: Any) -> PosEncQuestionGeneration:
        """Build the model; `--task posenc_question_generation` fills in --encoder-from's sizes and weights.

        Raises:
            ValueError: unknown encodings or options, encodings asked for what they cannot do, options without effect.
        """
        values = complete(cfg)
        check(values)
        if values["encoder_from"] and not getattr(task, "starts_encoders", False):
            raise ValueError("--encoder-from needs --task posenc_question_generation")
        dictionary = task.source_dictionary
        embedding = Embedding(len(dictionary), values["encoder_embed_dim"], dictionary.pad())
        config = decoder_config(values)
        encoder = SourceEncoder(encoder_config(values), dictionary, embedding)
        set_epsilon(encoder, values["encoder_layer_norm_eps"])
        model = cls(encoder, CopyDecoder(config, dictionary, embedding, copy=not values["no_copy"]))
        refuse_without_effect(config, encoder, model.decoder)
        if values["freeze_encoder"]:
            model.freeze()
        return model

    @property
    def copies(self) -> bool:
        """Return whether words are copied from the source."""
        return self.decoder.copier is not None

    def freeze(self) -> None:
        """Keep encoder and embedding as they are."""
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
        """[B, S] and [B, T] tokens -> logits [B, T, V], and fairseq's extras with `copied`."""
        encoded = self.encoder(src_tokens, src_lengths, src_segments)
        found: Output = self.decoder(prev_output_tokens, encoder_out=encoded, **options)
        return found

    def get_targets(self, sample: dict[str, Any], net_output: Output) -> Tensor:
        """Return targets [B, T]; without copying, words that the dictionary does not have are <unk>."""
        target: Tensor = sample["target"]
        return target if self.copies else known(target, net_output[0].shape[-1], self.decoder.dictionary.unk())

    def target_log_probs(self, net_output: Output, target: Tensor) -> Tensor:
        """Return `get_normalized_probs` at the targets [B, T], without a number for each word: [B, T]."""
        return copying.target_log_probs(*_parts(net_output), target)


register_sizes("posenc_question_generation", "posenc_question_generation_", QUESTION_GENERATION)
