"""Test that FlexAttention computes tables of products again for the backward pass, instead of keeping them."""

from __future__ import annotations

import weakref

import pytest
import torch
from torch import Tensor

from fairseq_posenc.attention.flex import _is_same, computed_again
from fairseq_posenc.core.terms import OfQuery, Rows


@pytest.fixture
def term() -> OfQuery:
    """Return a term whose table is square, so that its transpose has the same shape."""
    x, vectors = torch.randn(1, 2, 5, 4), torch.randn(1, 5, 4, requires_grad=True)
    return OfQuery(x, vectors, Rows(torch.tensor(4)), offset=0.5)


def gradient(term: OfQuery, output: Tensor) -> Tensor:
    (of_vectors,) = torch.autograd.grad(output.sum(), term.vectors)
    return of_vectors


def test_a_table_of_products_is_not_kept(term: OfQuery) -> None:
    numbers = term.numbers()
    with computed_again([(term, numbers)]):
        output = numbers.sin()  # autograd would save the table
    alive = weakref.ref(numbers)
    del numbers
    assert alive() is None
    torch.testing.assert_close(gradient(term, output), gradient(term, term.numbers().sin()))


def test_a_view_in_another_order_is_kept(term: OfQuery) -> None:
    numbers = term.numbers()
    with computed_again([(term, numbers)]):
        output = numbers.mT.sin().cumsum(-1)
    torch.testing.assert_close(gradient(term, output), gradient(term, term.numbers().mT.sin().cumsum(-1)))


def test_only_the_same_numbers_in_the_same_order_are_the_same() -> None:
    numbers = torch.zeros(8)
    left, right = numbers[:4], numbers[4:]
    assert _is_same(left, numbers[:4])
    assert not _is_same(left, right)
    assert not _is_same(right, left)
    assert not _is_same(left, left.view(torch.int32))
    assert not _is_same(left.view(2, 2), left.view(2, 2).t())
    assert not _is_same(left, left.view(2, 2))
    assert not _is_same(left, None)
