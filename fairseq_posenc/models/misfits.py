"""Explain why a checkpoint does not fit the model or the dictionary, and what to do.

fairseq itself says at most 'please ensure that the architectures match'. If all shapes fit, fairseq says nothing, even
if the order of the dictionary or the number of heads differs. A model with another dictionary or
another number of heads than its checkpoint computes nonsense.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..compat.checkpoints import CheckpointError, as_dict, safe_load, settings_of
from ..compat.patching import replace
from ..encodings.building import parse

logger = logging.getLogger(__name__)

Settings = Mapping[str, Any]

_STACKS = ("encoder", "decoder")
_ENCODING = (
    *("pos_enc", "pos_enc_args", "pos_enc_defaults", "pos_enc_random"),
    *(f"pos_enc_{side}{part}" for side in _STACKS for part in ("", "_args")),
)
#: All shapes may fit although these settings differ. Another number of heads is an error; the others give a warning.
_HEADS = tuple(f"{side}_attention_heads" for side in _STACKS)
_COMPUTING = (*_ENCODING, "attend_within", "activation_fn", "layer_norm_eps")
#: Settings on which the shapes or the names of the weights depend, except those of the encoding and the lengths.
_SIZES = (
    *(f"{side}_{size}" for side in _STACKS for size in ("layers", "embed_dim", "ffn_embed_dim", "normalize_before")),
    *("layernorm_embedding", "share_all_embeddings", "share_decoder_input_output_embed", "untie_weights_roberta"),
    "copy_mechanism",
)
_LENGTHS = ("max_positions", "tokens_per_sample", "max_source_positions", "max_target_positions")
#: Errors that fairseq raises if the stored state does not fit the optimizer that the command line chooses.
_STATE_ERRORS = (AssertionError, AttributeError, IndexError, KeyError, TypeError, ValueError)
_FAILED = "Cannot load model parameters from checkpoint"
_CURE = "Give the settings of the checkpoint, or start from another checkpoint."


def name_misfits() -> None:
    """Make fairseq's trainer check each checkpoint that it loads against the model and the dictionary."""
    from fairseq.trainer import Trainer

    replace(Trainer, "load_checkpoint", _compared)


def _compared(original: Callable[..., Any], trainer: Any, filename: str, *args: Any, **kwargs: Any) -> Any:
    state = None if getattr(trainer, "is_fsdp", False) else _state(filename)
    if state is None:
        return original(trainer, filename, *args, **kwargs)
    theirs = {**_length(settings_of(state, "task")), **_by_owner(settings_of(state, "model"))}
    mine = {**_length(as_dict(trainer.cfg.task)), **_by_owner(as_dict(trainer.cfg.model))}
    _check_dictionary(trainer.task, state, filename)
    if other_heads := _differences(theirs, mine, _HEADS):
        raise CheckpointError(f"{filename} does not fit this model: {'; '.join(other_heads)}. {_CURE}")
    try:
        loaded = original(trainer, filename, *args, **kwargs)
    except _STATE_ERRORS as error:
        raise CheckpointError(
            f"{filename}: the state of the training cannot be restored ({type(error).__name__}: {error}). To load "
            f"only the weights, give --finetune-from-model {filename} and another --save-dir."
        ) from error
    except Exception as error:
        if not str(error).startswith(_FAILED):
            raise
        raise CheckpointError(_refusal(filename, _misfits(trainer, state), theirs, mine)) from error
    for difference in _differences(theirs, mine, _COMPUTING):
        problem = f"{filename} is loaded, but it was trained with other settings: {difference}"
        logger.warning(f"{problem}. Give the checkpoint's value, unless you changed it on purpose.")
    return loaded


def _state(filename: str) -> Any:
    """Return the checkpoint with its tensors memory-mapped; None if the file does not exist or is not a checkpoint.

    If the result is None, fairseq loads the file itself and reports the problem.
    """
    if not os.path.isfile(filename):
        return None
    state = safe_load(filename, mmap=True)
    return state if isinstance(state, dict) and isinstance(state.get("model"), dict) else None


def _length(task: Settings) -> Settings:
    """Return the maximum length from the task's options, for models without --max-positions."""
    return {name: task[name] for name in ("tokens_per_sample",) if task.get(name)}


def _by_owner(settings: Settings) -> Settings:
    """Return settings in which the name of an encoding stands before each of its options.

    `--pos-enc 'shaw[clip=16]+t5'` and `--pos-enc shaw+t5 --pos-enc-args clip=16` then give equal settings.
    """
    options = {}
    for stack in ("", "_encoder", "_decoder"):
        name, args = f"pos_enc{stack}", f"pos_enc{stack}_args"
        if settings.get(args):
            with suppress(ValueError):  # such as an option that another version had
                chosen = parse(str(settings.get(name) or settings.get("pos_enc")), settings[args])
                options[args] = ",".join(f"{key}={value}" for key, value in sorted(chosen.by_owner().items()))
    return {**settings, **options}


def _misfits(trainer: Any, state: Mapping[str, Any]) -> list[str]:
    """Return a line for each weight that does not fit."""
    model, theirs = trainer.get_model(), dict(state["model"])
    model.upgrade_state_dict(theirs)  # rename the weights of older versions
    ours = model.state_dict()
    shapes = [name for name in ours if name in theirs and theirs[name].shape != ours[name].shape]
    lines = [
        f"{name} has the shape {list(theirs[name].shape)} in the checkpoint, but {list(ours[name].shape)} in the model"
        for name in shapes
    ]
    lines += [f"the checkpoint has no {name}" for name in ours if name not in theirs]
    return lines + [f"the model has no {name}" for name in theirs if name not in ours]


def _differences(theirs: Settings, mine: Settings, names: Sequence[str]) -> list[str]:
    """Return a line for each setting in `names` that checkpoint and model both have, but with different values."""
    pairs = [(name, theirs[name], mine[name]) for name in names if name in theirs and name in mine]
    return [
        f"--{name.replace('_', '-')} is {_shown(old)} in the checkpoint, {_shown(new)} here"
        for name, old, new in pairs
        if (old or None) != (new or None) and (name not in _LENGTHS or (old and new))  # skip unset lengths
    ]


def _shown(value: Any) -> str:
    return "not set" if value is None or value == "" else str(value)


def _refusal(filename: str, weights: Sequence[str], theirs: Settings, mine: Settings) -> str:
    """Return the error message, which names the file and says what differs and what to do.

    Args:
        filename: Path of the checkpoint.
        weights: Lines about weights that do not fit.
        theirs: Settings of the checkpoint.
        mine: Settings of the model.
    """
    names = [settings.get("_name") or settings.get("arch") for settings in (theirs, mine)]
    sizes, others = (_differences(theirs, mine, names) for names in (_SIZES, (*_ENCODING, *_LENGTHS)))
    problems, cure = [*sizes, *others], _CURE
    if names[0] != names[1]:
        problems.insert(0, f"the checkpoint has the architecture {names[0]}, but the model has {names[1]}")
    symbols = [line for line in weights if "embed_tokens.weight has" in line]
    if symbols and not problems:
        cure = "The two dictionaries have different sizes. Binarise the data with the checkpoint's dict.txt "
        cure += "(fairseq-preprocess --srcdict)."
    elif "bert" in str(names[0]) and "pos_enc" in mine and not sizes:
        length = mine.get("max_positions") or mine.get("tokens_per_sample")
        more = f" --max-positions {length}" if isinstance(length, int) else ""
        cure = f"Convert the checkpoint with `python -m fairseq_posenc import-hf {filename} --pos-enc {mine['pos_enc']}"
        cure += f"{more} --output DIR`. Or give the settings of the checkpoint."
    count = f" (and {len(weights) - 1} more)" if len(weights) > 1 else ""
    problems += [f"{line}{count}" for line in ((symbols if not problems else []) or weights)[:1]]
    return f"{filename} does not fit this model: {'; '.join(problems)}. {cure}"


def _check_dictionary(task: Any, state: Mapping[str, Any], filename: str) -> None:
    """Raise if the data's dictionary differs from the checkpoint's dictionary.

    The checkpoint's dictionary is the dictionary in the folder of the checkpoint or in the data of its training.
    """
    from fairseq.data import Dictionary

    from ..hub.pretrained import dictionary_of

    mine = getattr(task, "source_dictionary", None)
    path = dictionary_of(Path(filename), settings_of(state, "task"))
    rows = [tensor.shape[0] for name, tensor in state["model"].items() if name.endswith("embed_tokens.weight")]
    if not isinstance(mine, Dictionary) or path is None or not rows:
        return
    theirs, ours = Dictionary.load(str(path)).symbols, mine.symbols
    if not len(theirs) <= rows[0] <= len(theirs) + 1:  # tasks add <mask>
        return  # the file was replaced after training
    if theirs[mine.nspecial :] == [str(number) for number in range(mine.nspecial, len(theirs))]:
        return  # import-hf writes numbers for a model without a vocabulary
    description = f"{filename} has the dictionary {path}"
    if _numbers(theirs[mine.nspecial :]) == _numbers(ours[mine.nspecial :]):
        _compare(theirs, ours, description)
    elif _numbers(ours[mine.nspecial :]):
        _compare(theirs, _spelled(ours, mine.nspecial, _encoder(task), theirs, description), description)
    else:
        _compare(_spelled(theirs, mine.nspecial, _beside(path.parent), ours, description), ours, description)


def _numbers(symbols: Sequence[str]) -> bool:
    """Return whether the symbols, except <mask> and fillers, are ids of GPT-2's pieces, as in fairseq's RoBERTa."""
    named = [symbol for symbol in symbols if symbol != "<mask>" and not symbol.startswith("madeupword")]
    return bool(named) and all(symbol.isdecimal() for symbol in named)


def _encoder(task: Any) -> Path | None:
    """Return the path of the data's encoder.json: --gpt2-encoder-json or, if unset, tokenizer/encoder.json."""
    settings = as_dict(getattr(task, "cfg", None) or getattr(task, "args", None))
    if settings.get("gpt2_encoder_json"):
        return Path(settings["gpt2_encoder_json"])
    folders = [Path(folder) for folder in str(settings.get("data") or "").split(":") if folder]
    return next((path for path in map(_beside, folders) if path), None)


def _beside(folder: Path) -> Path | None:
    """Return the path of tokenizer/encoder.json in a folder, or in its parent (the folder may be a shard)."""
    places = [place / "tokenizer" / "encoder.json" for place in (folder, folder.absolute().parent)]
    return next((path for path in places if path.is_file()), None)


def _spelled(
    symbols: Sequence[str], specials: int, encoder: Path | None, others: Sequence[str], description: str
) -> Sequence[str]:
    """Return the pieces that the GPT-2 ids in a dictionary stand for.

    Without encoder.json, the pieces are unknown. The result then consists of symbols of the other dictionary,
    `others`, so that a comparison of the two dictionaries finds at most a difference in size.

    Raises:
        CheckpointError: The encoder.json cannot be read, or lacks one of the ids.
    """
    from ..data.words import gpt2_pieces

    if encoder is None:
        logger.warning(
            f"{description}. Only the sizes of the checkpoint's dictionary and the data's dictionary are compared, "
            "because one lists GPT-2 ids and the other lists pieces. To compare all symbols, put GPT-2's encoder.json "
            "into a folder tokenizer/, next to the dictionary that lists ids or one level higher."
        )
        return [*others[: len(symbols)], *symbols[len(others) :]]
    try:
        return [*symbols[:specials], *gpt2_pieces(symbols[specials:], encoder)]
    except (OSError, ValueError, AttributeError) as error:
        raise CheckpointError(
            f"{description}. The checkpoint's dictionary cannot be compared with the data's dictionary: {error}"
        ) from None


def _compare(theirs: Sequence[str], ours: Sequence[str], description: str) -> None:
    without_mask = [[symbol for symbol in symbols if symbol != "<mask>"] for symbols in (theirs, ours)]
    if without_mask[0] == without_mask[1]:
        return
    pairs = zip(*without_mask, strict=False)
    first = next((i for i, pair in enumerate(pairs) if pair[0] != pair[1]), None)
    if first is None:
        sizes = [len(symbols) for symbols in without_mask]
        problem = (
            f"The checkpoint's dictionary has {sizes[0]} symbols (including special symbols), but the data's "
            f"dictionary has {sizes[1]}."
        )
    else:
        pair = [repr(symbols[first]) for symbols in without_mask]
        problem = f"The checkpoint's dictionary has {pair[0]} as id {first}, but the data's dictionary has {pair[1]}."
    raise CheckpointError(
        f"{description}. {problem} Binarise the data with the checkpoint's dictionary (fairseq-preprocess --srcdict)."
    )
