"""Compare XL with XLNet, and GCDF with SciPy."""

from __future__ import annotations

import pytest
import torch
from oracle_ways import (
    DIM,
    HEADS,
    KEYS,
    LAYER,
    MODELS,
    Mine,
    Peer,
    Problem,
    Way,
    both_dtypes,
    difference,
    differs,
    oracle,
    tolerance,
    ways,
)
from torch import Tensor, nn


def linear(weight: Tensor, bias: Tensor | None = None) -> nn.Linear:
    """Return a linear projection with this weight."""
    made = nn.Linear(*reversed(weight.shape), bias=bias is not None, dtype=weight.dtype)
    made.load_state_dict({"weight": weight} | ({} if bias is None else {"bias": bias}))
    return made


def give(mine: Mine, weight: Tensor, u: Tensor, v: Tensor) -> None:
    """Copy W_r, u and v of our layer to the peer."""
    xl = mine.encoding
    for ours, theirs in ((xl.weight, weight), (xl.u, u), (xl.v, v)):
        ours[LAYER - 1] = theirs


# -- XLNet: both directions ------------------------------------------------------------------------------------------


def xlnet(dtype: torch.dtype, clamp: int = -1) -> nn.Module:
    module = oracle(MODELS + "xlnet.modeling_xlnet")
    config = module.XLNetConfig(
        vocab_size=8, d_model=DIM, n_head=HEADS, n_layer=1, d_inner=8, clamp_len=clamp, dropout=0.0
    )
    torch.manual_seed(0)
    model = module.XLNetModel(config)
    peer = model.layer[0].rel_attn.eval().requires_grad_(False)
    assert {"r", "r_w_bias", "r_r_bias"} <= set(dict(peer.named_parameters()))
    for parameter in peer.parameters():
        nn.init.normal_(parameter, std=0.2)
    peer.distances = model.relative_positional_encoding(KEYS, KEYS).to(dtype)  # float32 sinusoids
    return peer.to(dtype)


def as_xlnet(peer: nn.Module, dtype: torch.dtype, args: str = "") -> Mine:
    mine = Mine("xl", args, dtype=dtype, bias=False)
    mine.copy(*(linear(getattr(peer, name).flatten(1).t()) for name in "qkv"), linear(peer.o.flatten(1)))
    give(mine, peer.r.flatten(1).t(), peer.r_w_bias, peer.r_r_bias)
    return mine


def of_xlnet(peer: nn.Module) -> Peer:
    """Return a function that computes XLNet's output before the residual connection.

    XLNet takes [T, B, d], and a mask with ones at hidden keys.
    """

    def run(x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        h, r = x.transpose(0, 1), peer.distances
        q, k, v = (torch.einsum("ibh,hnd->ibnd", h, getattr(peer, name)) for name in "qkv")
        forbidden = mask.isinf().to(x.dtype).expand(len(x), -1, -1, -1).permute(2, 3, 0, 1)
        positions = torch.einsum("ibh,hnd->ibnd", r, peer.r).expand(-1, len(x), -1, -1)
        out, weights = peer.rel_attn_core(q, k, v, positions, attn_mask=forbidden, output_attentions=True)
        return torch.einsum("ibnd,hnd->bih", out, peer.o), weights.permute(2, 3, 0, 1)

    return run


@both_dtypes
@ways()
def test_xlnet_is_xl_in_both_directions(way: Way, dtype: torch.dtype) -> None:
    peer = xlnet(dtype)
    found = difference(as_xlnet(peer, dtype), of_xlnet(peer), Problem.of(way, dtype))
    assert found <= tolerance(dtype, keeps_double=False)


def test_xlnet_with_a_clamped_distance() -> None:
    peer = xlnet(torch.float64, clamp=3)
    problem = Problem.of(Way("whole"), torch.float64)
    assert difference(as_xlnet(peer, torch.float64, "clamp=3"), of_xlnet(peer), problem) <= 1e-6
    assert differs(as_xlnet(peer, torch.float64, "clamp=2"), of_xlnet(peer))


@pytest.mark.parametrize("mistake", ["mirrored", "u and v exchanged", "cosines first", "another layer"])
def test_xlnet_tells_a_mistake(mistake: str) -> None:
    peer = xlnet(torch.float64)
    mine = as_xlnet(peer, torch.float64)
    xl = mine.encoding
    weight, half = xl.weight[LAYER - 1].clone(), DIM // 2
    if mistake == "mirrored":
        xl.weight[LAYER - 1, :, :half] *= -1  # sin(-p) = -sin(p)
    elif mistake == "u and v exchanged":
        give(mine, weight, xl.v[LAYER - 1].clone(), xl.u[LAYER - 1].clone())
    elif mistake == "cosines first":
        xl.weight[LAYER - 1] = weight.roll(half, 1)
    else:
        for parameter in xl.parameters():
            parameter.copy_(parameter.flip(0))
    assert differs(mine, of_xlnet(peer))


# -- GCDF ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lambda_", [4.0, 2.5])
def test_gcdf_rows_are_scipys(lambda_: float) -> None:
    """Distances are from -600 to 600; our rows are smaller by lambda / 2."""
    gcdf, cdf = Mine("gcdf", f"lambda={lambda_}").encoding, oracle("scipy.stats").norm.cdf
    p = torch.arange(-600.0, 601.0).double()
    theirs = torch.stack([lambda_ * torch.from_numpy(cdf(p, scale=DIM ** (k / DIM))) for k in range(1, DIM + 1)], -1)
    assert (gcdf.encode(p) + lambda_ / 2 - theirs).abs().max() <= 5e-15
    assert (gcdf.reference_encode(p[:, None])[:, 0] - theirs).abs().max() <= 5e-15
    assert (gcdf.encode(-p) + lambda_ / 2 - theirs).abs().max() > 1
