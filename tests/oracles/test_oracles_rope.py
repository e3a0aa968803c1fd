"""Compare RoPE, its context extensions, partial rotation and xPos with Hugging Face and x-transformers.

The peers compute their angles in float32, so the results agree up to 1e-6.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from oracle_ways import HEADS, KEYS, MODELS, ROUNDED, Literal, Mine, Peer, both_directions, check_same, differs, oracle
from torch import Tensor, nn

HEAD_DIM = 32  # wide enough that YaRN has pairs of all three kinds
DIM = HEADS * HEAD_DIM
FACTOR, LENGTH = 4.0, 2048
Rotate = Callable[[Tensor], Tensor]


def llama(
    kind: str,
    factor: float = FACTOR,
    length: int = LENGTH,
    seen: int | None = None,
    turning: int | None = None,
) -> Rotate:
    """Return Hugging Face's rotation of [B, h, T, D] from column 0.

    Args:
        kind: Hugging Face's rope_type; `dynamic` computes the base for the length `seen`.
        turning: Number of pairs that turn. As with rope_type `proportional` in later versions, the other speeds are 0.
    """
    module = oracle(MODELS + "llama.modeling_llama")
    config = module.LlamaConfig(
        hidden_size=DIM,
        num_attention_heads=HEADS,
        max_position_embeddings=length,
        rope_scaling={"rope_type": kind, "factor": factor},
    )
    table = module.LlamaRotaryEmbedding(config=config)
    assert table.rope_type == kind
    plain = 10000.0 ** (-torch.arange(0, HEAD_DIM, 2) / HEAD_DIM)
    if turning is not None:
        table.inv_freq[turning:] = 0

    def rotate(x: Tensor) -> Tensor:
        columns = torch.arange(x.shape[2] if seen is None else seen)[None]
        cos, sin = (part[:, : x.shape[2]] for part in table(x, columns))
        assert not torch.allclose(table.inv_freq, plain)
        return module.apply_rotary_pos_emb(x, x, cos, sin)[0]

    return rotate


def x_transformers(part: int = HEAD_DIM, **options: Any) -> Rotate:
    module = oracle("x_transformers.x_transformers")
    table = module.RotaryEmbedding(part, **options)
    return lambda x: module.apply_rotary_pos_emb(x, table(torch.arange(x.shape[2]))[0])


def attention_of(mine: Mine, rotate: Rotate) -> Literal:
    return Literal(mine, lambda q, k: rotate(q) @ rotate(k).mT * HEAD_DIM**-0.5)


def mine_with(args: str, spec: str = "rope") -> Mine:
    """Return our attention with large projections, so that the weights are far from uniform."""
    torch.manual_seed(0)
    mine = Mine(spec, args, head_dim=HEAD_DIM, causal=spec == "xpos")
    for projection in (mine.attention.q_proj, mine.attention.k_proj):
        projection.weight *= 2
    return mine


YARN = f"layout=half,scaling=yarn,form=original,factor=4,original_length={LENGTH}"
PEERS: list[tuple[str, str, Callable[[], Rotate]]] = [
    ("HF linear", "layout=half,scaling=linear,factor=4", lambda: llama("linear")),
    ("HF yarn", YARN, lambda: llama("yarn")),
    ("HF, zeros for slow pairs", "layout=half,proportion=0.25", lambda: llama("default", turning=4)),
    # For a sequence that is 4 times as long as the model's, 'dynamic' with factor 1 is ntk with factor 4.
    ("HF dynamic", "layout=half,scaling=ntk,factor=4", lambda: llama("dynamic", 1.0, KEYS, 4 * KEYS)),
    ("x-transformers", "", lambda: x_transformers()),
    ("x-transformers linear", "scaling=linear,factor=4", lambda: x_transformers(interpolation_factor=4.0)),
    ("x-transformers ntk", "scaling=ntk,factor=4", lambda: x_transformers(base_rescale_factor=4.0)),
    ("x-transformers half a head", "fraction=0.5", lambda: x_transformers(HEAD_DIM // 2)),
    (
        "x-transformers half a head, ntk",
        "fraction=0.5,scaling=ntk,factor=2",
        lambda: x_transformers(HEAD_DIM // 2, base_rescale_factor=2.0),
    ),
]
all_peers = pytest.mark.parametrize(("args", "peer"), [peer[1:] for peer in PEERS], ids=[peer[0] for peer in PEERS])


@both_directions
@all_peers
def test_rotation_in_attention(args: str, peer: Callable[[], Rotate], causal: bool) -> None:
    mine = mine_with(args)
    check_same(mine, attention_of(mine, peer()), ROUNDED, causal=causal)


@all_peers
def test_mistakes_show(args: str, peer: Callable[[], Rotate]) -> None:
    """The mistakes are plain RoPE, the other layout, and the same rotation for left and right."""
    mine, rotate = mine_with(args), peer()
    assert differs(mine, attention_of(mine, lambda x: rotate(x.flip(2)).flip(2)))
    plain, exchanged = ("layout=half", "") if "layout=half" in args else ("", "layout=half")
    other_layout = f"{args.removeprefix('layout=half').strip(',')},{exchanged}".strip(",")
    assert differs(mine_with(other_layout), attention_of(mine, rotate))
    assert differs(mine_with(plain), attention_of(mine, rotate)) == (args != plain)


def neox(fraction: float) -> nn.Module:
    """Return the whole attention of GPT-NeoX, whose projections are in one matrix."""
    module = oracle(MODELS + "gpt_neox.modeling_gpt_neox")
    torch.manual_seed(0)
    config = module.GPTNeoXConfig(
        hidden_size=DIM, num_attention_heads=HEADS, rotary_pct=fraction, rotary_emb_base=10000
    )
    peer = module.GPTNeoXAttention(config, layer_idx=0).double().eval().requires_grad_(False)
    nn.init.normal_(peer.query_key_value.weight, std=0.1)
    return peer


def as_neox(peer: nn.Module, args: str) -> Mine:
    mine = Mine("rope", args, head_dim=HEAD_DIM, causal=True)
    weights = peer.query_key_value.weight.view(HEADS, 3, HEAD_DIM, DIM)
    biases = peer.query_key_value.bias.view(HEADS, 3, HEAD_DIM)
    linears = [nn.Linear(DIM, DIM).double().requires_grad_(False) for _ in range(3)]
    for i, linear in enumerate(linears):
        linear.weight.copy_(weights[:, i].flatten(0, 1))
        linear.bias.copy_(biases[:, i].flatten())
    mine.copy(*linears, peer.dense)
    return mine


def of_neox(peer: nn.Module) -> Peer:
    def run(x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        columns = torch.arange(x.shape[1])[None]
        turns = peer.rotary_emb(x, columns)
        out, _, weights = peer(x, mask, columns, output_attentions=True, position_embeddings=turns)
        return out, weights

    return run


@pytest.mark.parametrize("fraction", [0.25, 0.5, 1.0])
def test_rotation_of_gpt_neox(fraction: float) -> None:
    peer = neox(fraction)
    check_same(as_neox(peer, f"layout=half,fraction={fraction}"), of_neox(peer), ROUNDED, causal=True)


def test_gpt_neox_tells_mistakes() -> None:
    peer = neox(0.5)
    for args in ("layout=half", "layout=half,fraction=0.25", "fraction=0.5"):
        assert differs(as_neox(peer, args), of_neox(peer), causal=True)


# -- xPos -----------------------------------------------------------------------------------------------------------


def xpos_attention(mine: Mine, scale_base: float, *, grows: bool = False) -> Literal:
    """Return the attention of x-transformers' xPos; `grows` exchanges the factors of queries and keys."""
    module = oracle("x_transformers.x_transformers")
    table = module.RotaryEmbedding(HEAD_DIM, use_xpos=True, scale_base=scale_base)

    def logits(q: Tensor, k: Tensor) -> Tensor:
        angles, decay = table(torch.arange(q.shape[2]))
        of_q, of_k = (decay**-1, decay) if grows else (decay, decay**-1)
        turned_q = module.apply_rotary_pos_emb(q, angles, of_q)
        turned_k = module.apply_rotary_pos_emb(k, angles, of_k)
        return turned_q @ turned_k.mT * HEAD_DIM**-0.5

    return Literal(mine, logits)


@pytest.mark.parametrize("scale_base", [512, 8])
def test_xpos(scale_base: int) -> None:
    mine = mine_with(f"scale_base={scale_base}", "xpos")
    check_same(mine, xpos_attention(mine, scale_base), 2 * ROUNDED, causal=True)


def test_xpos_tells_mistakes() -> None:
    mine = mine_with("scale_base=8", "xpos")
    assert differs(mine, xpos_attention(mine, 8, grows=True), causal=True)
    assert differs(mine, xpos_attention(mine, 32), causal=True)
