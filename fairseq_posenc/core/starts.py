"""Initialise the parameters of encodings."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from .refusal import InputError


def draw(weight: Tensor, init: str, std: float | None, gain: float = 1.0, unset: float = 0.02) -> None:
    """Initialise a table [R, D], or tables [L or 1, h or 1, ...], in place.

    Args:
        weight: The table or tables.
        init: The option `init`.
        std: The option `init_std`; None if the user did not set it.
        gain: Gain of `xavier-uniform`.
        unset: Standard deviation of `normal` if `std` is None.

    Raises:
        ValueError: The user set a standard deviation, but `init` does not use one.
    """
    if std is not None and init != "normal":
        raise InputError(f"init_std={std} has no effect with init={init}: leave it out, or set init=normal")
    if init == "normal":
        nn.init.normal_(weight, std=unset if std is None else std)
    elif init == "xavier-uniform":
        tables = weight.detach()
        for table in tables[None] if tables.dim() == 2 else tables.flatten(0, 1):  # use fan-in and fan-out of one table
            nn.init.xavier_uniform_(table if table.dim() > 1 else table[None], gain=gain)
    else:
        nn.init.constant_(weight, 1.0 if init == "ones" else 0.0)


def draw_with_matrices(encoding: nn.Module, options: Any, *matrices: str) -> None:
    """Initialise all parameters of an encoding.

    The table `weight` follows the options `init` and `init_std`. The parameters named in `matrices` are drawn from
    N(0, 0.02). `norm_weight`, which holds the factors of a layer norm, becomes 1. All other parameters become 0.
    """
    for name, parameter in encoding.named_parameters():
        if name == "weight":
            draw(parameter, options.init, options.init_std)
        elif name in matrices:
            nn.init.normal_(parameter, std=0.02)
        else:
            nn.init.constant_(parameter, float(name == "norm_weight"))
