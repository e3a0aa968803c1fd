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
    ROUNDED,
    Mine,
    Peer,
    both_directions,
    check_same,
    differs,
    oracle,
)
from torch import Tensor, nn


def linear(weight: Tensor) -> nn.Linear:
    """Return a linear projection with this weight."""
    made = nn.Linear(*reversed(weight.shape), bias=False, dtype=weight.dtype)
    made.load_state_dict({"weight": weight})
    return made


def xlnet(clamp: int = -1) -> nn.Module:
    """Return XLNet's attention with its sinusoids, which are float32."""
    module = oracle(MODELS + "xlnet.modeling_xlnet")
    config = module.XLNetConfig(
        vocab_size=8, d_model=DIM, n_head=HEADS, n_layer=1, d_inner=8, clamp_len=clamp, dropout=0.0
    )
    torch.manual_seed(0)
    model = module.XLNetModel(config)
    peer = model.layer[0].rel_attn.eval().requires_grad_(False)
    for parameter in peer.parameters():
        nn.init.normal_(parameter, std=0.2)
    peer.distances = model.relative_positional_encoding(KEYS, KEYS).double()
    return peer.double()


def as_xlnet(peer: nn.Module, args: str = "") -> Mine:
    mine = Mine("xl", args, bias=False)
    mine.copy(*(linear(getattr(peer, name).flatten(1).t()) for name in "qkv"), linear(peer.o.flatten(1)))
    theirs = {"weight": peer.r.flatten(1).t(), "u": peer.r_w_bias, "v": peer.r_r_bias}
    for name, value in theirs.items():
        getattr(mine.encoding, name)[LAYER - 1] = value
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


@both_directions
@pytest.mark.parametrize("clamp", [None, 3])
def test_xlnet_is_xl_in_both_directions(causal: bool, clamp: int | None) -> None:
    peer = xlnet(clamp or -1)
    check_same(as_xlnet(peer, f"clamp={clamp}" if clamp else ""), of_xlnet(peer), ROUNDED, causal=causal)


def test_xlnet_tells_mistakes() -> None:
    """The mistakes are a mirrored sine, exchanged u and v, cosines before sines, another layer and another clamp."""
    peer, half = xlnet(), DIM // 2
    mirrored, exchanged, cosines, other_layer = (as_xlnet(peer) for _ in range(4))
    mirrored.encoding.weight[LAYER - 1, :, :half] *= -1
    exchanged.encoding.u[LAYER - 1], exchanged.encoding.v[LAYER - 1] = peer.r_r_bias, peer.r_w_bias
    cosines.encoding.weight[LAYER - 1] = peer.r.flatten(1).t().roll(half, 1)
    for parameter in other_layer.encoding.parameters():
        parameter.copy_(parameter.flip(0))
    for mine in (mirrored, exchanged, cosines, other_layer, as_xlnet(peer, "clamp=2")):
        assert differs(mine, of_xlnet(peer))


@pytest.mark.parametrize("lambda_", [4.0, 2.5])
def test_gcdf_rows_are_scipys(lambda_: float) -> None:
    """Distances are from -600 to 600; our rows are smaller by lambda / 2."""
    gcdf, cdf = Mine("gcdf", f"lambda={lambda_}").encoding, oracle("scipy.stats").norm.cdf
    p = torch.arange(-600.0, 601.0).double()
    theirs = torch.stack([lambda_ * torch.from_numpy(cdf(p, scale=DIM ** (k / DIM))) for k in range(1, DIM + 1)], -1)
    assert (gcdf.encode(p) + lambda_ / 2 - theirs).abs().max() <= 5e-15
    assert (gcdf.encode(-p) + lambda_ / 2 - theirs).abs().max() > 1
