"""Implement GCDF: Transformer-XL with Gaussian distribution functions of the distance instead of sinusoids."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ..core.base import Facts
from ..core.options import option
from .xl import XL, XLOptions


@dataclass(frozen=True)
class GCDFOptions(XLOptions):
    """Define the options of GCDF."""

    lambda_: float = option(
        4.0,
        "Height lambda of the Gaussian distribution functions, which are close to 0 for keys far to the right and "
        "close to lambda for keys far to the left.",
        between=(1e-6, 1e6),
        example=2.0,
    )


class GCDF(XL):
    """GCDF is Transformer-XL's encoding (`xl`) with R_p[k] = lambda Phi(p / sigma_k) for p = i - j, sigma_k = d^(k/d)
    and k = 1..d.

    Phi is the Gaussian distribution function. This code computes R_p for any distance p, whereas code of the first
    author (mt-llm-code, others/rpe_bert.py, for BERT; the repository that the paper names is empty) uses -p instead of
    p if p lies beyond its table. The projection is applied to R - lambda/2. Subtracting lambda/2 changes all logits of
    a query by the same number, so the softmax stays the same. The subtraction also reduces rounding errors in half
    precision.
    """

    Options = GCDFOptions
    facts = Facts(
        title="GCDF: projected Gaussian distribution functions of the distance",
        family="relative vectors",
        paper="Qu et al. 2021 (LFHC, GCDF)",
        equation="equations (8), (14) and (15)",
        formula=r"e_{ij} = \frac{(q_i + u) \cdot k_j + (q_i + v) \cdot W_r R_{i-j}}{\sqrt{D}},\quad"
        r" R_{p,k} = \lambda\,\Phi(p / d^{k/d})",
        count="m (d^2 + 2 d). With `biases=tied`, the number of parameters is m d^2 + 2 d. With `biases=none`, the "
        "number of parameters is m d^2.",
    )
    options: GCDFOptions

    def encode(self, p: Tensor) -> Tensor:
        dim = self.stack.dim
        widths = torch.exp(torch.arange(1, dim + 1, dtype=torch.float64, device=p.device) * (math.log(dim) / dim))
        return self.options.lambda_ / 2 * torch.erf(p[:, None] / (widths * 2**0.5))

    def reference_encode(self, p: Tensor) -> Tensor:
        dim = self.stack.dim
        rows = [torch.special.ndtr(p.double() / dim ** (k / dim)) for k in range(1, dim + 1)]
        return self.options.lambda_ * torch.stack(rows, -1)
