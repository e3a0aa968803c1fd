"""Define the flat (not nested) options for fine-tuning a pretrained masked language model."""

import dataclasses  # no `from __future__ import annotations` here: fairseq reads the fields' types at run time
from collections.abc import Iterator
from typing import Any, Optional

from fairseq.dataclass import ChoiceEnum

from ..core.options import option
from .masked_lm_config import MaskedLMPosEncConfig

#: Values of --segments, each with the encoding that tells the sentences of a pair apart.
SEGMENTS = {"none": "", "input": "segments-input", "head": "segments"}
#: Options that are read from the pretrained model, each with the name of its setting there.
ENCODER_SIZES = {
    "encoder_layers": "layers",
    "encoder_embed_dim": "dim",
    "encoder_ffn_embed_dim": "ffn",
    "encoder_attention_heads": "heads",
}
SIZES = {
    **ENCODER_SIZES,
    "activation_fn": "activation",
    "layer_norm_eps": "layer_norm_eps",
    "max_positions": "max_length",
}


def _fields() -> Iterator[tuple[str, Any, Any]]:
    """Yield the options that take their defaults from the pretrained model, then --pretrained and --segments."""
    for field in dataclasses.fields(MaskedLMPosEncConfig):
        if field.name in ("pos_enc", *SIZES):
            text = field.metadata["help"].partition(" Default:")[0]
            yield field.name, Optional[field.type], option(None, f"{text} Default: as in the model of --pretrained.")
    yield (
        "pretrained",
        Optional[str],
        option(
            None,
            "Pretrained model that provides the sizes, the position encoding and the weights: a checkpoint of "
            "fairseq's RoBERTa or of a posenc model, a Hugging Face folder, or a folder that export-hf wrote.",
        ),
    )
    yield (
        "segments",
        ChoiceEnum(list(SEGMENTS)),
        option(
            "none",
            "How to tell the sentences of a pair apart: `input` adds vectors to the embeddings, `head` adds biases in "
            "each attention head, and `none` does neither.",
        ),
    )


PretrainedConfig = dataclasses.make_dataclass("PretrainedConfig", list(_fields()), bases=(MaskedLMPosEncConfig,))
PretrainedConfig.__module__ = __name__
PretrainedConfig.__doc__ = (
    "Hold the options of the masked language models; by default, the sizes are those of the pretrained model."
)
