"""Test that a stack and its attention refuse inputs, memory and caches that do not fit their positions."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from laws.compare import assert_refused
from torch import Tensor

from fairseq_posenc.attention import KeyValueCache, SelfAttention
from fairseq_posenc.encodings import StackShape, build
from fairseq_posenc.hub import LanguageModel, ModelConfig
from fairseq_posenc.stack import Norms, Stack

REFUSED: dict[str, dict[str, Any]] = tomllib.loads(Path(__file__).with_name("refused.toml").read_text("utf-8"))
PAD = 1
SHAPE = StackShape(layers=2, heads=2, dim=8, max_length=12)
TOKENS = torch.tensor([[5, 6, 7, 8], [5, 6, PAD, PAD]])


def stack_of(spec: str = "shaw", *, causal: bool = True, **options: Any) -> Stack:
    torch.manual_seed(0)
    return Stack(spec, None, replace(SHAPE, causal=causal), **options).eval()


def embedded(tokens: Tensor) -> Tensor:
    """Return vectors of tokens, [B, T] -> [B, T, d]; equal tokens get equal vectors."""
    return torch.randn(10, SHAPE.dim, generator=torch.Generator().manual_seed(1))[tokens]


@pytest.mark.parametrize("norms", [Norms(), Norms(before=True)], ids=["post-LN", "pre-LN"])
@pytest.mark.parametrize(("words", "row"), REFUSED.items(), ids=REFUSED)
def test_what_does_not_fit_the_positions_is_refused(words: str, row: dict[str, Any], norms: Norms) -> None:
    stack = stack_of(row.get("encoding", "shaw"), causal=row.get("causal", True), norms=norms)
    settings = {
        name: torch.tensor(value) if isinstance(value, list) else value
        for name, value in row.get("positions", {}).items()
    }
    layers, *size = row.get("memory", [None])
    memory = None if layers is None else [torch.randn(*size, SHAPE.dim) for _ in range(layers)]
    caches = [KeyValueCache() for _ in range(row["caches"])] if "caches" in row else None
    x = torch.randn(*row.get("input", [*TOKENS.shape, SHAPE.dim]))
    assert_refused(lambda: stack(x, stack.positions(TOKENS, pad=PAD, **settings), memory=memory, caches=caches), words)
    assert not any(cache.length for cache in caches or [])


MISFITS: dict[str, Callable[[], object]] = {
    "tokens must be a tensor of ids, not a list": lambda: stack_of().positions([[5, 6]], pad=PAD),
    "the text is empty": lambda: stack_of().positions(TOKENS[:, :0], pad=PAD),
    "positions must be what Stack.positions(tokens) returns": lambda: stack_of()(embedded(TOKENS), TOKENS),
    "must be a name such as 'rope' ('none' means no positions), but it is None": lambda: Stack(None, None, SHAPE),
    "number of layers is 0, but it must be at least 1": lambda: replace(SHAPE, layers=0),
    "number of heads is 0, but it must be at least 1": lambda: replace(SHAPE, heads=0),
    "width is 0, but it must be at least 1": lambda: replace(SHAPE, dim=0),
    "max_length is 0, but it must be at least 1": lambda: replace(SHAPE, max_length=0),
    "width 8 and 4 heads, but the encoding was built for width 8 and 2 heads": lambda: attention_of(SHAPE.dim, 4),
    "width 16 and 2 heads, but the encoding was built for width 8 and 2 heads": lambda: attention_of(16, 2),
    "this SelfAttention has no position encoding: call use(encoding, number)": lambda: SelfAttention(8, 2).view,
}


def attention_of(dim: int, heads: int) -> SelfAttention:
    """Return the attention of layer 1, for inputs [T, B, d] as in fairseq, with an encoding built for SHAPE."""
    attention = SelfAttention(dim, heads, batch_first=False)
    attention.use(build("t5", None, SHAPE), 1)
    return attention


@pytest.mark.parametrize(("words", "call"), MISFITS.items(), ids=MISFITS)
def test_what_cannot_be_built_or_positioned_is_refused(words: str, call: Callable[[], object]) -> None:
    with pytest.raises((ValueError, TypeError, RuntimeError)) as error:
        call()
    assert words in str(error.value)


def test_attention_alone_refuses_what_does_not_fit() -> None:
    attention, positions = attention_of(SHAPE.dim, 2), stack_of("none", causal=False).positions(TOKENS, pad=PAD)
    tensors = build("t5", None, SHAPE).per_layer(positions)[0]
    for size, words in (((1, 2), "the input has 1 tokens"), ((4, 1), "the input has 1 samples")):
        assert_refused(lambda size=size: attention(torch.randn(*size, SHAPE.dim), positions, tensors), words)
    x, memory = torch.randn(4, 2, SHAPE.dim), torch.randn(3, 2, SHAPE.dim)
    assert_refused(lambda: attention(x, positions, tensors, memory=memory), "the memory has 3 states")
    assert_refused(lambda: attention(x, replace(positions, causal=True), tensors), "StackShape.causal")


def test_positions_without_padding_serve_every_batch_and_ids_may_be_numbers_of_numpy() -> None:
    stack, x = stack_of(), torch.randn(3, 4, SHAPE.dim)
    assert stack(x, stack.positions(TOKENS[:1], pad=PAD))[0].shape == x.shape
    padding = stack.positions(TOKENS, pad=np.int64(PAD)).padding  # type: ignore[arg-type]
    assert torch.equal(padding, TOKENS == PAD)


@torch.no_grad()
def test_a_refused_step_leaves_the_cache_so_that_the_right_step_can_follow() -> None:
    """Memory is given once, because the cache holds it afterwards."""
    stack, x, memory = stack_of(), embedded(TOKENS), [torch.randn(2, 2, SHAPE.dim) for _ in range(2)]
    caches = [KeyValueCache() for _ in memory]
    whole = stack(x, stack.positions(TOKENS, pad=PAD, memory=2), memory=memory)[0]
    first = stack(x[:, :1], stack.positions(TOKENS[:, :1], pad=PAD, memory=2), memory=memory, caches=caches)[0]

    def step(samples: int = 2, cached: int = 1, caches: list[KeyValueCache] = caches, **more: Any) -> Tensor:
        positions = stack.positions(TOKENS[:samples], pad=PAD, memory=2, cached=cached)
        return stack(x[:samples, cached:], positions, caches=caches, **more)[0]

    for cached in (0, 2, 3):
        words = (
            f"{cached + 2} according to the positions, but cache and memory hold 3: make the positions with cached=1"
        )
        assert_refused(lambda cached=cached: step(cached=cached), words)
    assert_refused(lambda: step(memory=memory), "with a cache of 3 keys", "only while the cache is empty")
    assert_refused(lambda: step(samples=1), "cache holds 2 samples, but the input has 1")
    assert_refused(lambda: step(caches=[caches[0], KeyValueCache()]), "layer 2: the memory has 0 states")
    torch.testing.assert_close(torch.cat([first, step()], 1), whole)


def test_a_second_segment_is_for_models_with_segments() -> None:
    config = ModelConfig(2, SHAPE.dim, 16, 2, SHAPE.max_length, 10, pos_enc="learned")
    model = LanguageModel(config).eval()
    zeros, segments = torch.zeros_like(TOKENS), TOKENS.eq(6).long()
    with torch.no_grad():
        torch.testing.assert_close(model(TOKENS, token_type_ids=zeros), model(TOKENS))
        assert_refused(
            lambda: model(TOKENS, token_type_ids=segments), "token_type_ids are not all 0", "learned", "segments-input"
        )
        model = LanguageModel(replace(config, pos_enc="learned+segments-input")).eval()
        assert not torch.allclose(model(TOKENS, token_type_ids=segments), model(TOKENS, token_type_ids=zeros))
        torch.testing.assert_close(model(TOKENS, token_type_ids=zeros), model(TOKENS))
