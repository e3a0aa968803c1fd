"""Explain why a checkpoint does not fit the model or the dictionary, and what to do.

At most, fairseq says 'please ensure that the architectures match'. If all shapes fit, it says nothing, even for a
dictionary in another order or another number of heads. Such a model loads and computes nonsense.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..compat import checkpoint_names
from ..compat.checkpoints import CheckpointError, as_dict, safe_load, settings_of
from ..compat.patching import replace
from .misfit_words import Settings, differences, refusal

logger = logging.getLogger(__name__)

#: All shapes may fit although these settings differ. Different heads are always an error; the others only give a
#: warning.
_HEADS = ("encoder_attention_heads", "decoder_attention_heads")
_MEANT = ("pos_enc", "pos_enc_args", "pos_enc_defaults", "activation_fn", "layer_norm_eps")
_FAILED = "Cannot load model parameters from checkpoint"


def name_misfits() -> None:
    """Make fairseq compare a checkpoint with the model and the dictionary when it loads it (trainer.py:465)."""
    from fairseq.trainer import Trainer

    replace(Trainer, "load_checkpoint", _compared)


def _compared(original: Callable[..., Any], trainer: Any, filename: str, *args: Any, **kwargs: Any) -> Any:
    # Training builds only what the command line names, never what the checkpoint names. So all names are allowed.
    with checkpoint_names.allowing_all():
        state = None if getattr(trainer, "is_fsdp", False) else _state(filename)
        if state is None:
            return original(trainer, filename, *args, **kwargs)
        theirs = {**_length(settings_of(state, "task")), **settings_of(state, "model")}
        mine = {**_length(as_dict(trainer.cfg.task)), **as_dict(trainer.cfg.model)}
        _check_dictionary(trainer.task, state, filename)
        if wrong := differences(theirs, mine, _HEADS):
            raise CheckpointError(refusal(filename, wrong, [], theirs, mine))
        try:
            loaded = original(trainer, filename, *args, **kwargs)
        except Exception as error:
            if not str(error).startswith(_FAILED):
                raise
            raise CheckpointError(refusal(filename, None, _misfits(trainer, state), theirs, mine)) from error
    for difference in differences(theirs, mine, _MEANT):
        logger.warning(f"{filename} is loaded all the same, but it was trained otherwise: {difference}")
    return loaded


def _state(filename: str) -> Any:
    """Return the checkpoint with its tensors memory-mapped; None if fairseq itself reports the problem."""
    if not os.path.isfile(filename):
        return None
    for mapped in ({"mmap": True}, {}):  # files in the old format cannot be memory-mapped
        try:
            state = safe_load(filename, **mapped)
        except CheckpointError:
            continue
        return state if isinstance(state, dict) and isinstance(state.get("model"), dict) else None
    return None


def _length(task: Settings) -> Settings:
    """Return the length from the task's options, which models without --max-positions use."""
    return {name: task[name] for name in ("tokens_per_sample",) if task.get(name)}


def _misfits(trainer: Any, state: Mapping[str, Any]) -> list[str]:
    """Return a line for each weight that does not fit."""
    model, found = trainer.get_model(), dict(state["model"])
    model.upgrade_state_dict(found)  # rename the weights of older versions
    wanted = model.state_dict()
    shapes = [name for name in wanted if name in found and found[name].shape != wanted[name].shape]
    told = [f"{name} is {list(found[name].shape)} in it, {list(wanted[name].shape)} in the model" for name in shapes]
    told += [f"it has no {name}" for name in wanted if name not in found]
    return told + [f"the model has no {name}" for name in found if name not in wanted]


def _check_dictionary(task: Any, state: Mapping[str, Any], filename: str) -> None:
    """Raise if the data have another dictionary than the checkpoint.

    The checkpoint's dictionary is the one in its folder or in the data that it was trained on.
    """
    from fairseq.data import Dictionary

    from ..hub.pretrained import dictionary_of

    mine = getattr(task, "source_dictionary", None)
    found = dictionary_of(Path(filename), settings_of(state, "task"))
    rows = [tensor.shape[0] for name, tensor in state["model"].items() if name.endswith("embed_tokens.weight")]
    if not isinstance(mine, Dictionary) or found is None or not rows:
        return
    theirs, ours = Dictionary.load(str(found)).symbols, mine.symbols
    if not len(theirs) <= rows[0] <= len(theirs) + 1:  # tasks add <mask>
        return  # the file was replaced after the training
    if theirs[mine.nspecial :] == [str(number) for number in range(mine.nspecial, len(theirs))]:
        return  # import-hf writes numbers for a model without a vocabulary
    told = f"{filename} has the dictionary {found}"
    if _numbers(theirs[mine.nspecial :]) == _numbers(ours[mine.nspecial :]):
        _compare(theirs, ours, told)
    elif _numbers(ours[mine.nspecial :]):
        _compare(theirs, _spelled(ours, mine.nspecial, _encoder(task), theirs, told), told)
    else:
        _compare(_spelled(theirs, mine.nspecial, _beside(found.parent), ours, told), ours, told)


def _numbers(symbols: Sequence[str]) -> bool:
    """Return whether the symbols are GPT-2's numbers, as in fairseq's RoBERTa; <mask> and fillers are ignored."""
    named = [symbol for symbol in symbols if symbol != "<mask>" and not symbol.startswith("madeupword")]
    return bool(named) and all(symbol.isdecimal() for symbol in named)


def _encoder(task: Any) -> Path | None:
    """Return the path of the data's encoder.json: --gpt2-encoder-json if set, otherwise the one in tokenizer/."""
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
    symbols: Sequence[str], specials: int, encoder: Path | None, others: Sequence[str], told: str
) -> Sequence[str]:
    """Return the pieces that a dictionary of GPT-2's numbers stands for.

    Without encoder.json, the pieces are unknown. Then return the symbols of `others` up to the same length, so that
    only the sizes are compared.

    Raises:
        CheckpointError: The encoder.json cannot be read, or does not have all of the numbers.
    """
    from ..data.words import gpt2_pieces

    if encoder is None:
        logger.warning(
            f"{told}: of it and that of the data one has GPT-2's numbers, the other one pieces, so only their sizes "
            "are compared. For the rest lay GPT-2's encoder.json into tokenizer/ beside the dict.txt with numbers, or "
            "a folder higher"
        )
        return [*others[: len(symbols)], *symbols[len(others) :]]
    try:
        return [*symbols[:specials], *gpt2_pieces(symbols[specials:], encoder)]
    except (OSError, ValueError, AttributeError) as error:
        raise CheckpointError(f"{told}, which cannot be compared with that of the data: {error}") from None


def _compare(theirs: Sequence[str], ours: Sequence[str], told: str) -> None:
    without_mask = [[symbol for symbol in symbols if symbol != "<mask>"] for symbols in (theirs, ours)]
    if without_mask[0] == without_mask[1]:
        return
    pairs = zip(*without_mask, strict=False)
    first = next((i for i, (one, other) in enumerate(pairs) if one != other), None)
    if first is None:
        what = f"of {len(without_mask[0])} symbols with <s> and its kin, and the data one of {len(without_mask[1])}"
    else:
        what = f"in which id {first} is {without_mask[0][first]!r}, in that of the data {without_mask[1][first]!r}"
    raise CheckpointError(f"{told}, {what}: binarise the data with that one (fairseq-preprocess --srcdict)")
