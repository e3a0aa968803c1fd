"""Define the flat (not nested) options of text classifiers that are trained from scratch."""

import dataclasses  # no `from __future__ import annotations` here: fairseq reads the fields' types at run time
from typing import Any, Optional

from fairseq import utils
from fairseq.dataclass import ChoiceEnum
from fairseq.models.transformer import DEFAULT_MIN_PARAMS_TO_WRAP

from .config import PosEncConfig

_ACTIVATIONS = ChoiceEnum(utils.get_available_activation_fns())
#: number of positions of a model without --max-positions
LONGEST = 512


def _option(default: Any, help: str) -> Any:
    return dataclasses.field(default=default, metadata={"help": help})


@dataclasses.dataclass
class ClassifierConfig(PosEncConfig):
    """Hold the options of the classifier of Qu et al. 2021 (section 4.1), whose sizes are the defaults."""

    pooling: ChoiceEnum(["max", "cls"]) = dataclasses.field(  # type: ignore[valid-type]
        default="max",
        metadata={
            "help": "Input of the classification head: `max` is the maximum of each feature over all tokens (for "
            "single sentences); `cls` is the output at the first token (for pairs; needs --init-token 0)."
        },
    )
    word_vectors: Optional[str] = _option(
        None, "File of word vectors that prepare_text_classification.py wrote. Default: start with random vectors."
    )
    embedding_dim: Optional[int] = _option(
        None,
        "Width of the word vectors, which are projected to --encoder-embed-dim if the widths differ. Default: the "
        "width of the vectors in --word-vectors; without that file, --encoder-embed-dim.",
    )
    encoder_layers: int = _option(8, "Number of layers.")
    encoder_embed_dim: int = _option(512, "Width of the model.")
    encoder_ffn_embed_dim: int = _option(2048, "Width of the feed-forward layers.")
    encoder_attention_heads: int = _option(8, "Number of attention heads.")
    encoder_normalize_before: bool = _option(False, "Apply layer normalisation before each block instead of after it.")
    encoder_layerdrop: float = _option(0.0, "Probability of leaving out a layer in training.")
    activation_fn: _ACTIVATIONS = dataclasses.field(  # type: ignore[valid-type]
        default="gelu", metadata={"help": "Activation function of the feed-forward layers."}
    )
    dropout: float = _option(
        0.1,
        "Dropout probability of the embeddings, of the outputs of attention and of the feed-forward network, and of "
        "the head's input.",
    )
    attention_dropout: float = _option(0.0, "Dropout probability of attention weights.")
    activation_dropout: float = _option(0.0, "Dropout probability after the activation of feed-forward layers.")
    max_positions: Optional[int] = _option(None, f"Longest sequence in tokens. Default: {LONGEST}.")
    checkpoint_activations: bool = _option(False, "Recompute each layer in the backward pass, which saves memory.")
    offload_activations: bool = _option(
        False, "Recompute each layer as with --checkpoint-activations, and keep the layers' inputs on the CPU."
    )
    min_params_to_wrap: int = _option(
        DEFAULT_MIN_PARAMS_TO_WRAP, "FSDP wraps a layer separately if it has at least this number of parameters."
    )
