"""Define exported models for transformers: `AutoModelForCausalLM` and `AutoModelForMaskedLM`.

`export-hf` copies this file and all files that it needs into the folder of a model. With `trust_remote_code=True`,
transformers loads the model from this folder, without fairseq and without this package.

Legend: B batch size, T new tokens, K columns including the cache, V vocabulary size.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from torch.nn import functional as F
from transformers import GenerationMixin, PretrainedConfig, PreTrainedModel
from transformers.cache_utils import Cache
from transformers.modeling_outputs import CausalLMOutputWithPast, MaskedLMOutput

from .model import LanguageModel, ModelConfig, Past

#: Labels that the loss leaves out, as in transformers.
IGNORED = -100


class PosEncConfig(PretrainedConfig):
    """Hold all settings of a model under `fairseq_posenc`, and some also under the names that transformers uses."""

    model_type = "fairseq_posenc"

    def __init__(self, fairseq_posenc: dict[str, Any] | None = None, **settings: Any) -> None:
        self.fairseq_posenc = fairseq_posenc or {}
        super().__init__(**settings)


class PosEncCache(Cache):
    """Hold the keys, values and tokens that a language model has read, for `generate`."""

    def __init__(self, layers: int) -> None:
        if issubclass(Cache, nn.Module):
            nn.Module.__init__(self)  # the base class of newer versions needs layers of its own kind
        self.past = Past(layers)

    def __len__(self) -> int:
        return len(self.past.layers)

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """Return the number of tokens in the cache."""
        return self.past.length

    def get_max_cache_shape(self, layer_idx: int = 0) -> None:
        """Return None, because the cache grows without a limit."""

    @property
    def is_compileable(self) -> bool:
        """Return False, because a compiled model would be compiled again for each length of the cache."""
        return False

    def reorder_cache(self, beam_idx: Tensor) -> None:
        """Select and repeat the samples with which beam search continues."""
        self.past.reorder(beam_idx)


class PosEncModel(PreTrainedModel):
    """Run an exported model in transformers, as far as language models and masked language models do the same."""

    config_class = PosEncConfig
    base_model_prefix = "model"

    def __init__(self, config: PosEncConfig) -> None:
        super().__init__(config)
        self.model = LanguageModel(ModelConfig(**config.fairseq_posenc))
        self.post_init()

    def get_input_embeddings(self) -> nn.Module:
        """Return the embedding of the tokens."""
        return self.model.embed_tokens

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        past_key_values: Cache | None = None,
        labels: Tensor | None = None,
        use_cache: bool | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
    ) -> CausalLMOutputWithPast | MaskedLMOutput | tuple[Any, ...]:
        """Return logits [B, T, V] and, with `labels`, the mean loss.

        Args:
            input_ids: New tokens, [B, T].
            attention_mask: [B, T] or [B, K], 0 at padding, which may be on either side.
            token_type_ids: Segments [B, T], for encodings that read them.
            past_key_values: The cache that an earlier call returned, for a language model.
            labels: Tokens to predict, [B, T]; a language model predicts each from the tokens before it. -100 excludes a
                token from the loss.
            use_cache: Whether a language model returns a cache.
            output_attentions, output_hidden_states: These outputs are not available.
            return_dict: Whether to return an object instead of a tuple.
        """
        causal, loss = self.model.config.causal, None
        wanted = {"output_attentions": output_attentions, "output_hidden_states": output_hidden_states}
        wanted |= {} if causal else {"past_key_values": past_key_values, "use_cache": use_cache}
        if refused := next((name for name, value in wanted.items() if value), None):
            raise ValueError(f"{refused}={wanted[refused]}: this model returns logits only. Leave {refused} out.")
        cache = self._cache(past_key_values, use_cache) if causal else None
        logits = self.model(input_ids, attention_mask, token_type_ids, past=None if cache is None else cache.past)
        if labels is not None:
            predicted, targets = (logits[:, :-1], labels[:, 1:]) if causal else (logits, labels)
            loss = F.cross_entropy(predicted.flatten(0, 1).float(), targets.flatten(), ignore_index=IGNORED)
        output = CausalLMOutputWithPast(loss, logits, cache) if causal else MaskedLMOutput(loss, logits)
        return output.to_tuple() if return_dict is False else output

    def _cache(self, passed: Cache | None, wanted: bool | None) -> PosEncCache | None:
        """Return the cache to use, or None to use no cache.

        Some versions of `generate` pass an empty cache of another class, which is not used.
        """
        if isinstance(passed, PosEncCache):
            return passed
        if passed is not None and passed.get_seq_length():
            raise ValueError(
                f"past_key_values is a {type(passed).__name__}, but this model needs the cache that it returned "
                "itself. Pass that cache, or leave past_key_values out."
            )
        return PosEncCache(self.model.config.layers) if wanted or (wanted is None and not self.training) else None


class PosEncForCausalLM(PosEncModel, GenerationMixin):
    """Run an exported language model in transformers."""

    #: The cache cannot forget tokens. transformers then refuses assisted generation and contrastive search.
    _is_stateful = True

    def prepare_inputs_for_generation(
        self,
        input_ids: Tensor,
        past_key_values: Cache | None = None,
        attention_mask: Tensor | None = None,
        use_cache: bool | None = None,
        **unused: Any,
    ) -> dict[str, Any]:
        """Return the arguments of `forward` for the next step of `generate`: the tokens that are not in the cache."""
        seen = past_key_values.get_seq_length() if isinstance(past_key_values, PosEncCache) else 0
        return {
            "input_ids": input_ids[:, seen:],
            "attention_mask": attention_mask,
            "past_key_values": past_key_values,
            "use_cache": use_cache,
        }


class PosEncForMaskedLM(PosEncModel):
    """Run an exported masked language model in transformers."""
