"""Compute the sum (M4) or product (M4M) of q·k, q·a and k·a, where a is a relative vector (Huang et al.)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from ..core import tables
from ..core.base import CLS_AGAINST_DOCUMENTS, RELATIVE, Capabilities, Facts, Layer, StackShape
from ..core.options import Options, option
from ..core.refusal import InputError
from ..core.relative import RelativeTable
from ..ops import single_query, toeplitz
from ..ops.precision import promoted
from ..positions import Positions


@dataclass(frozen=True)
class M4Options(Options):
    """Define the options of M4."""

    clip: int | None = tables.clip_option()
    share: str = tables.share_option("head-wise")
    scale: float = option(
        1.0,
        "Scale s: all three terms are divided by sqrt(s D).",
        between=(1e-6, 1e6),
        example=3.0,
    )
    reset: str = option(
        "none",
        "How to treat pairs that contain [CLS]: use special relative vectors (vector), use learned scalars instead of "
        "both position terms (scalar), or treat these pairs like all others (none).",
        choices=("none", "vector", "scalar"),
    )
    init: str = tables.init_option("normal")
    init_std: float | None = tables.init_std_option()


class M4(RelativeTable):
    """M4 adds the products of query and key with a relative vector: (q_i·k_j + q_i·a_ij + k_j·a_ij) / sqrt(s D).

    Query and key use the same vector a_ij = w[clip(j - i, -k, k)]. `scale` is the s in the ablation of the M4M papers;
    it is 1 in all their other experiments.

    The option `reset` turns M4 into M4+Reset, equation (19) of M4M (arXiv). If i is [CLS], a_ij is theta_1 for every j;
    otherwise, if j is [CLS], a_ij is theta_2. With `reset=scalar`, as in equation (19), the scalars replace q_i·a_ij +
    k_j·a_ij. Unlike in TUPE, the scalars are divided by sqrt(s D). A scalar theta_1 adds the same number to all logits
    of [CLS], so it has no effect after the softmax. Layers and heads share theta as they share w. With `reset=vector`,
    theta is initialised like w; with `reset=scalar`, it starts at zero. With reset, a sequence cannot consist of
    several documents, because only the first document begins with [CLS].
    """

    Options = M4Options
    facts = Facts(
        title="M4: all pairs of query, key and relative vector",
        family="relative vectors",
        paper="Huang et al. 2020 (M1-M4), equations (14) and (16); Huang et al., M4M (arXiv)",
        equation="equation (12), and equation (19) for the option `reset`",
        formula=r"e_{ij} = \frac{q_i \cdot k_j + q_i \cdot a_{ij} + k_j \cdot a_{ij}}{\sqrt{s D}},"
        r"\quad a_{ij} = w_{\mathrm{clip}(j-i,-k,k)}",
        count="m (2k+1) d/h, where k is `clip` (n-1 if unset). `reset=vector` adds 2 m d/h, and `reset=scalar` adds "
        "2 m. With `share=none`, the sum is multiplied by h.",
        notes=f"{tables.PER_HEAD} In the authors' code and in the later M4M paper, the heads of a layer also share "
        "their table, although Figure 4 of the M1-M4 paper shows a table of the first head.",
    )
    options: M4Options
    theta: Tensor

    def __init__(self, options: M4Options, stack: StackShape) -> None:
        _check_reset(options, stack)
        super().__init__(options, stack)

    @classmethod
    def shapes(cls, options: M4Options, stack: StackShape) -> dict[str, tuple[int, ...]]:
        shapes = super().shapes(options, stack)
        if options.reset != "none":
            vectors = (stack.head_dim,) if options.reset == "vector" else ()
            shapes["theta"] = tables.shape(options.share, stack, 2, *vectors)
        return shapes

    def reset_parameters(self) -> None:
        super().reset_parameters()
        if self.options.reset == "scalar":
            nn.init.zeros_(self.theta)

    against_documents = CLS_AGAINST_DOCUMENTS

    @property
    def capabilities(self) -> Capabilities:
        if self.options.reset == "none":
            return RELATIVE
        return replace(RELATIVE, causal=False, memory=False, documents=False, shift_invariant=False)

    @property
    def constant_along_row(self) -> tuple[str, ...]:
        return ("theta[..., 0]",) if self.options.reset == "scalar" else ()

    @property
    def scale(self) -> float | None:
        return None if self.options.scale == 1 else self._factor

    @property
    def _factor(self) -> float:
        """Return the factor by which all three terms are multiplied."""
        return float((self.options.scale * self.stack.head_dim) ** -0.5)

    def per_layer(self, positions: Positions) -> list[dict[str, Tensor]]:
        """Return the tables of each layer, scaled. They are smaller than q and k, because all samples share them."""
        by_layer = super().per_layer(positions)
        return [{name: promoted(table) * self._factor for name, table in own.items()} for own in by_layer]

    def content_bias(self, q: Tensor, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        weight, rows, resets = layer.tensors["weight"], self.rows(positions), self.options.reset != "none"
        # A reset overwrites terms of the bias, so the bias must not include the content.
        of_keys = toeplitz.key_product(k, weight, positions, rows, None if resets else layer.content)
        bias = toeplitz.query_product(q, weight, positions, rows) + of_keys
        if not resets:
            return bias
        theta = layer.tensors["theta"]
        if self.options.reset == "vector":
            return overwritten(bias, *_of_vectors(q, k, theta.to(q.dtype), positions), positions)
        from_cls, to_cls = theta[None, ..., None, None].unbind(2)
        return overwritten(bias, from_cls, to_cls, positions)

    def reference(self, q: Tensor, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        a = self.literal(positions, layer).expand(len(q), -1, -1, -1, -1)
        content = torch.einsum("bhid,bhjd->bhij", q, k)
        if self.options.reset == "vector":
            a = self._literal_reset(a, positions, layer)
        terms = torch.einsum("bhid,bhijd->bhij", q, a) + torch.einsum("bhjd,bhijd->bhij", k, a)
        if self.options.reset == "scalar":
            terms = self._literal_reset(terms, positions, layer)
        return (content + terms) / (self.options.scale * q.shape[-1]) ** 0.5

    def _literal_reset(self, v: Tensor, positions: Positions, layer: Layer) -> Tensor:
        """Set the entries of pairs that contain [CLS] in v, [B, h, Q, K] or [B, h, Q, K, D], to theta (equation 19)."""
        assert positions.cls_column is not None
        theta = tables.of_layer(self.theta, layer.rank, self.stack.heads)
        v = v.clone()
        for b, cls in enumerate(positions.cls_column.tolist()):
            v[b, :, :, cls] = theta[:, 1, None]
            v[b, :, cls - positions.offset] = theta[:, 0, None]
        return v


@dataclass(frozen=True)
class M4MOptions(Options):
    """Define the options of M4M."""

    clip: int | None = tables.clip_option()
    share: str = tables.share_option("head-wise")
    gate_offset: float = option(
        0.0,
        "Offset o in (q.k) (o + q.a) (o + k.a); the paper has no offset. With o = 1 and a table of small numbers, "
        "adding M4M hardly changes the outputs of a model that was trained without positions.",
        between=(0, 1000),
        example=1.0,
    )
    init: str = tables.init_option("normal")
    init_std: float | None = tables.init_std_option(unset="D^-0.5")

    def __post_init__(self) -> None:
        o = self.gate_offset
        if o < 0:
            raise InputError(
                f"gate_offset={o} must not be negative: use {-o}, which gives the same model if the table is negated"
            )
        super().__post_init__()
        if not o and (self.init == "zeros" or self.init_std == 0):
            raise InputError(
                "with gate_offset=0, a table of zeros never learns, because all its gradients are zero: choose another "
                "init or init_std"
            )


class M4M(RelativeTable):
    """M4M multiplies three dot products: e_ij = (q_i·k_j) (q_i·a_ij) (k_j·a_ij) / sqrt(D), with a_ij as in M4.

    Without `gate_offset`, a table of zeros is refused, because all its gradients would be zero. The table starts from
    a normal distribution with standard deviation D^-0.5. With the usual standard deviation 0.02, the first logits would
    be a hundred times smaller than without positions and would grow slowly.

    The option `gate_offset` is not in the paper: (q_i·k_j) (o + q_i·a_ij) (o + k_j·a_ij) / sqrt(D). With o = 1 and a
    table of small numbers, adding M4M hardly changes the outputs of a model that was trained without positions.
    """

    Options = M4MOptions
    facts = Facts(
        title="M4M: the product of all pairs",
        family="multiplicative",
        paper="Huang et al., M4M (arXiv)",
        equation="equation (20)",
        formula=r"e_{ij} = \frac{(q_i \cdot k_j)\, (q_i \cdot a_{ij})\, (k_j \cdot a_{ij})}{\sqrt{D}},"
        r"\quad a_{ij} = w_{\mathrm{clip}(j-i,-k,k)}",
        count="m (2k+1) d/h, where k is `clip` (n-1 if unset)",
        notes="The paper does not have the option `gate_offset`.",
    )
    options: M4MOptions
    no_decay = ("weight",)  # decay would pull the table towards zeros, where all gradients are zero

    @property
    def default_std(self) -> float:
        return float(self.stack.head_dim**-0.5)

    def scores(self, q: Tensor, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        weight, rows, offset = layer.tensors["weight"], self.rows(positions), self.options.gate_offset
        scaled, of_query = q * q.shape[-1] ** -0.5, toeplitz.query_product(q, weight, positions, rows)
        if toeplitz.is_single(positions):
            both = single_query.of_query_and_of_keys(k, toeplitz.by_distance(weight, rows), scaled)
        else:
            content = torch.matmul(scaled, k.transpose(-1, -2))
            both = content, toeplitz.key_product(k, weight, positions, rows)
        content, of_key = map(promoted, both)
        return content * (of_query + offset) * (of_key + offset) if offset else content * of_query * of_key

    def reference(self, q: Tensor, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        a, o = self.literal(positions, layer), self.options.gate_offset
        of_query = o + torch.einsum("bhid,hijd->bhij", q, a)
        of_key = o + torch.einsum("bhjd,hijd->bhij", k, a)
        return torch.einsum("bhid,bhjd->bhij", q, k) * of_query * of_key / q.shape[-1] ** 0.5


def overwritten(bias: Tensor, from_cls: Tensor, to_cls: Tensor, positions: Positions) -> Tensor:
    """Replace the row and the column of [CLS] in `bias` [B, h, Q, K]; where they cross, the new row applies.

    Args:
        bias: Bias to overwrite, possibly in place.
        from_cls: New row of [CLS], [1 or B, h, 1, 1 or K].
        to_cls: New column of [CLS], [1 or B, h, 1 or Q, 1].
        positions: Positions that contain `cls_column`.
    """
    assert positions.cls_column is not None
    common = positions.common_cls_column
    if common is None:
        columns = torch.arange(positions.key_length, device=bias.device) == positions.cls_column[:, None]
        bias = torch.where(columns[:, None, None, :], to_cls, bias)
        return torch.where(columns[:, None, positions.offset :, None], from_cls, bias)
    bias[..., common : common + 1] = to_cls
    if common >= positions.offset:
        bias[:, :, common - positions.offset, None] = from_cls
    return bias


def _of_vectors(q: Tensor, k: Tensor, theta: Tensor, positions: Positions) -> tuple[Tensor, Tensor]:
    """Return (q_cls + k_j)·theta_1 [B, h, 1, K] and (q_i + k_cls)·theta_2 [B, h, Q, 1]; theta [1 or h, 2, D]."""
    assert positions.cls_column is not None
    of_queries = promoted(torch.matmul(q, theta.transpose(-1, -2)))  # (B, h, Q, 2)
    of_keys = promoted(torch.matmul(k, theta.transpose(-1, -2)))
    column = positions.cls_column[:, None, None, None].expand(-1, q.shape[1], -1, -1)
    at_query = of_queries[..., :1].gather(2, (column - positions.offset).clamp(min=0))
    at_key = of_keys[..., 1:].gather(2, column)
    return (at_query + of_keys[..., :1]).transpose(-1, -2), of_queries[..., 1:] + at_key


def _check_reset(options: M4Options, stack: StackShape) -> None:
    if options.reset != "none" and stack.causal:
        raise InputError(f"reset={options.reset} is for encoders, but this stack is a decoder: set reset=none")
    if options.reset != "none" and not stack.has_cls:
        raise InputError(f"reset={options.reset} needs a [CLS], which this architecture does not have: set reset=none")
