"""Implement scalable softmax: logits that grow with the logarithm of the number of keys (Nakanishi 2025; Llama 4)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from ..core import tables
from ..core.base import RELATIVE, Capabilities, Cost, Facts, Layer, PositionEncoding, StackShape
from ..core.options import Options, option
from ..core.refusal import InputError
from ..ops.precision import promoted
from ..positions import Positions

#: Initial value of s in the paper: 1 divided by the mean of log n over the lengths n from 1 to 1024.
START = 0.168
#: Numbers of Llama 4, which Hugging Face calls attn_scale and floor_scale.
STRENGTH, INTERVAL = 0.1, 8192


@dataclass(frozen=True)
class LognOptions(Options):
    """Define the options of scalable softmax."""

    form: str = option(
        "learned",
        "Factor on the logits of a query that may attend to n keys: s log n with a learned s (learned), or the fixed "
        "1 + strength * log(floor(n / interval) + 1) of Llama 4 (llama4).",
        choices=("learned", "llama4"),
    )
    share: str = tables.share_option("none")
    init_value: float | None = option(
        None, f"Initial value of s, with form=learned (unset: {START}).", between=(0.001, 100), example=0.5
    )
    strength: float | None = option(
        None,
        f"Number by which form=llama4 multiplies the logarithm (unset: {STRENGTH}).",
        between=(0.001, 100),
        example=0.5,
    )
    interval: int | None = option(
        None,
        f"Number of keys after which the factor of form=llama4 grows, always in steps (unset: {INTERVAL}).",
        between=(1, 10_000_000),
        example=2,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        others = ("strength", "interval") if self.form == "learned" else ("share", "init_value")
        for name in others:
            if getattr(self, name) != type(self).__dataclass_fields__[name].default:
                raise InputError(f"{name} has no effect with form={self.form}: leave {name} out, or change form")


class Logn(PositionEncoding):
    """Scalable softmax multiplies all logits of query i by s_h log n_i, where n_i is the number of keys that i sees.

    The softmax over more keys is flatter; the factor makes up for that. The factor multiplies the sum of the content
    product and all biases, after every other encoding of the layer. It does not replace an encoding of positions:
    `rope+logn` and, in decoders, `none+logn` are the usual combinations.

    - Index: n_i counts query i's own key. In a decoder without padding, n_i = i + 1 for i = 0, 1, ...; in an encoder,
      all queries of a sample have the same n_i. Padding, keys of other documents and keys outside of a window are not
      counted; keys in a cache and in segment memory are. A query that sees one key has the factor 0 with form=learned,
      which does not change its attention.
    - form=learned: s is a parameter of each layer and head (`share`), m h numbers, with the initial value 0.168 of the
      paper, at which the mean factor over 1024 tokens is 1. The paper's bias b, which it advises against, is left out.
    - form=llama4: the factor is 1 + a ln(floor(n_i / b) + 1), without parameters. Llama 4 has a = 0.1 and b = 8192, in
      its layers without RoPE (set the option `layers` of `rope` and `logn`). Llama 4 reads the position i + 1 in place
      of n_i, which is the same number in a decoder with neither padding, documents nor a window.

    Golden values: with s = 1 and n = 4, a logit of 1 becomes ln 4 = 1.386294. With a = 0.1 and b = 2, the factors of
    the first five queries of a decoder are 1, 1.069315, 1.069315, 1.109861 and 1.109861.
    """

    Options = LognOptions
    facts = Facts(
        title="Scalable softmax: log n",
        family="growing logits",
        paper="Nakanishi 2025 (Scalable-Softmax); Llama 4 (form=llama4)",
        equation="equation (2), applied to each query",
        formula=r"e_{ij} = s_h \log n_i \cdot \frac{q_i \cdot k_j}{\sqrt{D}}",
        count="m h",
        notes="In other code, scalable softmax is called SSMax, log-n scaling or attention temperature tuning.",
    )
    options: LognOptions

    #: Weight decay would make the attention uniform.
    no_decay = ("weight",)
    uses_positions = False
    in_blocks = True  # the keys that a query sees are in its block
    costs = (Cost("mhn", "mhn"),)

    def __init__(self, options: LognOptions, stack: StackShape) -> None:
        length, flag = stack.longest
        if options.form == "llama4" and (options.interval or INTERVAL) > length:
            raise InputError(
                f"form=llama4 has no effect on sequences of fewer tokens than interval={options.interval or INTERVAL}, "
                f"but the longest has {length} ({flag}): set a smaller interval"
            )
        super().__init__(options, stack)

    def check_window(self, window: int) -> None:
        keys = window if self.stack.causal else window // 2 * 2 + 1
        interval = self.options.interval or INTERVAL
        if self.options.form == "llama4" and keys < interval:
            raise InputError(
                f"form=llama4 has no effect with window={window}, because a query sees at most {keys} keys, which are "
                f"fewer than interval={interval}: set a smaller interval, or a larger window"
            )
        if keys == 1:
            raise InputError(
                f"window={window} leaves a query only its own key, so that this encoding has no effect: set a larger "
                "window"
            )

    @property
    def capabilities(self) -> Capabilities:
        """Return what a relative encoding can do. In a decoder, the factor depends on the query's position."""
        return replace(RELATIVE, directional=False, shift_invariant=not self.stack.causal)

    @classmethod
    def shapes(cls, options: Any, stack: StackShape) -> dict[str, tuple[int, ...]]:
        if options.form != "learned":
            return {}
        return {"weight": tables.shape(options.share, stack)}

    def reset_parameters(self) -> None:
        """Set s to `init_value`, by default to the paper's 0.168."""
        nn.init.constant_(self.weight, START if self.options.init_value is None else self.options.init_value)

    def row_factor(self, positions: Positions, layer: Layer) -> Tensor:
        count = positions.visible.clamp(min=1)[:, None, :, None]
        if self.options.form == "learned":
            s = promoted(layer.tensors["weight"])[:, None, None]  # [h or 1, 1, 1]
            return s * count.to(s.dtype).log()
        strength, interval = self.options.strength or STRENGTH, self.options.interval or INTERVAL
        return 1 + strength * (count // interval + 1).double().log()

    def reference_row_factor(self, positions: Positions, layer: Layer) -> Tensor:
        samples, queries = positions.batch or 1, positions.query_length
        n = torch.tensor([[max(1, _keys_seen(positions, b, i)) for i in range(queries)] for b in range(samples)])
        if self.options.form == "learned":
            s = tables.of_layer(self.weight, layer.rank, self.stack.heads)
            return torch.stack([s_h * n.double().log() for s_h in s], 1)[..., None]
        a, b = self.options.strength or STRENGTH, self.options.interval or INTERVAL
        factors = [[1 + a * math.log(math.floor(count / b) + 1) for count in row] for row in n.tolist()]
        return torch.tensor(factors, dtype=torch.float64)[:, None, :, None]


def _keys_seen(positions: Positions, sample: int, row: int) -> int:
    """Count the keys to which the query in a row of a sample may attend, as the mask of the softmax says."""
    if (mask := positions.allowed) is None:
        return positions.key_length
    return sum(mask[min(sample, len(mask) - 1), row].tolist())
