"""Test law 19: where the compiler fails, training goes on eagerly with the same gradients, and says why once."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._functorch.aot_autograd import aot_module_simplified
from torch.utils.checkpoint import checkpoint

from fairseq_posenc.attention import PathRefusedError, Projected, graphs, paths
from fairseq_posenc.stack import Stack

from .cases import Case
from .compare import assert_all_close, assert_close
from .scene import Scene, batch_of, directed, normal, outcome, padded, use_path
from .test_graphs import as_on_a_gpu, trained

__all__ = ["as_on_a_gpu"]  # a fixture of every test


def failing(when: Callable[[int], bool], backward: bool = False) -> Any:
    """Return a backend that raises for some graphs, in the forward or the backward pass."""
    calls: list[int] = []

    def compile_(graph: Any, inputs: Any) -> Any:
        calls.append(len(calls))
        if when(len(calls)):
            raise ValueError("the card is too old\nfor a compiler")
        return graph.forward

    def backend(graph: Any, inputs: Any) -> Any:
        other = lambda graph, inputs: graph.forward  # noqa: E731
        passes = (other, compile_) if backward else (compile_, other)
        return aot_module_simplified(graph, inputs, fw_compiler=passes[0], bw_compiler=passes[1])

    return backend


def use_backend(monkeypatch: pytest.MonkeyPatch, backend: Any) -> None:
    """Compile by this backend, and let the path `auto` choose as on a GPU."""
    choose, cuda = paths.choose, torch.device("cuda")
    monkeypatch.setattr(paths, "choose", lambda x, call, mode, path: choose(x, call, mode, path, cuda))
    monkeypatch.setattr(torch._dynamo, "lookup_backend", lambda name: backend)


@pytest.mark.parametrize(("first", "backward"), [(2, True), pytest.param(1, False, marks=pytest.mark.long)])
def test_training_goes_on_eagerly_if_compiling_fails(
    first: int, backward: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The second batch has padding, and so a graph of its own."""
    stack = Scene(queries=6, layers=1).stack(Case("raffel")).train()
    use_backend(monkeypatch, failing(lambda number: number >= first, backward))
    with caplog.at_level(logging.INFO, logger="fairseq_posenc"):
        for lengths in ([6, 6], [6, 4], [6, 6]):
            tokens = padded(lengths, 6)
            use_path(stack, "auto")
            actual = trained(stack, tokens)
            use_path(stack, "explicit")
            assert_all_close(actual, trained(stack, tokens), 1e-9, "eager")
    reasons = [record for record in caplog.records if "the card is too old" in record.message]
    assert [record.levelname for record in reasons] == ["WARNING"]
    assert "attention path of raffel in the encoder: explicit" in reasons[0].message
    assert "for a compiler" not in reasons[0].message


def recomputed(stack: Stack, reentrant: bool) -> dict[str, Tensor]:
    """Return the output and gradients of a step whose layers are computed again in the backward pass."""
    _, x, positions = batch_of(stack, [7, 5])
    hidden = x.requires_grad_()
    torch.manual_seed(0)
    for layer, tensors in zip(stack.layers, stack.pos.per_layer(positions), strict=True):
        hidden = checkpoint(layer, hidden, positions, tensors, use_reentrant=reentrant)
    return outcome(stack, hidden, input=x)


@pytest.mark.parametrize(
    ("first", "reentrant"), [(2, True), (1, False), *(pytest.param(n, False, marks=pytest.mark.long) for n in (2, 3))]
)
def test_a_failure_within_activation_checkpointing_changes_no_gradient(
    first: int, reentrant: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The two layers have graphs of their own. Reentrant checkpointing runs each layer first without gradients."""
    case = Case("raffel+t5", {"raffel.layers": "1", "t5.layers": "2"})
    stack = case.stack(case.shape(), attention_dropout=0.5).train()
    expected = recomputed(stack, reentrant)
    use_backend(monkeypatch, failing(lambda number: number >= first))
    assert_all_close(recomputed(stack, reentrant), expected, 1e-9, "eager")
    assert ("the card is too old" in stack.pos.uncompiled) == (reentrant or first < 3)


def one_layer() -> tuple[Stack, Any]:
    """Return a stack in training, and what its layer calls the attention with."""
    stack = Scene(queries=6, layers=1).stack(Case("raffel")).train()
    _, _, where = batch_of(stack)
    return stack, stack.layers[0].self_attn.view.at(where, stack.pos.per_layer(where)[0])


def test_recomputing_the_attention_alone_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Activation checkpointing stops a recomputation by an exception."""
    stack, call = one_layer()
    x = [normal(2, 2, 6, 4, generator=torch.Generator().manual_seed(i)).requires_grad_() for i in range(3)]
    use_backend(monkeypatch, torch._dynamo.lookup_backend("aot_eager"))
    outputs = []
    for path in ("auto", "explicit"):
        run = lambda *x, path=path: paths.attend(Projected(*x), call, training=True, path=path)[0]  # noqa: E731
        outputs.append(torch.autograd.grad(directed(checkpoint(run, *x, use_reentrant=False)), x))
    assert_close(torch.stack(outputs[0]), torch.stack(outputs[1]), 1e-9, "gradients")
    assert not stack.pos.uncompiled


def test_an_error_of_the_caller_is_no_failure_of_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    stack, call = one_layer()
    use_backend(monkeypatch, torch._dynamo.lookup_backend("aot_eager"))
    with pytest.raises(RuntimeError):
        paths.attend(Projected(*(torch.ones(2, 2, columns, 4).double() for columns in (6, 5, 6))), call, training=True)
    assert not stack.pos.uncompiled


def test_a_lack_of_memory_is_no_failure_of_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """The explicit path would need more memory, and fairseq leaves out a batch that does not fit."""

    def exhausted(*arguments: Any) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    use_backend(monkeypatch, exhausted)
    stack, _ = one_layer()
    with pytest.raises(Exception, match="CUDA out of memory"):
        stack(*batch_of(stack)[1:])
    assert not stack.pos.uncompiled


def test_the_path_compiled_refuses_instead_of_falling_back(monkeypatch: pytest.MonkeyPatch) -> None:
    stack, _ = one_layer()
    use_path(stack, "compiled")
    with monkeypatch.context() as patch:
        use_backend(patch, failing(lambda number: True))
        with pytest.raises(PathRefusedError, match="the card is too old"):
            stack(*batch_of(stack)[1:])
    monkeypatch.setattr(graphs, "compiled", lambda formula, backend: formula)
    with pytest.raises(PathRefusedError, match="TORCHDYNAMO_DISABLE"):
        stack(*batch_of(stack)[1:])
