"""Compare encodings that are only a bias or a rotation with Hugging Face, x-transformers and SciPy.

The peers compute their angles and slopes in float32, so the results agree up to 1e-6.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from oracle_ways import (
    DIM,
    HEAD_DIM,
    HEADS,
    KEYS,
    MODELS,
    ROUNDED,
    Literal,
    Mine,
    both_directions,
    check_same,
    differs,
    oracle,
)
from torch import Tensor, nn

WIDTH = 32  # of a head: wide enough that YaRN has pairs of all three kinds
Rotate = Callable[[Tensor], Tensor]
Logits = Callable[[Tensor, Tensor], Tensor]


def mine_with(spec: str, args: str, *, causal: bool = False) -> Mine:
    """Return our attention with large projections, so that the weights are far from uniform."""
    torch.manual_seed(0)
    mine = Mine(spec, args, head_dim=WIDTH, causal=causal)
    for projection in (mine.attention.q_proj, mine.attention.k_proj):
        projection.weight *= 2
    return mine


def rotated(rotate_q: Rotate, rotate_k: Rotate | None = None) -> Logits:
    """Return the logits of a peer that rotates queries and keys, from column 0."""
    return lambda q, k: rotate_q(q) @ (rotate_k or rotate_q)(k).mT * WIDTH**-0.5


def llama(kind: str, factor: float = 4.0, seen: int | None = None, turning: int | None = None) -> Logits:
    """Return the logits of Hugging Face's Llama for 2048 positions.

    Args:
        kind: Hugging Face's rope_type; `dynamic` computes the base for the length `seen`.
        turning: Number of pairs that turn. As with rope_type `proportional` in later versions, the other speeds are 0.
    """
    module = oracle(MODELS + "llama.modeling_llama")
    config = module.LlamaConfig(
        hidden_size=HEADS * WIDTH,
        num_attention_heads=HEADS,
        max_position_embeddings=2048 if seen is None else KEYS,
        rope_scaling={"rope_type": kind, "factor": factor},
    )
    table = module.LlamaRotaryEmbedding(config=config)
    assert table.rope_type == kind
    if turning is not None:
        table.inv_freq[turning:] = 0

    def rotate(x: Tensor) -> Tensor:
        cos, sin = (part[:, :KEYS] for part in table(x, torch.arange(seen or KEYS)[None]))
        return module.apply_rotary_pos_emb(x, x, cos, sin)[0]

    return rotated(rotate)


def neox(fraction: float) -> Logits:
    """Return the logits of GPT-NeoX, which rotates a part of each head."""
    module = oracle(MODELS + "gpt_neox.modeling_gpt_neox")
    config = module.GPTNeoXConfig(hidden_size=HEADS * WIDTH, num_attention_heads=HEADS, rotary_pct=fraction)
    peer, columns = module.GPTNeoXAttention(config, layer_idx=0), torch.arange(KEYS)[None]
    peer.query_key_value = nn.Identity()  # queries and keys are projected already

    def logits(q: Tensor, k: Tensor) -> Tensor:
        projected, turns = torch.cat([q, k, k], -1).transpose(1, 2).flatten(2), peer.rotary_emb(q, columns)
        q, k, *_ = peer._attn_projections_and_rope(projected, columns, position_embeddings=turns)
        return q @ k.mT * WIDTH**-0.5

    return logits


def x_transformers(part: int = WIDTH, **options: Any) -> Logits:
    """Return the logits of x-transformers, also of xPos."""
    module = oracle("x_transformers.x_transformers")
    angles, decay = module.RotaryEmbedding(part, **options)(torch.arange(KEYS))
    turn = module.apply_rotary_pos_emb
    return rotated(lambda q: turn(q, angles, decay), lambda k: turn(k, angles, decay**-1))


YARN = "layout=half,scaling=yarn,form=original,factor=4,original_length=2048"
#: The encoding, its options, and the logits of the peer.
ROTATIONS: dict[str, tuple[str, str, Callable[[], Logits]]] = {
    "HF linear": ("rope", "layout=half,scaling=linear,factor=4", lambda: llama("linear")),
    "HF yarn": ("rope", YARN, lambda: llama("yarn")),
    "HF, zeros for slow pairs": ("rope", "layout=half,proportion=0.25", lambda: llama("default", turning=4)),
    # For a sequence that is 4 times as long as the model's, 'dynamic' with factor 1 is ntk with factor 4.
    "HF dynamic": ("rope", "layout=half,scaling=ntk,factor=4", lambda: llama("dynamic", 1.0, 4 * KEYS)),
    "HF NeoX": ("rope", "layout=half", lambda: neox(1.0)),
    "HF NeoX, half a head": ("rope", "layout=half,fraction=0.5", lambda: neox(0.5)),
    "HF NeoX, a quarter of a head": ("rope", "layout=half,fraction=0.25", lambda: neox(0.25)),
    "x-transformers": ("rope", "", lambda: x_transformers()),
    "x-transformers linear": ("rope", "scaling=linear,factor=4", lambda: x_transformers(interpolation_factor=4.0)),
    "x-transformers ntk": ("rope", "scaling=ntk,factor=4", lambda: x_transformers(base_rescale_factor=4.0)),
    "x-transformers half a head": ("rope", "fraction=0.5", lambda: x_transformers(WIDTH // 2)),
    "x-transformers half a head, ntk": (
        "rope",
        "fraction=0.5,scaling=ntk,factor=2",
        lambda: x_transformers(WIDTH // 2, base_rescale_factor=2.0),
    ),
    "xPos": ("xpos", "", lambda: x_transformers(use_xpos=True, scale_base=512)),
    "xPos, fast": ("xpos", "scale_base=8", lambda: x_transformers(use_xpos=True, scale_base=8)),
}
all_rotations = pytest.mark.parametrize(("spec", "args", "peer"), ROTATIONS.values(), ids=ROTATIONS)


@all_rotations
def test_rotations_are_those_of_the_peer(spec: str, args: str, peer: Callable[[], Logits]) -> None:
    directions, tolerance = ([True], 2 * ROUNDED) if spec == "xpos" else ([False, True], ROUNDED)
    for causal in directions:
        mine = mine_with(spec, args, causal=causal)
        check_same(mine, Literal(mine, peer()), tolerance, causal=causal)


@all_rotations
def test_wrong_rotations_show(spec: str, args: str, peer: Callable[[], Logits]) -> None:
    """The mistakes are an exchange of left and right, the other layout, and the default options."""
    causal, logits = spec == "xpos", peer()
    mine = mine_with(spec, args, causal=causal)
    assert differs(mine, Literal(mine, lambda q, k: logits(q.flip(2), k.flip(2)).flip(2, 3)), causal=causal)
    plain, exchanged = ("layout=half", "") if "layout=half" in args else ("", "layout=half")
    other_layout = f"{args.removeprefix('layout=half').strip(',')},{exchanged}".strip(",")
    assert differs(mine_with(spec, other_layout, causal=causal), Literal(mine, logits), causal=causal)
    assert differs(mine_with(spec, plain, causal=causal), Literal(mine, logits), causal=causal) == (args != plain)


@pytest.mark.parametrize(("heads", "penalised"), [(8, 8), (12, 12), (8, 1), (8, 3)])
def test_alibi_is_that_of_x_transformers(heads: int, penalised: int) -> None:
    """If all heads have a penalty, a reward, distances that are too large by 1 and reversed heads show."""
    bias = oracle("x_transformers.x_transformers").AlibiPositionalBias(penalised, heads)(KEYS, KEYS).double()
    mine = Mine("alibi", f"heads={penalised}", heads=heads, head_dim=2)

    def peer(bias: Tensor) -> Literal:
        return Literal(mine, lambda q, k: q @ k.mT * 2**-0.5 + bias)

    for causal in (False, True):
        check_same(mine, peer(bias), ROUNDED, causal=causal)
    if penalised == heads:
        for wrong in (-bias, bias.roll(1, -1), bias.flip(0)):
            assert differs(mine, peer(wrong))


@both_directions
def test_fox_has_the_forget_gates_of_x_transformers(causal: bool) -> None:
    """In an encoder, there is a second gate for later keys."""
    mine = Mine("fox", "" if causal else "later=true", causal=causal)
    theirs = oracle("x_transformers.x_transformers").DataDependentAlibi(DIM, HEADS, causal=causal).double()
    for name, parameter in theirs.to_forget_gates[0].named_parameters():
        nn.init.normal_(parameter, generator=torch.Generator().manual_seed(0)).requires_grad_(False)
        for gate, part in zip(("gate", "later"), parameter.split(HEADS), strict=False):
            getattr(mine.encoding, f"{gate}_{name}")[-1] = part

    def peer(x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        return Literal(mine, lambda q, k: q @ k.mT * HEAD_DIM**-0.5 + theirs(x))(x, mask)

    check_same(mine, peer, ROUNDED, causal=causal)


@both_directions
@pytest.mark.parametrize("base", [10000.0, 100.0])
def test_pope_is_that_of_x_transformers(base: float, causal: bool) -> None:
    """Some of the phases are outside of the range from -2 pi to 0."""
    module = oracle("x_transformers.x_transformers")
    mine = Mine("pope", f"base={base}")
    phase = mine.encoding.phase
    phase.copy_(-9 * torch.rand(phase.shape, generator=torch.Generator().manual_seed(0)) + 1)
    theirs = module.PolarEmbedding(phase.shape[-1], HEADS, base=base).double()
    theirs.learned_bias.data = phase[-1, :, None].clone()

    def logits(q: Tensor, k: Tensor) -> Tensor:
        angles, shifts = theirs(torch.arange(KEYS))
        polar_q, polar_k = (module.apply_polar_pos_emb(*pair) for pair in ((q, angles), (k, angles + shifts)))
        return polar_q @ polar_k.mT * HEAD_DIM**-0.5

    check_same(mine, Literal(mine, logits), ROUNDED, causal=causal)


@pytest.mark.parametrize("lambda_", [4.0, 2.5])
def test_gcdf_rows_are_scipys(lambda_: float) -> None:
    """Distances are from -600 to 600; our rows are smaller by lambda / 2."""
    gcdf, cdf = Mine("gcdf", f"lambda={lambda_}").encoding, oracle("scipy.stats").norm.cdf
    p = torch.arange(-600.0, 601.0).double()
    theirs = torch.stack([lambda_ * torch.from_numpy(cdf(p, scale=DIM ** (k / DIM))) for k in range(1, DIM + 1)], -1)
    assert (gcdf.encode(p) + lambda_ / 2 - theirs).abs().max() <= 5e-15
    assert (gcdf.encode(-p) + lambda_ / 2 - theirs).abs().max() > 1
