"""Test that a stack makes positions, and refuses positions that do not fit the stack or its inputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from laws.compare import assert_refused
from torch import Tensor

from fairseq_posenc.attention import KeyValueCache, SelfAttention
from fairseq_posenc.encodings import StackShape, build
from fairseq_posenc.hub import LanguageModel, ModelConfig
from fairseq_posenc.positions import Positions
from fairseq_posenc.stack import Norms, Stack

BOS, PAD, EOS = 0, 1, 2
LAYERS, WIDTH, LENGTH = 2, 8, 12
SHAPE = StackShape(layers=LAYERS, heads=2, dim=WIDTH, max_length=LENGTH)
DECODER = replace(SHAPE, causal=True)
TOKENS = torch.tensor([[5, 6, 7, 8], [5, 6, PAD, PAD]])
CPU = torch.device("cpu")


def stack_of(spec: str = "shaw", shape: StackShape = SHAPE, **options: Any) -> Stack:
    torch.manual_seed(0)
    return Stack(spec, None, shape, **options).eval()


def embedded(tokens: Tensor) -> Tensor:
    """Return vectors of tokens, [B, T] -> [B, T, d]; equal tokens get equal vectors."""
    return torch.randn(10, WIDTH, generator=torch.Generator().manual_seed(1))[tokens]


def memory_of(columns: int, *, layers: int = LAYERS, samples: int = 2) -> list[Tensor]:
    return [torch.randn(samples, columns, WIDTH) for _ in range(layers)]


def caches_of(layers: int = LAYERS) -> list[KeyValueCache]:
    return [KeyValueCache() for _ in range(layers)]


def decoder(x: Tensor, settings: dict[str, Any] | None = None, **given: Any) -> Tensor:
    """Return the output of a decoder at the positions that it makes with these settings."""
    stack = stack_of(shape=DECODER)
    return stack(x, stack.positions(TOKENS, pad=PAD, **settings or {}), **given)[0]


X = embedded(TOKENS)
MEMORY = {"memory": 2}
#: What does not fit a decoder of two layers and tokens [2, 4], and words of the error.
MISFITS: dict[str, tuple[Callable[[], object], list[str]]] = {
    "no samples": (lambda: decoder(X[0]), ["[B, T, d]", f"[4, {WIDTH}]"]),
    "width": (lambda: decoder(torch.randn(2, 4, 9)), ["the width of the input is 9", f"StackShape.dim is {WIDTH}"]),
    "samples of the memory": (
        lambda: decoder(X, MEMORY, memory=memory_of(2, samples=1)), ["memory holds 1 samples", "input has 2"]
    ),
    "caches of an encoder": (
        lambda: stack_of()(X, stack_of().positions(TOKENS, pad=PAD), caches=caches_of()), ["caches are for decoders"]
    ),
    "segments that nothing reads": (
        lambda: stack_of().positions(TOKENS, pad=PAD, segments=torch.zeros_like(TOKENS)), ["would ignore them"]
    ),
    "positions of a list": (lambda: stack_of().positions([[5, 6]], pad=PAD), ["ids, not a list"]),
    "a word for padding": (lambda: stack_of().positions(TOKENS, pad="<pad>"), ["whole number) or None", "type is str"]),
    "tokens for positions": (lambda: stack_of()(X, TOKENS), ["positions must be what Stack.positions(tokens) returns"]),
    "no name": (lambda: Stack(None, None, SHAPE), ["must be a name such as 'rope'", "but it is None"]),
}  # fmt: skip


@pytest.mark.parametrize(("call", "words"), MISFITS.values(), ids=MISFITS)
def test_what_does_not_fit_is_refused(call: Callable[[], object], words: list[str]) -> None:
    with pytest.raises((ValueError, TypeError)) as error:
        call()
    for word in words:
        assert word in str(error.value)


@pytest.mark.parametrize("spec", ["none", "learned", "shaw", "linformer"])
@pytest.mark.parametrize("shape", [(2, 1), (2, 3), (2, 5), (1, 4), (3, 4)], ids=str)
def test_an_input_of_another_size_is_refused(spec: str, shape: tuple[int, int]) -> None:
    """Without the error, torch would repeat a single token or sample."""
    stack = stack_of(spec)
    axis, name = (1, "tokens") if shape[0] == 2 else (0, "samples")
    words = (f"the input has {shape[axis]} {name}", f"positions have {TOKENS.shape[axis]}")
    assert_refused(lambda: stack(torch.randn(*shape, WIDTH), stack.positions(TOKENS, pad=PAD)), *words)


def test_positions_without_pads_serve_every_batch() -> None:
    stack, x = stack_of(), torch.randn(3, 4, WIDTH)
    assert stack(x, stack.positions(TOKENS[:1], pad=PAD))[0].shape == x.shape


def test_positions_are_of_one_batch() -> None:
    pads, segments = TOKENS.eq(PAD), torch.zeros(3, 4, dtype=torch.long)
    assert_refused(lambda: Positions(4, 4, CPU, padding=pads, segments=segments), "padding has 2", "segments has 3")
    assert Positions(4, 4, CPU, segments=segments).batch == 3
    assert Positions(4, 4, CPU, cls_column=torch.tensor([0, 1])).batch == 2
    assert Positions(4, 4, CPU, cls_column=torch.tensor([0])).batch is None


def test_attention_alone_refuses_them_too() -> None:
    """The inputs have fairseq's layout, [T, B, d]."""
    attention = SelfAttention(WIDTH, 2, batch_first=False)
    attention.use(build("none", None, SHAPE), 1)
    positions = Positions.of_tokens(TOKENS, pad=PAD)
    assert_refused(
        lambda: attention(torch.randn(1, 2, WIDTH), positions, {}), "the input has 1 tokens", "positions have 4"
    )
    assert_refused(
        lambda: attention(torch.randn(4, 1, WIDTH), positions, {}), "the input has 1 samples", "positions have 2"
    )
    memory = torch.randn(3, 2, WIDTH)
    assert_refused(lambda: attention(torch.randn(4, 2, WIDTH), positions, {}, memory=memory), "the memory has 3 states")
    future = replace(positions, causal=True)
    assert_refused(lambda: attention(torch.randn(4, 2, WIDTH), future, {}), "StackShape.causal", "Positions.causal")


# -- memory and caches


@pytest.mark.parametrize("before", [False, True], ids=["post-LN", "pre-LN"])
@pytest.mark.parametrize(("known", "memory_columns"), [(0, 2), (2, 0), (2, 3), (3, 2)])
def test_memory_and_positions_must_agree(known: int, memory_columns: int, before: bool) -> None:
    stack = stack_of(shape=DECODER, norms=Norms(before=before))
    positions = stack.positions(TOKENS, pad=PAD, memory=known)
    for caches in (None, caches_of()):
        assert_refused(
            lambda caches=caches: stack(
                embedded(TOKENS), positions, memory=memory_of(memory_columns) or None, caches=caches
            ),
            f"layer 1: the memory has {memory_columns} states",
            f"Positions.memory is {known}",
            f"memory={memory_columns}",
        )
    if not memory_columns:
        assert_refused(lambda: stack(embedded(TOKENS), positions), "the memory has 0 states", f"memory is {known}")


@pytest.mark.parametrize("layers", [0, 1, 3])
def test_memory_and_caches_are_of_every_layer(layers: int) -> None:
    stack = stack_of(shape=DECODER)
    x, positions = embedded(TOKENS), stack.positions(TOKENS, pad=PAD, memory=2)
    messages = (f"has length {layers}", "the stack has 2 layers")
    assert_refused(lambda: stack(x, positions, memory=memory_of(2, layers=layers)), "`memory`", *messages)
    caches = caches_of(layers)
    assert_refused(lambda: stack(x, positions, memory=memory_of(2), caches=caches), "`caches`", *messages)
    assert not any(cache.length for cache in caches)


def test_memory_comes_once_where_there_is_a_cache() -> None:
    stack, memory, x = stack_of(shape=DECODER), memory_of(2), embedded(TOKENS)
    caches = caches_of()
    with torch.no_grad():
        whole = stack(x, stack.positions(TOKENS, pad=PAD, memory=2), memory=memory)[0]
        first = stack(x[:, :1], stack.positions(TOKENS[:, :1], pad=PAD, memory=2), memory=memory, caches=caches)[0]
        positions = stack.positions(TOKENS, pad=PAD, memory=2, cached=1)
        assert_refused(
            lambda: stack(x[:, 1:], positions, memory=memory, caches=caches),
            "with a cache of 3",
            "while the cache is empty",
        )
        rest = stack(x[:, 1:], positions, caches=caches)[0]
    torch.testing.assert_close(torch.cat([first, rest], 1), whole)


@pytest.mark.parametrize(
    ("tokens", "settings", "words"),
    [
        (TOKENS[0], {}, ("[B, T]", "shape")),
        (TOKENS, {"cached": 4}, ("cached=4", "tokens with 4 columns")),
        (TOKENS[:, :0], {}, ("the text is empty",)),
        (TOKENS != PAD, {}, ("True and False, as in a mask",)),
        (TOKENS, {"documents": TOKENS[0] * 0}, ("documents must be [B, K]", "[4]")),
        (TOKENS, {"segments": TOKENS * 0.5}, ("segments must hold whole numbers", "float32")),
        (TOKENS, {"cached": -1}, ("cached=-1",)),
        (TOKENS, {"memory": -1}, ("memory=-1",)),
        (TOKENS, {"memory_padding": torch.zeros(2, 2, dtype=torch.bool)}, ("memory=0", "memory_padding")),
    ],
)
def test_impossible_positions_are_refused(tokens: Tensor, settings: dict[str, Any], words: tuple[str, ...]) -> None:
    assert_refused(lambda: stack_of(shape=DECODER).positions(tokens, pad=PAD, **settings), *words)


def test_an_id_of_numpy_is_an_id() -> None:
    padding = stack_of().positions(TOKENS, pad=np.int64(PAD)).padding  # type: ignore[arg-type]
    assert padding is not None
    assert torch.equal(padding, TOKENS == PAD)


def test_sizes_are_at_least_one() -> None:
    names = {"layers": "number of layers", "heads": "number of heads", "dim": "width", "max_length": "max_length"}
    for name, text in names.items():
        assert_refused(lambda name=name: replace(SHAPE, **{name: 0}), f"{text} is 0, but it must be at least 1")


def test_an_attention_of_another_size_is_refused() -> None:
    encoding = build("t5", "share=all", SHAPE)
    for dim, heads in ((WIDTH, 2 * SHAPE.heads), (2 * WIDTH, SHAPE.heads)):
        words = (f"width {dim} and {heads} heads", f"width {WIDTH} and {SHAPE.heads} heads")
        assert_refused(lambda dim=dim, heads=heads: SelfAttention(dim, heads).use(encoding, 1), *words)


@pytest.mark.parametrize("spec", ["none", "shaw", "linformer"])
def test_columns_that_nothing_holds_are_refused(spec: str) -> None:
    stack = stack_of(spec, shape=SHAPE if spec == "linformer" else DECODER)
    positions = stack.positions(TOKENS, pad=PAD, cached=1)
    empty = caches_of()
    for caches in (None, empty) if stack.shape.causal else (None,):
        assert_refused(
            lambda caches=caches: stack(embedded(TOKENS)[:, 1:], positions, caches=caches),
            "1 according to the positions",
            "cache and memory hold 0",
            "cached=0",
        )


def test_a_cache_and_positions_must_agree() -> None:
    """A refused step leaves the cache as it was, so that the right step can follow."""
    stack, x = stack_of(shape=DECODER), embedded(TOKENS)
    caches = caches_of()
    with torch.no_grad():
        whole = stack(x, stack.positions(TOKENS, pad=PAD))[0]
        stack(x[:, :2], stack.positions(TOKENS[:, :2], pad=PAD), caches=caches)
        for cached in (0, 1, 3):
            positions = stack.positions(TOKENS, pad=PAD, cached=cached)
            assert_refused(
                lambda positions=positions: stack(x[:, positions.offset :], positions, caches=caches),
                f"{cached} according to the positions",
                "cache and memory hold 2",
                "cached=2",
            )
        positions = stack.positions(TOKENS[:1], pad=PAD, cached=2)
        assert_refused(lambda: stack(x[:1, 2:], positions, caches=caches), "cache holds 2 samples", "input has 1")
        assert_refused(
            lambda: stack(x[:, 2:], positions, caches=[caches[0], KeyValueCache()]), "layer 2", "memory hold 0"
        )
        rest = stack(x[:, 2:], stack.positions(TOKENS, pad=PAD, cached=2), caches=caches)[0]
    torch.testing.assert_close(rest, whole[:, 2:])


# -- the model that `load` makes from a checkpoint


def test_a_second_segment_is_for_models_with_segments() -> None:
    config = ModelConfig(LAYERS, WIDTH, 16, 2, LENGTH, 10, pos_enc="learned")
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
