"""Test that several threads can use one model in evaluation mode, and that a cache can change its mode."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from laws.cases import Case, defaults, in_last_direction
from laws.scene import drawn, embedded, new_caches, padded, positions_of
from torch import Tensor
from torch.nn.utils import prune

from fairseq_posenc.stack import Stack

LENGTH = 7
CASES = defaults(in_last_direction)


def decoded(stack: Stack, lengths: list[int]) -> Tensor:
    """Return the outputs for each token, by decoding if the stack is a decoder and by one forward pass otherwise."""
    width = max(lengths)
    tokens = padded(lengths, width)
    x = embedded(tokens, stack.shape.dim).to(next(stack.parameters()).dtype)
    if not stack.shape.causal:
        return stack(x, positions_of(tokens, stack))[0]
    caches = new_caches(stack)
    steps = [
        stack(x[:, end - 1 : end], positions_of(tokens[:, :end], stack, cached=end - 1), caches=caches)[0]
        for end in range(1, width + 1)
    ]
    return torch.cat(steps, 1)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_threads_get_the_results_of_a_single_thread(case: Case) -> None:
    stack = drawn(case.stack(case.shape())).float()
    batches = [[length, max(length - 1, 1)] for length in (3, 9, 5, 12)]

    def run(number: int) -> Tensor:
        with torch.no_grad():
            return decoded(stack, batches[number % 4])

    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(run, range(12)))
    for number, out in enumerate(together):
        torch.testing.assert_close(out, run(number), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("case", [case for case in CASES if case.causal and "compress" not in case.hooks], ids=str)
def test_a_cache_of_inference_mode_can_be_continued(case: Case) -> None:
    stack = drawn(case.stack(case.shape()))
    tokens = padded([LENGTH, LENGTH], LENGTH)
    x = embedded(tokens, stack.shape.dim)
    expected = stack(x, positions_of(tokens, stack))[0]
    modes: list[Callable[[], object]] = [torch.inference_mode, torch.no_grad, torch.enable_grad, torch.inference_mode]
    caches, outputs = new_caches(stack), []
    for end in range(1, LENGTH + 1):
        with modes[end % 4]():  # type: ignore[attr-defined]
            positions = positions_of(tokens[:, :end], stack, cached=end - 1)
            outputs.append(stack(x[:, end - 1 : end], positions, caches=caches)[0].clone())
            if end == 4:
                for cache in caches:
                    cache.reorder(torch.tensor([0, 1]))
    torch.testing.assert_close(torch.cat(outputs, 1), expected)


def test_caches_are_neither_copied_nor_pickled() -> None:
    for case in CASES:
        stack = drawn(case.stack(case.shape())).float()
        before = len(pickle.dumps(stack))
        with torch.no_grad():
            out = decoded(stack, [12, 9])
            assert len(pickle.dumps(stack)) <= before + 256, case  # the messages that were logged
            twin = copy.deepcopy(stack)
            torch.testing.assert_close(decoded(twin, [12, 9]), out)
            stream = io.BytesIO(pickle.dumps(stack))
            torch.testing.assert_close(decoded(pickle.load(stream), [12, 9]), out)


@pytest.mark.parametrize("case", [case for case in CASES if case.encoding(case.shape()).parameters], ids=str)
def test_pruned_tables_train(case: Case) -> None:
    """Pruning replaces each parameter by a product with a mask, which a hook computes before each forward pass."""
    stack = drawn(case.stack(case.shape()))
    for member in stack.pos.members.values():
        for name in member.learned:
            prune.random_unstructured(member, name, amount=0.5)
    tokens = padded([LENGTH, 4], LENGTH)
    x = embedded(tokens, stack.shape.dim)
    optimizer = torch.optim.SGD(stack.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        stack(x, positions_of(tokens, stack))[0][..., 0].square().sum().backward()
        optimizer.step()
    pruned = stack(x, positions_of(tokens, stack))[0]
    for member in stack.pos.members.values():
        for name in member.learned:
            prune.remove(member, name)
    torch.testing.assert_close(pruned, stack(x, positions_of(tokens, stack))[0])


@pytest.mark.parametrize("case", CASES, ids=str)
def test_replicas_of_data_parallel_have_their_own_tables(case: Case) -> None:
    """The parameters of a replica are plain attributes, as `DataParallel` makes them on several cards."""
    stack = drawn(case.stack(case.shape()))
    tokens = padded([LENGTH, 4], LENGTH)
    x = embedded(tokens, stack.shape.dim)
    expected = stack(x, positions_of(tokens, stack))[0]
    replica = copy.deepcopy(stack)
    for module in replica.modules():
        for name, parameter in list(module._parameters.items()):
            del module._parameters[name]
            setattr(module, name, None if parameter is None else parameter * 1.0)
    torch.testing.assert_close(replica(x, positions_of(tokens, replica))[0], expected)
