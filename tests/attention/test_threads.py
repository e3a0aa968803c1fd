"""Test that a model works in several threads, in other modes of torch, as a copy, and with tables torch replaced."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
from laws.cases import Case, defaults, in_last_direction
from laws.scene import batch_of, drawn, new_caches, positions_of
from torch import Tensor
from torch.nn.utils import prune

from fairseq_posenc.stack import Stack

CASES = defaults(in_last_direction)


def decoded(stack: Stack, lengths: list[int], modes: Sequence[Any] = (torch.no_grad,)) -> Tensor:
    """Return the outputs for each token: of a decoder step by step, in these modes by turns, or of one forward pass."""
    tokens, x, positions = batch_of(stack, lengths)
    if not stack.shape.causal:
        return stack(x, positions)[0]
    caches, steps = new_caches(stack), []
    for end in range(1, tokens.shape[1] + 1):
        with modes[end % len(modes)]():
            positions = positions_of(tokens[:, :end], stack, cached=end - 1)
            steps.append(stack(x[:, end - 1 : end], positions, caches=caches)[0].clone())
            for cache in caches:
                cache.reorder(torch.arange(len(tokens)))
    return torch.cat(steps, 1)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_threads_get_the_results_of_a_single_thread(case: Case) -> None:
    stack = drawn(case.stack(case.shape())).float().requires_grad_(False)
    batches = [[length, max(length - 1, 1)] for length in (3, 9, 5, 12)] * 3
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda lengths: decoded(stack, lengths), batches))
    for lengths, out in zip(batches, together, strict=True):
        torch.testing.assert_close(out, decoded(stack, lengths), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("case", [case for case in CASES if case.causal and "compress" not in case.hooks], ids=str)
def test_a_cache_of_inference_mode_can_be_continued(case: Case) -> None:
    stack = drawn(case.stack(case.shape()))
    _, x, positions = batch_of(stack, [7, 7])
    steps = decoded(stack, [7, 7], [torch.inference_mode, torch.no_grad, torch.enable_grad, torch.inference_mode])
    torch.testing.assert_close(steps, stack(x, positions)[0])


@pytest.mark.parametrize("case", CASES, ids=str)
def test_caches_are_neither_copied_nor_pickled(case: Case) -> None:
    stack = drawn(case.stack(case.shape())).float().requires_grad_(False)
    before = len(pickle.dumps(stack))
    out = decoded(stack, [12, 9])
    assert len(pickle.dumps(stack)) <= before + 256  # the messages that were logged
    for twin in (copy.deepcopy(stack), pickle.loads(pickle.dumps(stack))):
        torch.testing.assert_close(decoded(twin, [12, 9]), out)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_pruned_tables_train(case: Case) -> None:
    """Pruning replaces each parameter by a product with a mask, which a hook computes before each forward pass."""
    stack = drawn(case.stack(case.shape()))
    tables = [(member, name) for member in stack.pos.members.values() for name in member.learned]
    for member, name in tables:
        prune.random_unstructured(member, name, amount=0.5)
    _, x, positions = batch_of(stack, [7, 4])
    optimizer = torch.optim.SGD(stack.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        stack(x, positions)[0][..., 0].square().sum().backward()
        optimizer.step()
    pruned = stack(x, positions)[0]
    for member, name in tables:
        prune.remove(member, name)
    torch.testing.assert_close(pruned, stack(x, positions)[0])


@pytest.mark.parametrize("case", CASES, ids=str)
def test_replicas_of_data_parallel_have_their_own_tables(case: Case) -> None:
    """The parameters of a replica are plain attributes, as `DataParallel` makes them on several cards."""
    stack = drawn(case.stack(case.shape()))
    _, x, positions = batch_of(stack, [7, 4])
    expected = stack(x, positions)[0]
    replica = copy.deepcopy(stack)
    for module in replica.modules():
        for name, parameter in list(module._parameters.items()):
            del module._parameters[name]
            setattr(module, name, None if parameter is None else parameter * 1.0)
    torch.testing.assert_close(replica(x, batch_of(stack, [7, 4])[2])[0], expected)
