"""Read pretrained masked language models and language models, from Hugging Face's folders and fairseq's checkpoints."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from .. import stack
from ..compat import checkpoints
from ..compat.checkpoints import CheckpointError, load_model, safe_load
from ..core.reading import read_utf8
from ..data.documents import SEQUENCE
from ..data.words import MASK
from ..encodings.building import with_defaults
from . import dense, names
from .folder import CHECKPOINT
from .hugging_face import of_folder
from .ids import SPECIALS, Pretrained
from .model import ModelConfig
from .names import HEAD, LEARNED

logger = logging.getLogger(__name__)

#: Settings of fairseq's models with their defaults in `roberta` and `transformer_lm`, by their names in `ModelConfig`.
#: SIDE stands for encoder or decoder.
SETTINGS: dict[str, tuple[str, Any, Any]] = {
    "layers": ("SIDE_layers", 12, 6),
    "ffn": ("SIDE_ffn_embed_dim", 3072, 2048),
    "heads": ("SIDE_attention_heads", 12, 8),
    "activation": ("activation_fn", "gelu", "relu"),
    "dropout": ("dropout", 0.1, 0.1),
    "attention_dropout": ("attention_dropout", 0.1, 0.1),
    "normalize_before": ("SIDE_normalize_before", False, False),
    "layernorm_embedding": ("layernorm_embedding", True, False),
}
#: Settings of language models that change what they compute and that `LanguageModel` does not have.
_LACKING = ("base_layers", "scale_fc", "scale_attn", "scale_heads", "scale_resids", "character_embeddings")
#: Parts of the names of architectures: language models, and masked language models.
_CAUSAL, _MASKED = "transformer_lm", ("roberta", "bert")


def read(source: Path, *, causal: bool = False) -> Pretrained:
    """Read a pretrained model from a folder of Hugging Face, `export-hf` or `import-hf`, or from a fairseq checkpoint.

    Args:
        source: Folder or checkpoint.
        causal: Whether language models are read, too, and not masked language models only.
    Raises:
        CheckpointError: The source cannot be read, or is another kind of model.
    """
    if not source.exists():
        raise CheckpointError(f"{source} does not exist. Give a folder or a checkpoint.{_fetch(source)}")
    if (source / CHECKPOINT).is_file() and not (source / "config.json").exists():
        source /= CHECKPOINT  # written by import-hf
    model = of_folder(source) if source.is_dir() else of_checkpoint(source)
    if model.config.causal and not causal:
        problem = f"{source} is a language model, but only BERT and RoBERTa can be read"
        raise CheckpointError(f"{problem}. Give a BERT or a RoBERTa.")
    return model


def _fetch(source: Path) -> str:
    """Return advice on downloading `source` if it may be a model on the Hugging Face hub; otherwise an empty text."""
    if not re.fullmatch(r"\w[\w.-]*(/[\w.-]+)?", str(source)) or source.suffix == ".pt":
        return ""
    folder = source.name
    command = f"huggingface-cli download {source} --local-dir {folder}"
    return f" If {source} is a model on the Hugging Face hub, first download it: `{command}`. Then give {folder}."


def of_checkpoint(path: Path) -> Pretrained:
    """Read a fairseq checkpoint, with dict.txt beside it or in the data of its task.

    Raises:
        CheckpointError: The model is another kind of model or has a feature that `LanguageModel` lacks, or its settings
            or its dictionary do not fit its weights.
    """
    state = load_model(path)
    settings, task = _settings(state, path)
    causal = _CAUSAL in _architecture(settings)
    side = "decoder" if causal else "encoder"
    _refuse(settings, path, causal=causal)
    if causal:
        tensors, unused = dense.decoder(state["model"], transposed=bool(settings.get("tie_adaptive_proj"))), list[str]()
    else:
        tensors, unused = names.from_fairseq(state["model"])
    embedding, output = tensors.get("embed_tokens.weight"), tensors.get(HEAD)
    if embedding is None:
        raise CheckpointError(f"{path} has no embedding weights. Give a masked language model or a language model.")
    if tied := output is None or output.equal(embedding):
        tensors.pop(HEAD, None)
    dictionary = dictionary_of(path, task)
    pieces = _symbols(dictionary, path, len(embedding), causal=causal) if dictionary else None
    table = tensors.get(f"{side}.{LEARNED}")
    name, args = _encoding(settings, causal=causal, learned=table is not None)
    in_table = None if table is None or _is_own(settings) else len(table)
    config = ModelConfig(
        dim=embedding.shape[1],
        max_length=in_table or _longest(settings, task, path, causal=causal),
        vocabulary=len(embedding),
        pos_enc=name,
        pos_enc_args=args,
        causal=causal,
        attention_bias=f"{side}.layers.0.self_attn.q_proj.bias" in tensors,
        tied=tied,
        **{
            ours: settings.get(theirs.replace("SIDE", side), defaults[causal])
            for ours, (theirs, *defaults) in SETTINGS.items()
        },
    )
    if causal:
        config = _causal(config, settings, task)
    else:
        _warn_of_documents(settings, path)
        mask = pieces.index(MASK) if pieces else config.vocabulary - 1
        config = replace(config, mask=mask, layer_norm_eps=settings.get("layer_norm_eps", config.layer_norm_eps))
    return Pretrained(config, tensors, pieces, unused, dictionary, _notes(task))


def _causal(config: ModelConfig, settings: Mapping[str, Any], task: Mapping[str, Any]) -> ModelConfig:
    """Add the settings that only language models have."""
    text = settings.get("adaptive_softmax_cutoff")
    ends = [int(number) for number in text.split(",")] if isinstance(text, str) and text else list(text or ())
    return replace(
        config,
        scale=1.0 if settings.get("no_scale_embedding") else config.dim**0.5,
        cutoffs=[number for number in ends if number < config.vocabulary],
        attend_within=str(settings.get("attend_within") or SEQUENCE),
        first=0 if settings.get("add_bos_token") or task.get("add_bos_token") else 2,
    )


def _architecture(settings: Mapping[str, Any]) -> str:
    return str(settings.get("_name") or settings.get("arch"))


def _is_own(settings: Mapping[str, Any]) -> bool:
    return _architecture(settings).startswith("posenc_")


def _settings(state: Mapping[str, Any], path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the settings of the model and of the task."""
    if not state.get("cfg") and state.get("args") is None:
        raise CheckpointError(f"{path} has no settings ('cfg' or 'args'). Give a checkpoint that fairseq-train wrote.")
    settings, task = (checkpoints.settings_of(state, part) for part in ("model", "task"))
    name = _architecture(settings)
    if not any(known in name for known in (_CAUSAL, *_MASKED)):
        problem = f"{path}: the model is {name}, but only BERT and RoBERTa and language models can be read"
        raise CheckpointError(f"{problem}. Give a checkpoint of such a model.")
    return settings, task


def _refuse(settings: Mapping[str, Any], path: Path, *, causal: bool) -> None:
    """Raise CheckpointError if `LanguageModel` lacks a feature that the settings of this model require."""
    if settings.get("pos_enc_random") is not None:
        problem = f"{path} was trained at random positions (--pos-enc-random {settings['pos_enc_random']})"
        cure = "Give a model that was trained without --pos-enc-random."
        raise CheckpointError(f"{problem}, so it cannot be converted or exported. {cure}")
    lacking = [name for name in _LACKING if causal and settings.get(name)]
    if causal and settings.get("no_decoder_final_norm") and settings.get("decoder_normalize_before"):
        lacking.append("no_decoder_final_norm")
    if lacking:
        flag = f"--{lacking[0].replace('_', '-')}"
        raise CheckpointError(f"{path} was trained with {flag}, which cannot be exported. Give a model without {flag}.")
    activation = settings.get("activation_fn", SETTINGS["activation"][1 + causal])
    if activation not in stack.ACTIVATIONS:
        problem = f"{path}: the activation function {activation!r} is not supported"
        raise CheckpointError(f"{problem}. Give a model with {' or '.join(stack.ACTIVATIONS)}.")


def _encoding(settings: Mapping[str, Any], *, causal: bool, learned: bool) -> tuple[str, str | None]:
    """Return the encoding's name and options. Models of fairseq itself learn positions, use sinusoids or nothing."""
    if not _is_own(settings):
        if not causal or learned:
            return "learned", None
        return ("none", None) if settings.get("no_token_positional_embeddings") else ("sinusoidal", "freq=t2t,offset=2")
    name, args = settings.get("pos_enc", "sinusoidal" if causal else "learned"), settings.get("pos_enc_args")
    if settings.get("pos_enc_defaults"):
        options = with_defaults(name, args, settings["pos_enc_defaults"])
        args = ",".join(f"{key}={value}" for key, value in options.items())
    return name, args or None


def _longest(settings: Mapping[str, Any], task: Mapping[str, Any], path: Path, *, causal: bool) -> int:
    """Return the length of the longest sequence in training."""
    own = "max_target_positions" if causal else "max_positions"
    lengths = [where.get(name) for where in (settings, task) for name in (own, "tokens_per_sample")]
    longest = next((int(length) for length in lengths if length), None)
    if longest is None:
        problem = f"the settings do not contain the maximum length ({own} or tokens_per_sample)"
        raise CheckpointError(f"{path}: {problem}. Give a checkpoint that fairseq-train wrote.")
    return longest


def _warn_of_documents(settings: Mapping[str, Any], path: Path) -> None:
    if (within := str(settings.get("attend_within") or SEQUENCE)) != SEQUENCE:
        logger.warning(
            f"{path} was trained with --attend-within {within}, but in fine-tuned and exported models every token sees "
            f"the whole input. If an input has more than one {within}, results differ from those in training."
        )


def _notes(task: Mapping[str, Any]) -> tuple[str, ...]:
    """Return a note that the exported model has no memory, if the model was trained with memory."""
    if "posenc_lm_memory" not in str(task.get("_name")):
        return ()
    return (
        "the model was trained in segments with a memory of earlier segments. The exported model has no memory: it "
        "reads each text as one sequence",
    )


# -- settings and dictionaries of checkpoints, without their weights ------------------------------------------


def part_of(path: Path, part: str) -> dict[str, Any]:
    """Return the settings of one `part` of a checkpoint (model or task), if possible without reading the weights.

    Raises:
        CheckpointError: The file is not a checkpoint.
    """
    return checkpoints.settings_of(_mapped(path), part)


def _mapped(path: Path) -> dict[str, Any]:
    """Load a checkpoint, if possible without reading the weights."""
    if path.is_dir():
        inside = sorted(path.glob("**/checkpoint_best.pt" if (path / "checkpoints").is_dir() else "checkpoint_*.pt"))
        example = f", such as {inside[0]}" if inside else ""
        raise CheckpointError(f"{path} is a folder. Give the file of a checkpoint{example}.")
    if not path.is_file():
        raise CheckpointError(f"{path} does not exist. Give a checkpoint.")
    state = safe_load(path, mmap=True)
    if not isinstance(state, dict):
        raise CheckpointError(
            f"{path} is not a fairseq checkpoint, because it has no 'model'. Give a checkpoint that fairseq wrote."
        )
    return state


def dictionary_beside(checkpoint: Path) -> Path:
    """Return a checkpoint's dict.txt, which fairseq and recipes/pretrain_mlm write to different places.

    Raises:
        CheckpointError: The file is not the checkpoint of such a model, or has no dict.txt.
    """
    dict_file = dictionary_of(checkpoint, _settings(_mapped(checkpoint), checkpoint)[1])
    run = checkpoint.absolute().parents[2:3]  # RUN/checkpoints/ENCODING/checkpoint_last.pt
    in_shards = (path for folder in run for path in sorted(folder.glob("data/shard*/dict.txt")))
    dict_file = dict_file or next(in_shards, None)
    if dict_file is None:
        problem = f"{checkpoint}: there is no dict.txt beside it or in the folder of its training data"
        raise CheckpointError(f"{problem}. Put dict.txt beside the checkpoint.")
    return dict_file


def dictionary_of(path: Path, task: Mapping[str, Any]) -> Path | None:
    """Return dict.txt beside a checkpoint or in the data folder that its task names; None if there is none."""
    folders = [path.parent, *(Path(folder) for folder in str(task.get("data") or "").split(":") if folder)]
    return next((folder / "dict.txt" for folder in folders if (folder / "dict.txt").is_file()), None)


def symbols_of(dictionary: Path, *, causal: bool = False) -> list[str]:
    """Return the pieces of dict.txt in the order of their ids, with the special symbols and <mask>, unless `causal`."""
    lines = read_utf8(dictionary).rstrip("\n").split("\n")
    pieces = [*SPECIALS, *(line.removesuffix(" #fairseq:overwrite").rsplit(" ", 1)[0] for line in lines)]
    return pieces if causal or MASK in pieces else [*pieces, MASK]


def _symbols(dictionary: Path, path: Path, size: int, *, causal: bool) -> list[str]:
    pieces = symbols_of(dictionary, causal=causal)
    if len(pieces) != size:
        with_mask = "" if causal else " (including <mask>)"
        sizes = f"{len(pieces)} symbols{with_mask}, but the embedding of {path} has {size} rows"
        raise CheckpointError(f"{dictionary} has {sizes}. Use the dict.txt of this model.")
    return pieces
