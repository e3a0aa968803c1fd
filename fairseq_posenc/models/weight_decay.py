"""--pos-enc-no-decay: weight decay leaves alone what an encoding names in `no_decay`.

fairseq gives its optimizers all parameters as one group with one weight decay. Torch's hooks part that group for the
time of a step and join it again: learning rates, clipping, loss scales and checkpoints see it whole, so that a
training goes on with or without the flag.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

from torch import nn
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from ..encodings import Composition

_WHOLE, _OWNER = "_posenc_whole", "_posenc_owner"


class Hooks:
    """What every optimizer of the process does before and after a step."""

    def __init__(self) -> None:
        #: how often an optimizer made a step that spared parameters
        self.steps = 0

    def part(self, optimizer: Optimizer, args: Any = (), kwargs: Any = None) -> None:
        """Before a step: spared parameters get a group of their own, which does not decay."""
        self.join(optimizer)  # what a step that failed has left
        for group in list(optimizer.param_groups):
            apart = [p for p in group["params"] if _is_spared(p)]
            if apart:
                own = {**group, "params": apart, "weight_decay": 0.0, _WHOLE: group["params"], _OWNER: group}
                group["params"] = [p for p in group["params"] if not _is_spared(p)]
                optimizer.param_groups.append(own)
        self.steps += any(_WHOLE in group for group in optimizer.param_groups)

    def join(self, optimizer: Optimizer, args: Any = (), kwargs: Any = None) -> None:
        """After it: as before, in the same order."""
        for group in optimizer.param_groups:
            if _WHOLE in group:
                group[_OWNER]["params"] = group[_WHOLE]
        optimizer.param_groups[:] = [group for group in optimizer.param_groups if _WHOLE not in group]


@functools.cache
def hooks() -> Hooks:
    """Theirs from now on, once."""
    made = Hooks()
    register_optimizer_step_pre_hook(made.part)
    register_optimizer_step_post_hook(made.join)
    return made


def _is_spared(parameter: Any) -> bool:
    overrides = getattr(parameter, "optim_overrides", None) or {}
    return overrides.get("optimizer", {}).get("weight_decay_scale") == 0


def spare(pos: Composition) -> Watch | None:
    """Mark what the members of an encoding name; None where they name nothing."""
    named = [getattr(member, name) for member in pos.members.values() for name in member.no_decay]
    for parameter in named:
        # fairseq's own mark, though none of its optimizers heeds it; --fp16's copies of parameters carry it too
        parameter.optim_overrides = {"optimizer": {"weight_decay_scale": 0}}
    return Watch(named) if named else None


class Watch(nn.Module):
    """Sees to it that the optimizer has the parameters that are marked, as it can be given copies or a flat tensor."""

    def __init__(self, parameters: Iterable[nn.Parameter]) -> None:
        super().__init__()
        self.spared = tuple(parameters)  # not registered: they belong to the encoding
        self.last, self.steps = -1, hooks().steps

    def set_num_updates(self, number: int) -> None:
        """Told by fairseq before each update.

        Raises:
            ValueError: between two calls no step has spared anything.
        """
        learning = any(parameter.requires_grad for parameter in self.spared)
        if learning and 0 <= self.last == number - 1 and hooks().steps == self.steps:
            raise ValueError(
                "--pos-enc-no-decay: the optimizer does not hold the parameters themselves; --fp16 needs "
                "--fp16-no-flatten-grads (or --memory-efficient-fp16); fully_sharded and zero-sharding do not work"
            )
        self.last, self.steps = number, hooks().steps


def refuse_without_effect(config: Any, *stacks: Any) -> None:
    """Refuse the flag where no stack names anything.

    Raises:
        ValueError: with the encodings.
    """
    if config.pos_enc_no_decay and not any(stack.no_decay for stack in stacks):
        both = " and ".join(dict.fromkeys(stack.pos.name for stack in stacks))
        raise ValueError(f"--pos-enc-no-decay has no effect: {both} would lose nothing by weight decay; leave it out")
