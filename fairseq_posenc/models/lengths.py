"""Check that the encoding of a pretrained model is defined for the lengths of the fine-tuning data."""

from __future__ import annotations

import torch

from ..core.options import names
from ..core.refusal import InputError
from ..encodings import Composition, build
from ..hub.ids import Pretrained
from .finetuning import encoding


def fine_tuned(pretrained: Pretrained, args: str | None = None, segments: str = "none") -> Composition:
    """Return the encoding that fine-tuning will use for a pretrained model.

    The tensors of the encoding are on the meta device, so they take no memory.

    Args:
        pretrained: Model to fine-tune.
        args: Value of --pos-enc-args, added to the options of the pretrained model.
        segments: Value of --segments, a key of `SEGMENTS`.
    Raises:
        ValueError: An option does not belong to the encoding, or the model already has segments of another kind.
    """
    own = pretrained.config
    with torch.device("meta"):
        return build(*encoding(own, None, args, segments), own.stack)


def check_length(pos: Composition, longest: int, items: str, advice: str, args_flag: str = "--pos-enc-args") -> None:
    """Raise if the longest item has more positions than the encoding is defined for.

    Args:
        pos: Encoding of the model.
        longest: Length of the longest item, in pieces.
        items: Name of the items for the error message, in the plural.
        advice: Advice for the error message, in which LIMIT is replaced by the maximum number of positions.
        args_flag: Flag that sets the encoding's options; the error message names this flag if an option can extend a
            table.
    Raises:
        ValueError: An item is too long; the message says what to do.
    """
    if pos.limit is None or longest <= pos.limit:
        return
    advice = advice.replace("LIMIT", str(pos.limit))
    too_short = [name for name, member in pos.members.items() if member.limit is not None and member.limit < longest]
    extendable = [name for name, member in pos.members.items() if "extend" in names(type(member.options))]
    if set(too_short) <= set(extendable):
        # if several members have the option, its name begins with the member's name
        owners = [f"{name.replace('-', '_')}." if len(extendable) > 1 else "" for name in too_short]
        repeat = ",".join(f"{owner}extend=repeat" for owner in owners)
        between = ",".join(f"{owner}extend=interpolate,{owner}extend_to={longest}" for owner in owners)
        advice += f" Or extend its table: {args_flag} {repeat}, or {between}."
    raise InputError(f"{items} have up to {longest} pieces, but {pos} is defined up to {pos.limit} positions. {advice}")
