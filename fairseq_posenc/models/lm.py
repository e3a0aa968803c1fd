"""`posenc_transformer_lm`: fairseq's decoder-only Transformer with any causal position encoding, and with memory."""

from __future__ import annotations

from typing import Any

from fairseq import options
from fairseq.models import FairseqLanguageModel, register_model
from fairseq.models.transformer import Embedding
from fairseq.modules import AdaptiveInput, AdaptiveSoftmax
from torch import Tensor, nn

from ..attention.memory import SegmentMemory
from .adaptive import CountingAdaptiveSoftmax, OneMatrixSoftmax
from .config import register_sizes
from .decoder import PosEncDecoder
from .lm_config import LMPosEncConfig, decoder_config
from .presets import LM
from .weight_decay import refuse_without_effect


class LMDecoder(PosEncDecoder):
    """The stack and its softmax."""

    length_flag = "--tokens-per-sample"

    def __init__(self, cfg: Any, dictionary: Any, embed_tokens: Any) -> None:
        super().__init__(cfg, dictionary, embed_tokens, no_encoder_attn=True)

    def build_output_projection(self, cfg: Any, dictionary: Any, embed_tokens: Any) -> None:
        if cfg.adaptive_softmax_cutoff is not None:  # else fairseq looks for an output matrix in every checkpoint
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
        """[B, T] tokens -> logits [B, T, V] (features [B, T, d] with an adaptive softmax), and fairseq's extras.

        Args:
            incremental_state: the cache of what was seen; it holds the memory from the first call on.
            memory: what is remembered of the segments before; without a cache, it keeps this one's states.
        """
        if memory is not None and memory.length and self.training and self.decoder_layerdrop:
            raise ValueError("--decoder-layerdrop leaves out layers, whose states memory needs: leave it out")
        x, extra = self.extract_features_scriptable(prev_output_tokens, encoder_out, incremental_state, memory=memory)
        if memory is not None and incremental_state is None:
            memory.keep(extra["inner_states"][:-1])  # type: ignore[arg-type]
        return (x if features_only else self.output_layer(x)), extra


def _cutoffs(text: str) -> list[int]:
    found: list[int] = options.eval_str_list(text, type=int)
    return found


@register_model("posenc_transformer_lm", dataclass=LMPosEncConfig)
class PosEncTransformerLM(FairseqLanguageModel):
    """fairseq's `transformer_lm` whose self-attention takes `--pos-enc`."""

    #: its decoder takes a memory of earlier segments
    remembers = True

    @classmethod
    def build_model(cls, cfg: Any, task: Any) -> PosEncTransformerLM:
        """Build the model from the flat options.

        Raises:
            ValueError: unknown encodings or options, encodings asked for what they cannot do, and fairseq's own
                position flags.
        """
        config = decoder_config(cfg)
        dictionary = task.source_dictionary
        decoder = LMDecoder(config, task.target_dictionary, _embedding(config, dictionary))
        refuse_without_effect(config, decoder)
        model = cls(decoder)
        if config.init_std is not None:
            model.draw(config.init_std)
        return model

    def draw(self, std: float) -> None:
        """Draw matrices N(0, std) and set biases to zero; the encoding and layer norms keep their own start."""
        drawn: set[int] = set()  # a matrix that is tied is drawn once
        for module in self.modules():
            for name, parameter in module.named_parameters(recurse=False):
                if isinstance(module, nn.Linear | nn.Embedding | OneMatrixSoftmax) and id(parameter) not in drawn:
                    _ = nn.init.zeros_(parameter) if "bias" in name else nn.init.normal_(parameter, std=std)
                    drawn.add(id(parameter))
            if isinstance(module, nn.Embedding) and module.padding_idx is not None:
                nn.init.zeros_(module.weight[module.padding_idx])

    def forward(self, src_tokens: Tensor, **kwargs: Any) -> tuple[Tensor, dict[str, Any]]:
        """See `LMDecoder.forward`."""
        found: tuple[Tensor, dict[str, Any]] = self.decoder(src_tokens, **kwargs)
        return found


def _embedding(config: Any, dictionary: Any) -> nn.Module:
    """Build the embedding as fairseq draws it; with --adaptive-input in bands with projections."""
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


register_sizes("posenc_transformer_lm", "posenc_transformer_lm_", LM)
