"""Read the settings, weights and vocabulary of pretrained masked language models, from Hugging Face and fairseq."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from torch import Tensor

from .. import stack
from ..compat import checkpoints
from ..compat.checkpoints import CheckpointError, load_model, safe_load
from ..core.reading import read_utf8
from ..data.words import MASK
from ..encodings.building import with_defaults
from . import names
from .folder import CHECKPOINT, read_config, read_vocabulary, read_weights
from .model import ModelConfig

logger = logging.getLogger(__name__)

#: Key of our part in an exported config.json.
OWN = "fairseq_posenc"
#: Values of model_type in an exported config.json.
OWN_MASKED, OWN_LM = "fairseq_posenc", "fairseq_posenc_lm"
ACTIVATIONS = {"gelu": "gelu", "gelu_new": "gelu_accurate", "gelu_pytorch_tanh": "gelu_accurate", "relu": "relu"}
#: Values of Hugging Face's position_embedding_type, and the encodings that they are here.
KINDS = {"absolute": "learned", "relative_key": "shaw", "relative_key_query": "m4"}
#: The special symbols of fairseq, by id.
SPECIALS = ("<s>", "<pad>", "</s>", "<unk>")
#: Settings of fairseq's RoBERTa with their defaults, by their names in `ModelConfig`.
FAIRSEQ = {
    "layers": ("encoder_layers", 12),
    "ffn": ("encoder_ffn_embed_dim", 3072),
    "heads": ("encoder_attention_heads", 12),
    "activation": ("activation_fn", "gelu"),
    "layer_norm_eps": ("layer_norm_eps", 1e-5),
    "dropout": ("dropout", 0.1),
    "attention_dropout": ("attention_dropout", 0.1),
    "normalize_before": ("encoder_normalize_before", False),
    "layernorm_embedding": ("layernorm_embedding", True),
}
#: Settings of the task or of old models that give the maximum length.
LENGTHS = ("max_positions", "tokens_per_sample")


@dataclass(frozen=True)
class Pretrained:
    """Hold a pretrained model with the settings and weights of its source.

    Args:
        config: Settings of the model, including its encoding and the ids of its special symbols.
        tensors: Weights, keyed by their names in `MaskedLM`. Weights of positions and segments that do not come from
            this plugin are called `positions`, `types` and `distances.N`.
        vocabulary: The pieces in the order of their ids; None if the source has no vocabulary.
        unused: Names of the source's weights that `MaskedLM` does not have.
        dictionary: The dict.txt from which the vocabulary was read, if there was one.
    """

    config: ModelConfig
    tensors: Mapping[str, Tensor]
    vocabulary: list[str] | None = None
    unused: list[str] = field(default_factory=list)
    dictionary: Path | None = None


def read(source: Path) -> Pretrained:
    """Read a pretrained model from a folder of Hugging Face, `export-hf` or `import-hf`, or from a fairseq checkpoint.

    Raises:
        CheckpointError: The source cannot be read, or the model is neither BERT nor RoBERTa.
    """
    if not source.exists():
        raise CheckpointError(f"{source} does not exist. Give a folder or a checkpoint.{_fetch(source)}")
    if (source / CHECKPOINT).is_file() and not (source / "config.json").exists():
        return of_checkpoint(source / CHECKPOINT)
    return of_folder(source) if source.is_dir() else of_checkpoint(source)


def _fetch(source: Path) -> str:
    """Return advice on downloading `source` if it may be a model on the Hugging Face hub; otherwise an empty text."""
    if not re.fullmatch(r"\w[\w.-]*(/[\w.-]+)?", str(source)) or source.suffix == ".pt":
        return ""
    folder = source.name
    command = f"huggingface-cli download {source} --local-dir {folder}"
    return f" If {source} is a model on the Hugging Face hub, first download it: `{command}`. Then give {folder}."


def of_folder(folder: Path) -> Pretrained:
    """Read a pretrained model from a folder with config.json."""
    settings = read_config(folder)
    if OWN in settings:
        return _exported(folder, settings)
    renamed = names.from_hf(read_weights(folder), kind_of(folder, settings))
    vocabulary = read_vocabulary(folder)
    config = _of_hf(folder, settings, renamed.tensors, vocabulary)
    if config.tied:
        renamed.tensors.pop("lm_head.weight", None)
    return Pretrained(config, renamed.tensors, vocabulary, renamed.unused)


def kind_of(folder: Path, settings: Mapping[str, Any]) -> str:
    """Return the kind of the model in config.json, "bert" or "roberta".

    Raises:
        CheckpointError: config.json names another kind of model, or no kind.
    """
    kind = settings.get("model_type")
    if kind not in names.HEADS:
        problem = f"model_type is {kind}, but only bert and roberta can be read"
        raise CheckpointError(f"{folder}/config.json: {problem}. Give a BERT or a RoBERTa.")
    return str(kind)


def own_settings(folder: Path, settings: Mapping[str, Any], kind: type[Any]) -> dict[str, Any]:
    """Return the settings of an exported model, which are the arguments of the class `kind`.

    Raises:
        CheckpointError: Settings are missing or unknown.
    """
    own: dict[str, Any] = settings[OWN]
    if unknown := sorted(set(own) - {setting.name for setting in fields(kind)}):
        problem = f"{folder}/config.json has unknown settings: {', '.join(unknown)}"
        raise CheckpointError(f"{problem}. Install a newer fairseq_posenc.")
    needed = {setting.name for setting in fields(kind) if setting.default is MISSING}
    if missing := sorted(needed - set(own)):
        raise CheckpointError(f"{folder}/config.json has no {OWN}.{missing[0]}. Export the model again.")
    return own


def _exported(folder: Path, settings: Mapping[str, Any]) -> Pretrained:
    own = own_settings(folder, settings, ModelConfig)
    config, weights = ModelConfig(**own), read_own_weights(folder)
    tensors = names.from_hf(weights, "roberta").tensors if settings.get("model_type") == "roberta" else weights
    table = tensors.pop(f"{names.POSITIONS}.weight", None)
    tensors.pop(f"{names.TYPES}.weight", None)
    if table is not None:
        tensors["encoder.pos.learned.weight"] = table[config.pad + 1 :]
    if config.tied:
        tensors.pop("lm_head.weight", None)
    return Pretrained(config, tensors, read_vocabulary(folder))


def read_own_weights(folder: Path) -> dict[str, Tensor]:
    """Read the weights of an exported model, and remove the prefix `model.` of transformers from their names."""
    return {name.removeprefix("model."): tensor for name, tensor in read_weights(folder).items()}


def _of_hf(
    folder: Path, settings: Mapping[str, Any], tensors: Mapping[str, Tensor], vocabulary: list[str] | None
) -> ModelConfig:
    kind, where = settings["model_type"], f"{folder}/config.json"
    positions = settings.get("position_embedding_type", "absolute")
    activation = settings.get("hidden_act", "gelu")
    if positions not in KINDS:
        problem = f"{where}: position_embedding_type {positions!r} is not supported"
        raise CheckpointError(f"{problem}. Give a model with {' or '.join(KINDS)}.")
    if activation not in ACTIVATIONS or (kind == "roberta" and activation != "gelu"):
        supported = "gelu" if kind == "roberta" else " or ".join(ACTIVATIONS)
        problem = f"{where}: hidden_act {activation!r} is not supported for {kind}"
        raise CheckpointError(f"{problem}. Give a model with {supported}.")
    sizes = ("max_position_embeddings", "num_hidden_layers", "hidden_size", "intermediate_size", "num_attention_heads")
    if missing := [name for name in (*sizes, "vocab_size") if not isinstance(settings.get(name), int)]:
        raise CheckpointError(f"{where}: {missing[0]} must be a number. Download the file again.")
    if settings.get("is_decoder"):
        raise CheckpointError(f"{where}: is_decoder is set, but only encoders can be read. Give a BERT or a RoBERTa.")
    embedding = _there(tensors, "embed_tokens.weight", folder)
    output = tensors.get("lm_head.weight")
    pad = settings.get("pad_token_id", 1 if kind == "roberta" else 0)
    length = settings["max_position_embeddings"]
    return ModelConfig(
        layers=settings["num_hidden_layers"],
        dim=settings["hidden_size"],
        ffn=settings["intermediate_size"],
        heads=settings["num_attention_heads"],
        # RoBERTa counts positions from pad + 1, so that its first rows are never read
        max_length=length - pad - 1 if kind == "roberta" and positions == "absolute" else length,
        vocabulary=len(embedding),
        pos_enc=KINDS[positions],
        activation=ACTIVATIONS[activation],
        layer_norm_eps=settings.get("layer_norm_eps", 1e-12),
        tied=output is None or output.equal(embedding),
        dropout=settings.get("hidden_dropout_prob", 0.1),
        attention_dropout=settings.get("attention_probs_dropout_prob", 0.1),
        **special_ids(where, kind, settings, vocabulary, pad),
    )


def special_ids(
    where: str, kind: str, settings: Mapping[str, Any], vocabulary: list[str] | None, pad: int
) -> dict[str, Any]:
    """Return the special symbols' ids: from the vocabulary if there is one, otherwise those of the published models."""
    if kind == "roberta":
        words = {"bos": "<s>", "eos": "</s>", "unk": "<unk>", "mask": MASK}
        usual = {"bos": 0, "eos": 2, "unk": 3, "mask": settings["vocab_size"] - 1}
    else:
        words = {"bos": "[CLS]", "eos": "[SEP]", "unk": "[UNK]", "mask": "[MASK]"}
        usual = {"bos": 101, "eos": 102, "unk": 100, "mask": 103}
    if vocabulary is not None:
        numbers = {piece: i for i, piece in enumerate(vocabulary)}
        if missing := [word for word in words.values() if word not in numbers]:
            raise CheckpointError(f"{where}: the vocabulary beside it has no {missing[0]}. Use the model's vocabulary.")
        if len(vocabulary) > settings["vocab_size"]:
            sizes = f"vocab_size is {settings['vocab_size']}, but the vocabulary beside it has {len(vocabulary)} pieces"
            raise CheckpointError(f"{where}: {sizes}. Use the model's vocabulary.")
        usual = {name: numbers[word] for name, word in words.items()}
    return {"pad": pad, **usual}


def _there(tensors: Mapping[str, Tensor], name: str, source: Path) -> Tensor:
    if name not in tensors:
        raise CheckpointError(f"{source} has no embedding weights. Give a masked language model.")
    return tensors[name]


# -- fairseq's checkpoints ----------------------------------------------------------------------------------


def of_checkpoint(path: Path) -> Pretrained:
    """Read a checkpoint of `posenc_roberta` or stock `roberta`, with dict.txt beside it or in the data of its task.

    Raises:
        CheckpointError: The model is neither BERT nor RoBERTa, or its settings or its dictionary do not fit its
            weights.
    """
    state = load_model(path)
    settings, task = _settings(state, path)
    if settings.get("pos_enc_random") is not None:
        problem = f"{path} was trained at random positions (--pos-enc-random {settings['pos_enc_random']})"
        raise CheckpointError(
            f"{problem}, so it cannot be converted or exported. Give a model that was trained without --pos-enc-random."
        )
    renamed = names.from_fairseq(state["model"])
    embedding = _there(renamed.tensors, "embed_tokens.weight", path)
    output = renamed.tensors.pop("lm_head.weight", None)
    own = settings.get("_name", settings.get("arch", "")).startswith("posenc_")
    table = renamed.tensors.get(f"{names.POSITIONS}.weight")
    lengths = [settings.get("max_positions"), *(where.get(name) for where in (settings, task) for name in LENGTHS)]
    longest = next((int(length) for length in lengths if length), None)
    if table is None and longest is None:
        problem = "the settings do not contain the maximum length (max_positions)"
        raise CheckpointError(f"{path}: {problem}. Give a checkpoint that fairseq-train wrote.")
    name, args = settings.get("pos_enc", "learned"), settings.get("pos_enc_args")
    if own and settings.get("pos_enc_defaults"):
        options = with_defaults(name, args, settings["pos_enc_defaults"])
        args = ",".join(f"{key}={value}" for key, value in options.items())
    dictionary = dictionary_of(path, task)
    pieces = _symbols(dictionary, path, len(embedding)) if dictionary else None
    config = ModelConfig(
        dim=embedding.shape[1],
        max_length=len(table) - 2 if table is not None else longest or 0,  # stock fairseq counts positions from pad + 1
        vocabulary=len(embedding),
        pos_enc=name if own else "learned",
        pos_enc_args=args or None,
        tied=output is None or output.equal(embedding),
        mask=pieces.index(MASK) if pieces else len(embedding) - 1,
        **{ours: settings.get(theirs, default) for ours, (theirs, default) in FAIRSEQ.items()},
    )
    if (within := str(settings.get("attend_within") or "sequence")) != "sequence":
        logger.warning(
            f"{path} was trained with --attend-within {within}, but in fine-tuned and exported models every token sees "
            f"the whole input. If an input has more than one {within}, results differ from those in training."
        )
    if config.activation not in stack.ACTIVATIONS:
        problem = f"{path}: the activation function {config.activation!r} is not supported"
        raise CheckpointError(f"{problem}. Give a model with {' or '.join(stack.ACTIVATIONS)}.")
    if output is not None and not config.tied:
        renamed.tensors["lm_head.weight"] = output
    return Pretrained(config, renamed.tensors, pieces, renamed.unused, dictionary)


def settings_of(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a checkpoint's settings of the model and of the task, if possible without reading the weights.

    Raises:
        CheckpointError: The file is not a checkpoint, or the model is neither BERT nor RoBERTa.
    """
    return _settings(_mapped(path), path)


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


def _settings(state: Mapping[str, Any], path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the settings of the model and of the task."""
    if not state.get("cfg") and state.get("args") is None:
        raise CheckpointError(f"{path} has no settings ('cfg' or 'args'). Give a checkpoint that fairseq-train wrote.")
    settings, task = (checkpoints.settings_of(state, part) for part in ("model", "task"))
    name = str(settings.get("_name") or settings.get("arch"))
    if "roberta" not in name and "bert" not in name:
        problem = f"{path}: the model is {name}, but only BERT and RoBERTa can be read"
        raise CheckpointError(f"{problem}. Give a checkpoint of BERT or RoBERTa.")
    return settings, task


def dictionary_of(path: Path, task: Mapping[str, Any]) -> Path | None:
    """Return dict.txt beside a checkpoint or in the data folder that its task names; None if there is none."""
    folders = [path.parent, *(Path(folder) for folder in str(task.get("data") or "").split(":") if folder)]
    return next((folder / "dict.txt" for folder in folders if (folder / "dict.txt").is_file()), None)


def symbols_of(dictionary: Path) -> list[str]:
    """Return the pieces of dict.txt in the order of their ids, with the special symbols and <mask>."""
    pieces = listed_in(dictionary)
    return pieces if MASK in pieces else [*pieces, MASK]


def listed_in(dictionary: Path) -> list[str]:
    """Return the pieces of dict.txt in the order of their ids, with the special symbols."""
    lines = read_utf8(dictionary).rstrip("\n").split("\n")
    return [*SPECIALS, *(line.removesuffix(" #fairseq:overwrite").rsplit(" ", 1)[0] for line in lines)]


def _symbols(dictionary: Path, path: Path, size: int) -> list[str]:
    pieces = symbols_of(dictionary)
    if len(pieces) != size:
        sizes = f"{len(pieces)} symbols (including <mask>), but the embedding of {path} has {size} rows"
        raise CheckpointError(f"{dictionary} has {sizes}. Use the dict.txt of this model.")
    return pieces


def reordered(source: Pretrained) -> Pretrained:
    """Return the model with its ids in fairseq's order: special symbols first, <mask> last.

    Raises:
        CheckpointError: The id of the mask or of a special symbol is not known.
    """
    config = source.config
    first = [config.bos, config.pad, config.eos, config.unk]
    if config.mask is None or len({*first, config.mask}) < 5 or max(*first, config.mask) >= config.vocabulary:
        raise CheckpointError("the ids of [CLS], [PAD], [SEP], [UNK] and [MASK] are unknown. Add the vocabulary file.")
    order = fairseq_order(first, config.mask, config.vocabulary)
    by_id = ("embed_tokens.weight", "lm_head.weight", "lm_head.bias")
    tensors = {name: tensor[order] if name in by_id else tensor for name, tensor in source.tensors.items()}
    pieces = None
    if source.vocabulary is not None:
        pieces = in_order(source.vocabulary, order)
    new_config = replace(config, bos=0, pad=1, eos=2, unk=3, mask=config.vocabulary - 1)
    return Pretrained(new_config, tensors, pieces, source.unused)


def fairseq_order(first: list[int], mask: int, size: int) -> list[int]:
    """Return all ids in fairseq's order: <s>, <pad>, </s> and <unk> come first, <mask> comes last."""
    return [*first, *sorted(set(range(size)) - {*first, mask}), mask]


def in_order(listed: list[str], order: list[int]) -> list[str]:
    """Return pieces in the order of `order`, with fairseq's special symbols. Ids without a piece get made-up names."""
    others = (listed[i] if i < len(listed) else f"madeupword{i}" for i in order[len(SPECIALS) : -1])
    return [*SPECIALS, *others, MASK]


def distinct(pieces: list[str]) -> list[str]:
    """Return a vocabulary in fairseq's order with new names for duplicates, which dict.txt cannot contain.

    A piece that occurs again, or equals a special symbol, gets a made-up name that no text contains.
    """
    seen, named = {*SPECIALS, MASK}, list(pieces)
    for i, piece in enumerate(pieces[len(SPECIALS) : -1], len(SPECIALS)):
        named[i] = f"madeupword{i}" if piece in seen else piece
        seen.add(piece)
    return named
