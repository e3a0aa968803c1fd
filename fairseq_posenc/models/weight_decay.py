"""Implement --pos-enc-no-decay: exclude parameters that an encoding lists in `no_decay` from weight decay.

fairseq gives its optimizers all parameters as one group with one weight decay. Hooks of torch split this group before
each optimizer step and join it again after the step. Learning rates, clipping, loss scales and checkpoints use the
whole group, so training can resume with or without the flag.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

from torch import nn
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from ..core.refusal import InputError
from ..encodings import Composition

_WHOLE, _OWNER = "_posenc_whole", "_posenc_owner"


class Hooks:
    """Hold the hooks that every optimizer of the process calls before and after a step."""

    def __init__(self) -> None:
        #: number of steps in which parameters were excluded from weight decay
        self.steps = 0

    def part(self, optimizer: Optimizer, args: Any = (), kwargs: Any = None) -> None:
        """Move the excluded parameters into groups without weight decay, before an optimizer step."""
        self.join(optimizer)  # undo the groups of a step that failed
        for group in list(optimizer.param_groups):
            apart = [p for p in group["params"] if _is_spared(p)]
            if apart:
                own = {**group, "params": apart, "weight_decay": 0.0, _WHOLE: group["params"], _OWNER: group}
                group["params"] = [p for p in group["params"] if not _is_spared(p)]
                optimizer.param_groups.append(own)
        self.steps += any(_WHOLE in group for group in optimizer.param_groups)

    def join(self, optimizer: Optimizer, args: Any = (), kwargs: Any = None) -> None:
        """Restore the original groups with their order of parameters, after an optimizer step."""
        for group in optimizer.param_groups:
            if _WHOLE in group:
                group[_OWNER]["params"] = group[_WHOLE]
        optimizer.param_groups[:] = [group for group in optimizer.param_groups if _WHOLE not in group]


@functools.cache
def hooks() -> Hooks:
    """Register the hooks on the first call, and return them."""
    registered = Hooks()
    register_optimizer_step_pre_hook(registered.part)
    register_optimizer_step_post_hook(registered.join)
    return registered


def _is_spared(parameter: Any) -> bool:
    overrides = getattr(parameter, "optim_overrides", None) or {}
    return overrides.get("optimizer", {}).get("weight_decay_scale") == 0


def spare(pos: Composition) -> Watch | None:
    """Mark the parameters that an encoding lists in `no_decay`.

    Return an object that checks these parameters in training, or None if the encoding lists no parameters.
    """
    named = [getattr(member, name) for member in pos.members.values() for name in member.no_decay]
    for parameter in named:
        # This is fairseq's own mark, which none of its optimizers reads. The copies of parameters for --fp16 carry it
        # too.
        parameter.optim_overrides = {"optimizer": {"weight_decay_scale": 0}}
    return Watch(named) if named else None


class Watch(nn.Module):
    """Check that the optimizer holds the marked parameters themselves, not copies or one flat tensor."""

    def __init__(self, parameters: Iterable[nn.Parameter]) -> None:
        super().__init__()
        self.spared = tuple(parameters)  # a tuple, so that the parameters stay registered with the encoding only
        self.last, self.steps = -1, hooks().steps

    def set_num_updates(self, number: int) -> None:
        """Check the previous update; fairseq calls this method before each update.

        Raises:
            ValueError: The optimizer has not excluded any parameter since the last call.
        """
        learning = any(parameter.requires_grad for parameter in self.spared)
        if learning and 0 <= self.last == number - 1 and hooks().steps == self.steps:
            raise InputError(
                "--pos-enc-no-decay has no effect, because the optimizer holds copies of the parameters. With "
                "--fp16, also give --fp16-no-flatten-grads or --memory-efficient-fp16. Leave --ddp-backend "
                "fully_sharded and --zero-sharding out."
            )
        self.last, self.steps = number, hooks().steps


def refuse_without_effect(config: Any, *stacks: Any) -> None:
    """Raise if --pos-enc-no-decay has no effect, because no stack has a parameter to exclude.

    Raises:
        ValueError: --pos-enc-no-decay has no effect; the message names the encodings.
    """
    if config.pos_enc_no_decay and not any(stack.no_decay for stack in stacks):
        both = " and ".join(dict.fromkeys(stack.pos.name for stack in stacks))
        raise InputError(f"--pos-enc-no-decay has no effect: it excludes no parameter of {both}. Leave it out.")
