"""Read language models from checkpoints of this package and of fairseq's `transformer_lm`, without fairseq."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from .. import stack
from ..compat import checkpoints
from ..compat.checkpoints import CheckpointError, load_model
from ..data.documents import SEQUENCE
from ..encodings.building import with_defaults
from .causal_lm import CausalConfig, CausalLM
from .dense import embedding, output
from .folder import read_config, read_vocabulary
from .pretrained import OWN_LM, dictionary_of, listed_in, own_settings, part_of, read_own_weights

#: Settings of fairseq's transformer_lm with their defaults, by their names in `CausalConfig`.
FAIRSEQ = {
    "layers": ("decoder_layers", 6),
    "ffn": ("decoder_ffn_embed_dim", 2048),
    "heads": ("decoder_attention_heads", 8),
    "activation": ("activation_fn", "relu"),
    "normalize_before": ("decoder_normalize_before", False),
    "layernorm_embedding": ("layernorm_embedding", False),
    "dropout": ("dropout", 0.1),
    "attention_dropout": ("attention_dropout", 0.1),
}
#: Settings that change what a model computes and that `CausalLM` does not have.
UNKNOWN = ("base_layers", "scale_fc", "scale_attn", "scale_heads", "scale_resids", "character_embeddings")


@dataclass(frozen=True)
class LanguageModel:
    """Hold a language model with its settings and weights.

    Args:
        config: Settings of the model.
        tensors: Weights, keyed by their names in `CausalLM`.
        vocabulary: The symbols in the order of their ids; None if there is no dict.txt.
        dictionary: The dict.txt from which the vocabulary was read.
        notes: Sentences for users of the model, such as its differences from the trained model.
    """

    config: CausalConfig
    tensors: Mapping[str, Tensor]
    vocabulary: list[str] | None = None
    dictionary: Path | None = None
    notes: tuple[str, ...] = ()


def is_language_model(path: Path) -> bool:
    """Return whether a file is the checkpoint of a language model.

    Raises:
        CheckpointError: The file is not a checkpoint.
    """
    settings = part_of(path, "model")
    return "transformer_lm" in str(settings.get("_name") or settings.get("arch"))


def of_checkpoint(path: Path) -> LanguageModel:
    """Read a checkpoint of a language model, with dict.txt beside it or in the data of its task.

    Raises:
        CheckpointError: `CausalLM` lacks a feature of this model, or the dictionary does not fit.
    """
    state = load_model(path)
    settings, task = (checkpoints.settings_of(state, part) for part in ("model", "task"))
    _refuse(settings, path)
    weights = {name: tensor.float() for name, tensor in state["model"].items() if tensor.is_floating_point()}
    stack_weights = ("decoder.layer", "decoder.pos.")  # of layers, of layer norms, and of the encoding
    tensors = {name: tensor for name, tensor in weights.items() if name.startswith(stack_weights)}
    vectors = embedding(weights)
    outputs = output(weights, transposed=bool(settings.get("tie_adaptive_proj")))
    tensors["embed_tokens.weight"] = vectors
    tied = outputs["weight"] is None or outputs["weight"].equal(vectors)
    tensors |= {f"lm_head.{name}": value for name, value in outputs.items() if value is not None}
    if tied:
        tensors.pop("lm_head.weight", None)
    name, args, table = _encoding(settings, weights)
    if table is not None:
        tensors["decoder.pos.learned.weight"] = table
    config = CausalConfig(
        dim=vectors.shape[1],
        max_length=_longest(settings, task, path),
        vocabulary=len(vectors),
        pos_enc=name,
        pos_enc_args=args,
        attention_bias="decoder.layers.0.self_attn.q_proj.bias" in tensors,
        tied=tied,
        scale=1.0 if settings.get("no_scale_embedding") else vectors.shape[1] ** 0.5,
        cutoffs=_cutoffs(settings, len(vectors)),
        attend_within=str(settings.get("attend_within") or SEQUENCE),
        first=0 if settings.get("add_bos_token") or task.get("add_bos_token") else 2,
        **{ours: settings.get(theirs, default) for ours, (theirs, default) in FAIRSEQ.items()},
    )
    dictionary = dictionary_of(path, task)
    symbols = None if dictionary is None else _symbols(dictionary, path, len(vectors))
    return LanguageModel(config, tensors, symbols, dictionary, _notes(task))


def of_folder(folder: Path) -> LanguageModel:
    """Read a language model from a folder that `export-hf` wrote.

    Raises:
        CheckpointError: The folder is not complete, or was written by a newer version of this package.
    """
    config = CausalConfig(**own_settings(folder, read_config(folder), CausalConfig))
    return LanguageModel(config, read_own_weights(folder), read_vocabulary(folder))


def is_exported(folder: Path) -> bool:
    """Return whether a folder holds a language model that `export-hf` wrote."""
    return (folder / "config.json").is_file() and read_config(folder).get("model_type") == OWN_LM


def model_of(source: LanguageModel) -> CausalLM:
    """Build a `CausalLM` with the weights of `source`, in evaluation mode.

    Raises:
        CheckpointError: The weights do not fit the settings.
    """
    model = CausalLM(source.config)
    try:
        model.load_state_dict(dict(source.tensors))
    except RuntimeError as error:
        problem = f"the weights do not fit the settings: {error}"
        raise CheckpointError(f"{problem}. Use settings and weights of the same model.") from None
    return model.eval()


def _refuse(settings: Mapping[str, Any], path: Path) -> None:
    """Raise CheckpointError if `CausalLM` lacks a feature that the settings of this model require."""
    if settings.get("pos_enc_random") is not None:
        problem = f"{path} was trained at random positions (--pos-enc-random {settings['pos_enc_random']})"
        cure = "Give a model that was trained without --pos-enc-random."
        raise CheckpointError(f"{problem}, so it cannot be converted or exported. {cure}")
    lacking = [name for name in UNKNOWN if settings.get(name)]
    if settings.get("no_decoder_final_norm") and settings.get("decoder_normalize_before"):
        lacking.append("no_decoder_final_norm")
    if lacking:
        flag = f"--{lacking[0].replace('_', '-')}"
        raise CheckpointError(f"{path} was trained with {flag}, which cannot be exported. Give a model without {flag}.")
    activation = settings.get("activation_fn", "relu")
    if activation not in stack.ACTIVATIONS:
        problem = f"{path}: the activation function {activation!r} is not supported"
        raise CheckpointError(f"{problem}. Give a model with {' or '.join(stack.ACTIVATIONS)}.")


def _encoding(settings: Mapping[str, Any], weights: Mapping[str, Tensor]) -> tuple[str, str | None, Tensor | None]:
    """Return the encoding's name and options, and the table of positions if fairseq itself learned the positions."""
    if str(settings.get("_name") or settings.get("arch")).startswith("posenc_"):
        name, args = settings.get("pos_enc", "sinusoidal"), settings.get("pos_enc_args")
        options = with_defaults(name, args, settings.get("pos_enc_defaults"))
        return name, ",".join(f"{key}={value}" for key, value in options.items()) or None, None
    table = weights.get("decoder.embed_positions.weight")
    if table is not None:
        return "learned", None, table[2:]  # fairseq counts positions from pad + 1
    if settings.get("no_token_positional_embeddings"):
        return "none", None, None
    return "sinusoidal", "freq=t2t,offset=2", None


def _longest(settings: Mapping[str, Any], task: Mapping[str, Any], path: Path) -> int:
    """Return the length of the longest sequence in training."""
    names = ("max_target_positions", "tokens_per_sample")
    lengths = [where.get(name) for where in (settings, task) for name in names]
    longest = next((int(length) for length in lengths if length), None)
    if longest is None:
        problem = "the settings do not contain the maximum length (tokens_per_sample)"
        raise CheckpointError(f"{path}: {problem}. Give a checkpoint that fairseq-train wrote.")
    return longest


def _cutoffs(settings: Mapping[str, Any], size: int) -> list[int]:
    """Return the end of each band of an adaptive softmax except the last band; an empty list for a plain softmax."""
    text = settings.get("adaptive_softmax_cutoff")
    numbers = [int(number) for number in text.split(",")] if isinstance(text, str) and text else list(text or ())
    return [number for number in numbers if number < size]


def _symbols(dictionary: Path, path: Path, size: int) -> list[str]:
    symbols = listed_in(dictionary)
    if len(symbols) != size:
        sizes = f"{len(symbols)} symbols, but the embedding of {path} has {size} rows"
        raise CheckpointError(f"{dictionary} has {sizes}. Use the dict.txt of this model.")
    return symbols


def _notes(task: Mapping[str, Any]) -> tuple[str, ...]:
    """Return a note that the exported model has no memory, if the model was trained with memory."""
    if "posenc_lm_memory" not in str(task.get("_name")):
        return ()
    return (
        "the model was trained in segments with a memory of earlier segments. The exported model has no memory: it "
        "reads each text as one sequence",
    )
