"""Check that the encoding of a pretrained model is defined for the lengths of the fine-tuning data."""

from __future__ import annotations

from dataclasses import replace

import torch

from ..core.options import names
from ..encodings import Composition, build
from ..hub.convert import as_it_is
from ..hub.pretrained import Pretrained
from .finetuning import encoding


def fine_tuned(found: Pretrained, args: str | None = None, segments: str = "none") -> Composition:
    """Return the encoding that fine-tuning will use for a pretrained model, built on the meta device without memory.

    Args:
        found: The pretrained model.
        args: --pos-enc-args, added to the options of the pretrained model.
        segments: A key of `SEGMENTS`.
    Raises:
        ValueError: The encoding does not have an option, or segments are added twice.
    """
    own = replace(found.config, pos_enc=as_it_is(found.config, found.tensors))
    with torch.device("meta"):
        return build(*encoding(own, None, args, segments), own.stack)


def check_length(pos: Composition, longest: int, what: str, cure: str, extending: str = "--pos-enc-args") -> None:
    """Raise if the longest item is longer than the encoding defines.

    Args:
        pos: The encoding.
        longest: Length of the longest item, in pieces.
        what: Name of the items in the message, in the plural.
        cure: What the user can do besides extending a table; LIMIT in it is replaced by the number of positions.
        extending: Flag of the options that extend a table.
    Raises:
        ValueError: An item is too long; the message says what to do.
    """
    if pos.limit is None or longest <= pos.limit:
        return
    cure = cure.replace("LIMIT", str(pos.limit))
    short = [name for name, one in pos.members.items() if one.limit is not None and one.limit < longest]
    having = [name for name, one in pos.members.items() if "extend" in names(type(one.options))]
    if set(short) <= set(having):
        # an option that several members have is written with its owner
        owners = [f"{name.replace('-', '_')}." if len(having) > 1 else "" for name in short]
        repeat = ",".join(f"{owner}extend=repeat" for owner in owners)
        between = ",".join(f"{owner}extend=interpolate,{owner}extend_to={longest}" for owner in owners)
        cure += f"; or {extending} {repeat}, or {between}"
    raise ValueError(f"{what} have up to {longest} pieces, {pos} is defined up to {pos.limit} positions: {cure}")
