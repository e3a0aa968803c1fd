"""Test that the loops for a single query give the products of each key with its vector."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.autograd import forward_ad

from fairseq_posenc.ops import single_query, toeplitz
from fairseq_posenc.ops.content import Content
from fairseq_posenc.positions import Positions


def inputs(tables: int = 1, keys: int = 37, dim: int = 16) -> tuple[Tensor, Tensor, Tensor]:
    """Return keys that are a part of a cache's buffer, vectors that are a part of a table, and a query."""
    torch.manual_seed(0)
    k, a = torch.randn(2, 3, keys + 3, dim)[:, :, :keys], torch.randn(tables, keys + 4, dim)[:, 2 : keys + 2]
    return k, a, torch.randn(2, 3, 1, dim)


@pytest.mark.parametrize("loops", [False, True])
@pytest.mark.parametrize("tables", [1, 3])
def test_loops_and_plain_operations_give_the_products(
    tables: int, loops: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    k, a, q = inputs(tables)
    monkeypatch.setattr(single_query, "LEAST", 1 if loops else 1 << 60)
    with torch.no_grad():
        assert single_query.in_one_loop(k) is loops
        content, own = single_query.of_query_and_of_keys(k, a, q)
        others = single_query.of_keys(k, a), single_query.of_keys_and_query(k, a, q), single_query.of_all_three(k, a, q)
    of_query, of_key = (torch.einsum("bhjd,bhjd->bhj", k, x.expand_as(k)).unsqueeze(2) for x in (q, a))
    product = torch.einsum("bhjd,bhid,hjd->bhij", k, q, a.expand(3, -1, -1))
    for actual, expected in zip(
        (content, own, *others), (of_query, of_key, of_key, of_query + of_key, product), strict=True
    ):
        torch.testing.assert_close(actual, expected, rtol=1e-5, atol=1e-5)


def test_operations_that_torch_must_see_run_without_a_loop() -> None:
    """In a compiled loop, a traced graph would be incomplete, forward gradients would be lost, and vmap would fail."""
    k, a, q = inputs(keys=512, dim=64)
    assert k.numel() >= single_query.LEAST
    literal = torch.einsum("bhjd,bhjd->bhj", k, q + a).unsqueeze(2)

    def run(q: Tensor) -> Tensor:
        return single_query.of_keys_and_query(k, a, q)

    with torch.no_grad():
        traced = torch.jit.trace(run, q, check_trace=False)(q)
        mapped = torch.vmap(run)(q[None])[0]
        with forward_ad.dual_level():
            tangent = forward_ad.unpack_dual(run(forward_ad.make_dual(q, torch.ones_like(q)))).tangent
    for actual, expected in ((traced, literal), (mapped, literal), (tangent, k.sum(-1).unsqueeze(2))):
        torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-4)


def test_the_content_of_the_same_keys_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """The content of projected keys, as with RoPE, is left to the attention."""
    monkeypatch.setattr(single_query, "LEAST", 1)
    k, a, q = inputs()
    where, rows = Positions(1, 37, k.device), slice(0, 37)
    with torch.no_grad():
        for keys, taken in ((k, True), (k.clone(), False)):
            content = Content(q, keys, 0.7)
            total = toeplitz.query_product(q, a, where, rows) + toeplitz.key_product(k, a, where, rows, content)
            assert content.taken is taken
            expected = torch.einsum("bhid,hjd->bhij", q, a.expand(3, -1, -1)) + (k * a).sum(-1).unsqueeze(2)
            expected = expected + content.product() if taken else expected
            torch.testing.assert_close(total, expected, rtol=1e-4, atol=1e-4)
