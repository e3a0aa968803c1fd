"""Define `posenc_transformer_lm`, fairseq's decoder-only Transformer with any causal encoding and a memory."""

from __future__ import annotations

from typing import Any

from fairseq import options
from fairseq.models import FairseqLanguageModel, register_model
from fairseq.models.transformer import Embedding
from fairseq.modules import AdaptiveInput, AdaptiveSoftmax
from torch import Tensor, nn

from ..attention.memory import SegmentMemory
from ..core.refusal import InputError
from ..data.documents import SEQUENCE, of_next_tokens
from .adaptive import CountingAdaptiveSoftmax, OneMatrixSoftmax
from .config import register_sizes, spell_out
from .decoder import PosEncDecoder
from .documents import check_language_model, without_memory
from .lm_config import LMPosEncConfig, decoder_config
from .weight_decay import refuse_without_effect


class LMDecoder(PosEncDecoder):
    """Run a decoder without cross-attention, including its output softmax."""

    length_flag = "--tokens-per-sample"

    def __init__(self, cfg: Any, dictionary: Any, embed_tokens: Any) -> None:
        super().__init__(cfg, dictionary, embed_tokens, no_encoder_attn=True)
        self.use_documents(str(cfg.attend_within))

    def documents(self, tokens: Tensor) -> Tensor | None:
        if self.attend_within == SEQUENCE:
            return None
        return of_next_tokens(tokens, self.attend_within, bos=self.dictionary.bos(), eos=self.dictionary.eos())

    def build_output_projection(self, cfg: Any, dictionary: Any, embed_tokens: Any) -> None:
        if cfg.adaptive_softmax_cutoff is not None:  # otherwise fairseq looks for an output matrix in every checkpoint
            self.share_input_output_embed = False
        if cfg.adaptive_one_matrix:
            cutoffs, rate = _cutoffs(cfg.adaptive_softmax_cutoff), cfg.adaptive_softmax_dropout
            self.adaptive_softmax = OneMatrixSoftmax(embed_tokens.weight, cutoffs, dropout=rate, pad=dictionary.pad())
            return
        super().build_output_projection(cfg, dictionary, embed_tokens)
        if isinstance(self.adaptive_softmax, AdaptiveSoftmax):
            self.adaptive_softmax.__class__ = CountingAdaptiveSoftmax
            self.adaptive_softmax.pad = dictionary.pad()

    def forward(
        self,
        prev_output_tokens: Tensor,
        encoder_out: None = None,
        incremental_state: dict[str, Any] | None = None,
        features_only: bool = False,
        src_lengths: Tensor | None = None,
        return_all_hiddens: bool = False,
        memory: SegmentMemory | None = None,
    ) -> tuple[Tensor, dict[str, Any]]:
        """Return logits [B, T, V] of tokens [B, T], and fairseq's dictionary of additional outputs.

        With an adaptive softmax, return features [B, T, d] instead of logits.

        Args:
            incremental_state: Cache of earlier tokens; from its first use on, the cache also holds the memory.
            memory: States of earlier segments; without a cache, the states of this segment are added to the memory.
        """
        if memory is not None and memory.length and self.training and self.decoder_layerdrop:
            raise InputError(
                "--decoder-layerdrop skips layers, but the memory of earlier segments needs all layers. Leave "
                "--decoder-layerdrop out."
            )
        if memory is not None and memory.length and self.attend_within != SEQUENCE:
            raise InputError(
                f"{without_memory(self.attend_within)}. Use a memory of length 0, or a model that was trained with "
                "--attend-within sequence."
            )
        x, extra = self.extract_features_scriptable(prev_output_tokens, encoder_out, incremental_state, memory=memory)
        if memory is not None and incremental_state is None:
            memory.keep(extra["inner_states"][:-1])  # type: ignore[arg-type]
        return (x if features_only else self.output_layer(x)), extra


def _cutoffs(text: str) -> list[int]:
    cutoffs: list[int] = options.eval_str_list(text, type=int)
    return cutoffs


@register_model("posenc_transformer_lm", dataclass=LMPosEncConfig)
class PosEncTransformerLM(FairseqLanguageModel):
    """Run fairseq's `transformer_lm` with `--pos-enc` in its self-attention."""

    #: the decoder accepts a memory of earlier segments
    remembers = True

    @classmethod
    def build_model(cls, cfg: Any, task: Any) -> PosEncTransformerLM:
        """Build the model from the flat options.

        Raises:
            ValueError: An encoding or option is unknown, an encoding does not support an option, or a position flag of
                fairseq is set.
        """
        config = decoder_config(cfg)
        check_language_model(str(config.attend_within), task)
        dictionary = task.source_dictionary
        decoder = LMDecoder(config, task.target_dictionary, _embedding(config, dictionary))
        refuse_without_effect(config, decoder)
        model = cls(decoder)
        if config.init_std is not None:
            model.draw(config.init_std)
        spell_out(cfg)
        return model

    def draw(self, std: float) -> None:
        """Draw matrices from N(0, std) and set biases to zero.

        The encoding and layer norms keep their own initialisation.
        """
        drawn: set[int] = set()  # ids of the tensors that are drawn; a tied matrix is drawn once
        for module in self.modules():
            for name, parameter in module.named_parameters(recurse=False):
                if isinstance(module, nn.Linear | nn.Embedding | OneMatrixSoftmax) and id(parameter) not in drawn:
                    _ = nn.init.zeros_(parameter) if "bias" in name else nn.init.normal_(parameter, std=std)
                    drawn.add(id(parameter))
            if isinstance(module, nn.Embedding) and module.padding_idx is not None:
                nn.init.zeros_(module.weight[module.padding_idx])

    def forward(self, src_tokens: Tensor, **kwargs: Any) -> tuple[Tensor, dict[str, Any]]:
        """Run the decoder with the arguments of `LMDecoder.forward`."""
        output: tuple[Tensor, dict[str, Any]] = self.decoder(src_tokens, **kwargs)
        return output


def _embedding(config: Any, dictionary: Any) -> nn.Module:
    """Build fairseq's embedding; with --adaptive-input, the embedding has frequency bands with projections."""
    if not config.adaptive_input:
        embedding: nn.Module = Embedding(len(dictionary), config.decoder.input_dim, dictionary.pad())
        return embedding
    return AdaptiveInput(
        len(dictionary),
        dictionary.pad(),
        config.decoder.input_dim,
        config.adaptive_input_factor,
        config.decoder.embed_dim,
        _cutoffs(config.adaptive_input_cutoff),
        config.quant_noise.pq,
        config.quant_noise.pq_block_size,
    )


register_sizes("posenc_transformer_lm")
