"""Define the flat (not nested) options of text classifiers that are trained from scratch."""

import dataclasses  # no `from __future__ import annotations` here: fairseq reads the fields' types at run time
from typing import Optional

from fairseq.dataclass import ChoiceEnum

from ..core.options import option
from .config import ACTIVATIONS, LayersConfig

#: number of positions of a model without --max-positions
LONGEST = 512


@dataclasses.dataclass
class ClassifierConfig(LayersConfig):
    """Hold the options of the classifier of Qu et al. 2021 (section 4.1), whose sizes are the defaults."""

    pooling: ChoiceEnum(["max", "cls"]) = option(  # type: ignore[valid-type]
        "max",
        "Input of the classification head: `max` is the maximum of each feature over all tokens (for single "
        "sentences); `cls` is the output at the first token (for pairs; needs --init-token 0).",
    )
    word_vectors: Optional[str] = option(
        None, "File of word vectors that prepare_text_classification.py wrote. Default: start with random vectors."
    )
    embedding_dim: Optional[int] = option(
        None,
        "Width of the word vectors, which are projected to --encoder-embed-dim if the widths differ. Default: the "
        "width of the vectors in --word-vectors; without that file, --encoder-embed-dim.",
    )
    encoder_layers: int = option(8, "Number of layers.")
    encoder_embed_dim: int = option(512, "Width of the model.")
    encoder_ffn_embed_dim: int = option(2048, "Width of the feed-forward layers.")
    encoder_attention_heads: int = option(8, "Number of attention heads.")
    encoder_normalize_before: bool = option(False, "Apply layer normalisation before each block instead of after it.")
    encoder_layerdrop: float = option(0.0, "Probability of leaving out a layer in training.")
    activation_fn: ACTIVATIONS = option("gelu", "Activation function of the feed-forward layers.")
    dropout: float = option(
        0.1,
        "Dropout probability of the embeddings, of the outputs of attention and of the feed-forward network, and of "
        "the head's input.",
    )
    attention_dropout: float = option(0.0, "Dropout probability of attention weights.")
    max_positions: Optional[int] = option(None, f"Longest sequence in tokens. Default: {LONGEST}.")
