"""Use no position encoding, which is called NoPE in decoders."""

from __future__ import annotations

from dataclasses import replace

from ..core.base import RELATIVE, Facts, PositionEncoding


class NoEncoding(PositionEncoding):
    """Use no positions: e_ij = q_i·k_j / sqrt(D). An encoder without positions is permutation-equivariant.

    With the option `window`, `none` limits attention in its layers to near tokens, also for the other encodings of
    these layers: `learned+none[window=64]`.
    """

    facts = Facts(
        title="No position encoding",
        family="no positions",
        paper="Huang et al., M4M (arXiv) section 5; NoPE: Haviv et al. 2022",
        equation="equation (5) without positions",
        formula=r"e_{ij} = \frac{q_i \cdot k_j}{\sqrt{D}}",
    )

    capabilities = replace(RELATIVE, directional=False)
    uses_positions = False
