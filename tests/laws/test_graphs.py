"""Test law 19: the compiled formula, which GPUs run, has the outputs and gradients of the reference, in few graphs.

`make test` traces the formula of every encoding without generating code (the backend aot_eager), and compiles a few on
a CPU. With `--device cuda`, the tests at users' sizes run on the GPU.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._functorch.aot_autograd import aot_module_simplified

from fairseq_posenc.attention import PathRefusedError, graphs
from fairseq_posenc.core import shared_bias
from fairseq_posenc.stack import Stack

from . import broken
from .cases import Case, defaults, every, in_one_direction, in_turn
from .compare import assert_close
from .scene import PAD, Scene, embedded, normal, padded, positions_of, use_path
from .test_reference import Forward

ON_GPU = torch.get_default_device().type == "cuda"
#: Sizes of the batches of a training run: samples and tokens.
BATCHES = ((2, 16), (3, 24), (4, 40), (2, 33))
MOST = 4


@pytest.fixture(autouse=True)
def as_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Trace without generating code, and let layers compute shared biases themselves, as on a GPU."""
    monkeypatch.setattr(graphs, "BACKEND", "inductor" if ON_GPU else "aot_eager")
    monkeypatch.setattr(shared_bias, "ONCE", ())
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def check(case: Case, scene: Scene) -> None:
    """Compare outputs and gradients of the compiled path in float32 with the reference in float64."""
    exact, forward = Forward(case, scene), Forward(case, scene, torch.float32)
    actual, expected = forward.actual("compiled"), exact.literal()
    assert_close(actual, expected, 1e-5, "output")
    right = exact.gradients(expected)
    for name, gradient in forward.gradients(actual).items():
        assert_close(gradient, right[name], 1e-5, f"gradient of {name}")


#: Hooks of encodings that change the logits or the values; the others take the fused kernel on a GPU.
CHANGES = {"bias", "content_bias", "scores", "adapt", "values"}


def tried(case: Case) -> bool:
    """Return whether `make test` tries a case; `make test-long` tries all."""
    return in_one_direction(case) and bool(case.hooks & CHANGES)


@pytest.mark.parametrize("case", in_turn(lambda case: not case.args, tried))
def test_the_compiled_formula_equals_the_reference(case: Case) -> None:
    """Memory or cached columns come before the queries, and pads are on the left."""
    check(case, Scene(before=2, side="left", layers=1))


@pytest.mark.long
@pytest.mark.parametrize("case", every(), ids=str)
def test_the_compiled_formula_equals_the_reference_with_any_option(case: Case) -> None:
    check(case, Scene(before=2, side="right", span=3))


@pytest.mark.parametrize(
    "case", in_turn(lambda case: not case.args, lambda case: str(case) in ("shaw-causal", "t5-causal", "m3-causal"))
)
def test_inductor_gives_the_reference(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs, "BACKEND", "inductor")
    check(case, Scene(before=2, side="left", layers=1))


def test_documents_and_own_positions_are_compiled() -> None:
    stack = Scene(queries=6).stack(Case("shaw", {"clip": 2})).float()
    tokens = padded([6, 6], 6)
    x, where = embedded(tokens, stack.shape.dim).float(), positions_of(tokens, stack)
    documents = torch.tensor([[0, 0, 1, 1, 1, 2], [0, 0, 0, 0, 1, 1]])
    for positions in (replace(where, documents=documents), replace(where, ids=torch.tensor([0, 3, 4, 9, 12, 13]))):
        outputs = []
        for path in ("compiled", "explicit"):
            use_path(stack, path)
            outputs.append(stack(x, positions)[0])
        assert_close(*outputs, 1e-5, "compiled")


# -- few graphs ----------------------------------------------------------------------------------------------


def compiled_graphs() -> int:
    """Return how many graphs torch keeps of the formula."""
    return len(torch._dynamo.eval_frame._debug_get_cache_entry_list(graphs._attended.__code__))


class Trained:
    """Train a stack in bfloat16 with the compiled path, the explicit one, and the explicit one in float64."""

    def __init__(self, case: Case, layers: int = 2) -> None:
        exact = case.stack(case.shape(layers=layers, head_dim=16, max_length=64)).train()
        self.stacks = {"compiled": copy.deepcopy(exact).bfloat16(), "explicit": copy.deepcopy(exact).bfloat16()}
        self.stacks["exact"] = exact
        for path, stack in self.stacks.items():
            use_path(stack, "explicit" if path == "exact" else path)

    def step(self, tokens: Tensor) -> None:
        """Run one batch, and check that the compiled path is about as near to float64 as the explicit one."""
        results: dict[str, list[Tensor]] = {}
        for path, stack in self.stacks.items():
            x = embedded(tokens, stack.shape.dim).to(next(stack.layers.parameters()).dtype).requires_grad_()
            out = stack(x, positions_of(tokens, stack))[0][tokens.ne(PAD)]
            tables = list(stack.pos.parameters())
            gradients = torch.autograd.grad(out.float().square().sum(), [x, *tables], allow_unused=True)
            results[path] = [torch.zeros(()) if t is None else t.double() for t in (out, *gradients)]
        for actual, explicit, exact in zip(*results.values(), strict=True):
            error = float((explicit - exact).detach().abs().max() / exact.abs().max().clamp(min=1))
            assert_close(actual, exact, 2 * error + 0.01, "bfloat16")


def trained(case: Case, *, side: str = "", layers: int = 2) -> int:
    """Train on several batches, with padding if `side` is set, and return the number of graphs."""
    model = Trained(case, layers)
    for batch, length in BATCHES:
        lengths = [length - (i % 2 if side else 0) for i in range(batch)]
        model.step(padded(lengths, length, side or "none"))
    return compiled_graphs()


@pytest.mark.parametrize("case", in_turn(lambda case: not case.args, tried))
def test_an_encoding_has_few_graphs(case: Case) -> None:
    """No layer and no size of a batch needs a graph of its own, and bfloat16 is as exact as in eager mode."""
    assert trained(case) <= 2


@pytest.mark.long
@pytest.mark.parametrize("case", every(lambda case: bool(case.args)), ids=str)
def test_an_encoding_with_any_option_has_few_graphs(case: Case) -> None:
    """Lengths beyond a clip distance may have a graph of their own."""
    assert trained(case) <= 2
    assert trained(case, side="right") <= MOST


@pytest.mark.parametrize(
    ("case", "side"), [(Case("tupe"), "left"), (Case("shaw", {"clip": 20}, causal=True), "right")], ids=str
)
def test_padding_and_lengths_beyond_a_clip_distance_need_few_more_graphs(case: Case, side: str) -> None:
    trained(case)
    assert trained(case, side=side) <= MOST


def test_two_encodings_in_a_process_do_not_disturb_each_other() -> None:
    """Torch compares the inputs of one encoding with the graphs of the others."""
    for name in ("xl", "shaw", "rope", "xl"):
        trained(Case(name), layers=1)


def test_a_graph_for_each_length_is_caught() -> None:
    with pytest.raises(AssertionError):
        assert trained(Case("broken", cls=broken.GraphForEachLength), layers=1) <= MOST - 1


def test_an_encoding_that_compiles_to_something_else_is_caught() -> None:
    with pytest.raises(AssertionError, match="output"):
        check(Case("broken", cls=broken.OtherWhenCompiled), Scene(before=2))


# -- as in eager mode -----------------------------------------------------------------------------------------


def one_step(stack: Stack, path: str, seed: int = 0) -> list[Tensor]:
    """Return the output and the gradients of a training step with dropout."""
    use_path(stack, path)
    tokens = padded([7, 5], 7)
    x = embedded(tokens, stack.shape.dim).requires_grad_()
    torch.manual_seed(seed)
    out = stack(x, positions_of(tokens, stack))[0][tokens.ne(PAD)]
    gradients = torch.autograd.grad(out.square().sum(), [x, *stack.parameters()], allow_unused=True)
    return [out, *(torch.zeros(()) if gradient is None else gradient for gradient in gradients)]


@pytest.mark.skipif(ON_GPU, reason="inductor draws other random numbers than torch does eagerly")
@pytest.mark.parametrize("checkpointed", [False, True])
def test_dropout_is_the_same_as_in_eager_mode(checkpointed: bool) -> None:
    """Compiling must not draw random numbers, and activation checkpointing must draw the same again."""
    case = Case("m4")
    stack = case.stack(case.shape(), attention_dropout=0.4, checkpoint_activations=checkpointed).train()
    for actual, expected in zip(one_step(stack, "compiled"), one_step(stack, "explicit"), strict=True):
        assert_close(actual, expected, 1e-9, "a step with dropout")
    assert not torch.equal(one_step(stack, "compiled")[0], one_step(stack, "compiled", seed=1)[0])


def test_the_compiled_path_serves_inference_mode_autocast_and_a_single_token() -> None:
    stack = Scene(queries=6, layers=1).stack(Case("shaw", causal=True)).float()
    tokens = padded([6, 4], 6)
    x = embedded(tokens, stack.shape.dim).float()
    device = x.device.type
    outputs: dict[str, list[Tensor]] = {}
    for path in ("compiled", "explicit"):
        use_path(stack, path)
        with torch.inference_mode():
            whole = stack(x, positions_of(tokens, stack))[0]
            single = stack(x[:, :1], positions_of(tokens[:, :1], stack))[0]
        with torch.autocast(device, torch.bfloat16):
            half = stack(x, positions_of(tokens, stack))[0].float()
        outputs[path] = [whole, single, half]
    for actual, expected, tolerance in zip(outputs["compiled"], outputs["explicit"], (1e-5, 1e-5, 0.04), strict=True):
        assert_close(actual, expected, tolerance, "compiled")


# -- failures of the compiler -----------------------------------------------------------------------------------


def failing(when: Callable[[int], bool], backward: bool) -> Any:
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


@pytest.mark.parametrize("backward", [False, True], ids=["forward", "backward"])
@pytest.mark.parametrize("first", [1, 2], ids=["at once", "at a later graph"])
def test_training_goes_on_eagerly_if_compiling_fails(
    first: int, backward: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The second batch has padding, and so a graph of its own."""
    backend = failing(lambda number: number >= first, backward)
    monkeypatch.setattr(torch._dynamo, "lookup_backend", lambda name: backend)
    stack = Scene(queries=6).stack(Case("shaw")).train()
    as_if_on_a_gpu(monkeypatch)
    with caplog.at_level(logging.INFO, logger="fairseq_posenc"):
        for lengths in ([6, 6], [6, 4], [6, 6]):
            tokens = padded(lengths, 6)
            x = embedded(tokens, stack.shape.dim).requires_grad_()
            out = stack(x, positions_of(tokens, stack))[0]
            (gradient,) = torch.autograd.grad(out.square().sum(), x)
            use_path(stack, "explicit")
            expected = stack(x, positions_of(tokens, stack))[0]
            use_path(stack, "auto")
            assert_close(out, expected, 1e-9, "output")
            assert_close(gradient, torch.autograd.grad(expected.square().sum(), x)[0], 1e-9, "gradient")
    reasons = [record for record in caplog.records if "the card is too old" in record.message]
    assert [record.levelname for record in reasons] == ["WARNING"]
    assert "attention path of shaw in the encoder: explicit" in reasons[0].message
    assert "for a compiler" not in reasons[0].message


def as_if_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the path `auto` choose as on a GPU."""
    from fairseq_posenc.attention import paths

    choose = paths.choose
    cuda = torch.device("cuda")
    monkeypatch.setattr(paths, "choose", lambda x, call, mode, path: choose(x, call, mode, path, cuda))


def refused(stack: Stack) -> str:
    """Return why the path `compiled` was refused."""
    use_path(stack, "compiled")
    tokens = padded([6], 6)
    with pytest.raises(PathRefusedError) as error:
        stack(embedded(tokens, stack.shape.dim), positions_of(tokens, stack))
    return str(error.value)


def test_the_path_compiled_refuses_instead_of_falling_back(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = failing(lambda number: True, backward=False)
    monkeypatch.setattr(torch._dynamo, "lookup_backend", lambda name: backend)
    assert "the card is too old" in refused(Scene().stack(Case("shaw")))


def test_a_compiler_that_is_switched_off_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs, "compiled", lambda formula, backend: formula)
    monkeypatch.setattr(graphs.GRAPHS, "count", 0)
    assert "TORCHDYNAMO_DISABLE" in refused(Scene().stack(Case("shaw")))


def test_a_lack_of_memory_is_no_failure_of_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """The explicit path would need more memory, and fairseq leaves out a batch that does not fit."""

    def exhausted(*arguments: Any) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(graphs, "compiled", lambda formula, backend: exhausted)
    as_if_on_a_gpu(monkeypatch)
    stack, tokens = Scene().stack(Case("shaw")).train(), padded([6], 6)
    with pytest.raises(torch.OutOfMemoryError):
        stack(embedded(tokens, stack.shape.dim), positions_of(tokens, stack))


# -- users' sizes ----------------------------------------------------------------------------------------------

#: Head widths, lengths and samples. At some lengths, cuDNN's kernel had wrong gradients with a mask.
SIZES = [(64, 512, 4), (128, 512, 2), *((64, n, 2) for n in (64, 192, 320, 704))] if ON_GPU else [(16, 24, 2)]
TRIED = defaults(in_one_direction) if ON_GPU else [Case("shaw"), Case("rope")]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32], ids=str)
@pytest.mark.parametrize("case", TRIED, ids=str)
def test_training_at_users_sizes_is_finite_and_close(case: Case, dtype: torch.dtype) -> None:
    """The path of `auto` is compared with the explicit one in float64, without and with dropout."""
    for head_dim, length, batch in SIZES:
        shape = case.shape(layers=1, heads=4, head_dim=head_dim, max_length=length)
        tokens = padded([length, *[length - 5] * (batch - 1)], length)
        exact = case.stack(shape).train()
        x = normal(batch, length, shape.dim, generator=torch.Generator().manual_seed(0))
        outputs = []
        for stack, path in ((exact, "explicit"), (case.stack(shape).to(dtype).train(), "auto")):
            use_path(stack, path)
            own = x.to(next(stack.layers.parameters()).dtype).requires_grad_()
            out = stack(own, positions_of(tokens, stack))[0][tokens.ne(PAD)]
            outputs.append([out, *torch.autograd.grad(out.float().square().sum(), [own])])
        for actual, expected in zip(outputs[1], outputs[0], strict=True):
            assert_close(actual.double(), expected, 1e-4 if dtype == torch.float32 else 0.06, f"{head_dim}, {length}")
        dropped = case.stack(shape, attention_dropout=0.1).to(dtype).train()
        out = dropped(x.to(dtype), positions_of(tokens, dropped))[0]
        assert torch.isfinite(out).all()
        out.float().square().sum().backward()
        assert all(torch.isfinite(p.grad).all() for p in dropped.parameters() if p.grad is not None)
