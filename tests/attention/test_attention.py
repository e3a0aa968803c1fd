"""Test the attention itself: paths, caches, memory and layouts. The tests in tests/laws test it with every encoding."""

from __future__ import annotations

from typing import Any
from unittest import mock

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from fairseq_posenc.attention import KeyValueCache, SelfAttention, paths
from fairseq_posenc.core.caches import DecodingCache, GrownTables
from fairseq_posenc.encodings import StackShape, build
from fairseq_posenc.positions import Positions
from fairseq_posenc.stack import Stack

CPU = torch.device("cpu")
CAUSAL = StackShape(layers=1, heads=2, dim=8, max_length=12, causal=True)


def stack_of(spec: str = "shaw", shape: StackShape = CAUSAL, **options: Any) -> Stack:
    torch.manual_seed(0)
    return Stack(spec, None, shape, **options)


# -- paths


def test_training_is_explicit_also_in_a_forward_without_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    """fairseq's checkpoints run the first forward without gradients; both forwards must use the same path."""
    fused = mock.Mock(wraps=paths._fused)
    monkeypatch.setattr(paths, "_fused", fused)
    stack = stack_of("none")
    x, where = torch.randn(2, 4, 8, requires_grad=True), Positions(4, 4, CPU, causal=True)
    block, (tensors,) = stack.layers[0], stack.pos.per_layer(where)
    checkpoint(block, x, where, tensors, use_reentrant=True).sum().backward()
    assert not fused.called
    stack.eval()
    with torch.no_grad():
        stack(x, where)
    assert fused.call_count == 1


def test_the_fused_kernel_gets_the_dropout(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = mock.Mock(wraps=F.scaled_dot_product_attention)
    monkeypatch.setattr(F, "scaled_dot_product_attention", kernel)
    for spec in ("none", "shaw"):
        stack = stack_of(spec, attention_dropout=0.25)
        stack.layers[0].self_attn.path = "fused"
        stack(torch.randn(1, 4, 8), Positions(4, 4, CPU, causal=True))
        stack.eval()(torch.randn(1, 4, 8), Positions(4, 4, CPU, causal=True))
    assert [call.kwargs["dropout_p"] for call in kernel.call_args_list] == [0.25, 0.0, 0.25, 0.0]


# -- caches and memory


@pytest.mark.parametrize("sometimes_with_grad", [False, True])
def test_a_cache_that_grows_and_is_reordered_keeps_every_column(sometimes_with_grad: bool) -> None:
    """The cache is compared with plain lists while it grows and the batch shrinks; its inputs stay unchanged."""
    random = torch.Generator().manual_seed(0)
    cache, expected, inputs = KeyValueCache(), [torch.zeros(6, 2, 0, 3)] * 3, []
    for step in range(40):
        new = [torch.randn(len(expected[0]), 2, 1, 3, generator=random) for _ in range(3)]
        inputs += [(tensor, tensor.clone()) for tensor in new]
        with torch.set_grad_enabled(sometimes_with_grad and step == 0):
            actual = cache.append(*new)
        expected = [torch.cat(pair, 2) for pair in zip(expected, new, strict=True)]
        torch.testing.assert_close(actual, tuple(expected), rtol=0, atol=0)
        order = torch.randint(0, len(new[0]), (6 if step < 19 else 4,), generator=random)
        with torch.set_grad_enabled(sometimes_with_grad and step == 5):
            cache.reorder(order)
        expected = [tensor[order] for tensor in expected]
    assert all(torch.equal(tensor, before) for tensor, before in inputs)


def test_decoding_steps_can_be_differentiated_with_frozen_keys() -> None:
    stack = stack_of("none").eval()
    attention = stack.layers[0].self_attn
    for projection in (attention.k_proj, attention.v_proj):
        projection.requires_grad_(False)
    x, cache = torch.randn(1, 3, 8), KeyValueCache()
    steps = [attention(x[:, i : i + 1], Positions(1, i + 1, CPU, causal=True), {}, cache=cache)[0] for i in range(3)]
    torch.cat(steps, 1).sum().backward()
    stepwise = attention.q_proj.weight.grad.clone()
    attention.q_proj.weight.grad = None
    attention(x, Positions(3, 3, CPU, causal=True), {})[0].sum().backward()
    torch.testing.assert_close(stepwise, attention.q_proj.weight.grad)


def test_caches_beside_activation_checkpoints_are_refused() -> None:
    stack = stack_of(checkpoint_activations=True)
    with pytest.raises(ValueError, match="twice"):
        stack(torch.randn(1, 2, 8), Positions(2, 2, CPU, causal=True), caches=[KeyValueCache()])


@pytest.mark.parametrize("batch_first", [True, False])
def test_encodings_get_content_projections_of_one_layout(batch_first: bool) -> None:
    attention = SelfAttention(8, 2, batch_first=batch_first)
    attention.use(build("none", None, CAUSAL), 1)
    layer = attention.view.layers["none"]
    for project in (layer.project_q, layer.project_k):
        assert project(torch.randn(1, 7, 8)).shape == (1, 2, 7, 4)


# -- values that are cached between forward passes


STEP = Positions(1, 3, CPU, causal=True)


def keep(cache: DecodingCache, weight: Tensor, length: int, at: Positions = STEP, **options: Any) -> tuple[Tensor, int]:
    return cache.get(length, [weight], lambda n: weight.sum() * torch.ones(n), at, **{"training": False, **options})


def test_nothing_is_kept_in_training() -> None:
    cache, weight = DecodingCache(), nn.Parameter(torch.ones(1))
    with torch.no_grad():
        for value in (1.0, 2.0):
            weight.data.fill_(value)  # a write that torch does not count
            assert keep(cache, weight, 3, training=True)[0].tolist() == [value] * 3


def test_nothing_is_kept_by_a_forward_pass_without_cached_tokens() -> None:
    """Segment memory is no cache."""
    cache, weight = DecodingCache(), nn.Parameter(torch.ones(1))
    whole, after_memory = Positions(3, 3, CPU, causal=True), Positions(3, 5, CPU, memory=2, causal=True)
    with torch.no_grad():
        for at in (STEP, whole, STEP, after_memory):
            weight.data.fill_(float(weight) + 1)  # a write that torch does not count
            before = cache._kept
            value = keep(cache, weight, 3, at)[0]
            assert (cache._kept is None) == (at is not STEP)
            if before is None:
                assert value[0] == float(weight)


def test_what_is_kept_grows_geometrically_and_never_beyond_the_limit() -> None:
    cache, weight = DecodingCache(), nn.Parameter(torch.ones(1))
    with torch.no_grad():
        assert [keep(cache, weight, n, limit=12)[1] for n in (2, 3, 4, 5, 10, 11, 12)] == [4, 4, 4, 10, 10, 12, 12]


def test_new_data_cannot_get_the_address_that_a_kept_value_is_known_by() -> None:
    """The allocator reuses addresses, so the cache holds the old data as long as the value computed from it."""
    cache, weight = DecodingCache(), nn.Parameter(torch.ones(16))
    with torch.no_grad():
        keep(cache, weight, 3)
        address = weight.data_ptr()
        weight.data = torch.empty(0)
        assert cache._kept is not None
        assert [held.data_ptr() for held, _ in cache._kept.parameters] == [address]  # nothing else gets it
        weight.data = torch.full((16,), 2.0)
        assert keep(cache, weight, 3)[0].tolist() == [32.0] * 6


def test_parameters_made_in_inference_mode_are_served() -> None:
    with torch.inference_mode():
        stack = stack_of("t5").eval()
        assert stack(torch.randn(1, 2, 8), Positions(2, 2, CPU, causal=True))[0].shape == (1, 2, 8)


def test_tables_grow_with_the_length_only() -> None:
    tables = GrownTables()
    for dtype in [torch.float32, torch.float64] * 4:
        (table,) = tables.get(3, 4, CPU, dtype, lambda n: (torch.arange(n).double(),))
        assert (len(table), table.dtype) == (4, dtype)
    assert len(tables.get(5, 4, CPU, torch.float32, lambda n: (torch.arange(n).double(),))[0]) == 8
