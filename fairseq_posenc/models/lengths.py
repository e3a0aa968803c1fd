"""Whether the encoding of a pretrained model is defined for what it is fine-tuned on, before rows are dropped."""

from __future__ import annotations

from dataclasses import replace

import torch

from ..core.options import names
from ..encodings import Composition, build
from ..hub.convert import as_it_is
from ..hub.pretrained import Pretrained
from .finetuning import encoding


def fine_tuned(found: Pretrained, args: str | None = None, segments: str = "none") -> Composition:
    """The encoding of a pretrained model, as its fine-tuning will have it; without memory for its tables.

    Args:
        args: --pos-enc-args, added to its own. segments: a key of `SEGMENTS`.
    Raises:
        ValueError: options that it has not; segments in two ways.
    """
    own = replace(found.config, pos_enc=as_it_is(found.config, found.tensors))
    with torch.device("meta"):
        return build(*encoding(own, None, args, segments), own.stack)


def check_length(pos: Composition, longest: int, what: str, cure: str, extending: str = "--pos-enc-args") -> None:
    """Refuse what has up to `longest` pieces where that is beyond what the encoding defines.

    Args:
        what: has so many pieces. cure: what a user can do besides extending a table; LIMIT in it is the number.
        extending: what comes before the options that extend one.
    Raises:
        ValueError: with what can be done.
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
