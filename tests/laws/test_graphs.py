"""Test law 19: the compiled formula, which GPUs run, has the outputs and gradients of the reference, in few graphs.

`make test` traces the formula of every encoding without generating code (the backend aot_eager), and compiles a few on
a CPU. With `--device cuda`, the tests at users' sizes run on the GPU.
"""

from __future__ import annotations

import copy
import itertools
import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._functorch.aot_autograd import aot_module_simplified
from torch.utils.checkpoint import checkpoint

from fairseq_posenc.attention import PathRefusedError, Projected, graphs, paths
from fairseq_posenc.core import relative
from fairseq_posenc.stack import Stack

from . import broken
from .cases import Case, defaults, first_of_kind, in_one_direction, in_turn
from .compare import assert_close
from .scene import PAD, Scene, embedded, normal, padded, positions_of, use_path
from .test_reference import Forward

ON_GPU = torch.get_default_device().type == "cuda"
#: Sizes of the batches of a training run: samples and tokens.
BATCHES = ((2, 16), (3, 24), (2, 33))


@pytest.fixture(autouse=True)
def as_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Trace without generating code, and let layers compute shared biases themselves, as on a GPU."""
    monkeypatch.setattr(graphs, "BACKEND", "inductor" if ON_GPU else "aot_eager")
    monkeypatch.setattr(relative, "ONCE", ())
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
#: Encodings with operations that the first encoding with the same hooks does not have.
OTHERS = {"t5", "fire", "tupe", "cope", "m3", "m4m", "deberta", "path"}


def tried(case: Case) -> bool:
    """Return whether `make test` tries a case; `make test-long` tries all."""
    own = first_of_kind(case) or (case.name in OTHERS and in_one_direction(case))
    return own and not case.args and bool(case.hooks & CHANGES)


@pytest.mark.parametrize("case", in_turn(now=tried))
def test_the_compiled_formula_equals_the_reference(case: Case) -> None:
    """Memory or cached columns come before the queries, and pads are on the left."""
    check(case, Scene(before=2, side="left", span=3, layers=1))


@pytest.mark.parametrize(
    "case", in_turn(lambda case: not case.args, lambda case: str(case) == "shaw-causal")
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


def directed(out: Tensor) -> Tensor:
    """Return a loss whose gradient differs from zero. The sum of squares of a layer norm's output would be constant."""
    return (out * normal(*out.shape, generator=torch.Generator().manual_seed(3)).to(out.dtype)).sum()


def assert_near(actual: Tensor, exact: Tensor, tolerance: float, what: str) -> None:
    """Compare two tensors relative to the largest number of the exact one, unless it is zero except for rounding."""
    largest = float(exact.abs().max())
    if largest > 1e-9:
        assert_close(actual.double() / largest, exact.double() / largest, tolerance, what)


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
            parameters = [*stack.pos.parameters(), stack.layers[0].self_attn.q_proj.weight]
            gradients = torch.autograd.grad(directed(out), [x, *parameters], allow_unused=True)
            results[path] = [torch.zeros(()) if t is None else t.double() for t in (out, *gradients)]
        for actual, explicit, exact in zip(*results.values(), strict=True):
            error = float((explicit - exact).detach().abs().max() / exact.abs().max().clamp(min=1e-9))
            assert_near(actual, exact, min(2 * error + 0.02, 0.2), "bfloat16")


def check_graphs(case: Case, most: int, *, side: str = "", layers: int = 2) -> None:
    """Train on several batches, with padding if `side` is set, and compare the number of all graphs with `most`."""
    model = Trained(case, layers)
    for batch, length in BATCHES:
        lengths = [length - (i % 2 if side else 0) for i in range(batch)]
        model.step(padded(lengths, length, side or "none"))
    assert compiled_graphs() <= most, f"{compiled_graphs()} graphs"


#: Biases and products; the tests below train with relative vectors, sinusoids, rotations and absolute positions.
FEW = [Case("t5"), Case("m1")]


@pytest.mark.parametrize("case", in_turn(now=lambda case: case in FEW))
def test_an_encoding_has_few_graphs(case: Case) -> None:
    """No layer and no size of a batch needs a graph of its own, and bfloat16 is as exact as in eager mode."""
    check_graphs(case, 2)


@pytest.mark.parametrize(
    ("case", "side"),
    [
        pytest.param(Case("tupe"), "left", marks=pytest.mark.long, id="tupe"),
        pytest.param(Case("shaw", {"clip": 20}, causal=True), "right", id="shaw"),
    ],
)
def test_padding_and_lengths_beyond_a_clip_distance_need_few_more_graphs(case: Case, side: str) -> None:
    check_graphs(case, 1)
    check_graphs(case, 2, side=side)


def test_single_samples_short_texts_padding_and_validation_need_few_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Torch makes graphs of their own for one sample, and for one and two tokens."""
    monkeypatch.setattr(graphs, "BACKEND", "eager")
    case = Case("shaw", {"clip": 20}, causal=True)
    stack = case.stack(case.shape(head_dim=8, max_length=64)).float()
    use_path(stack, "compiled")
    counts = []
    for _ in range(2):
        for training, batch, length, side in itertools.product((True, False), (1, 5), (1, 2, 40), ("", "right")):
            lengths = [max(1, length - (i % 2 if side else 0)) for i in range(batch)]
            tokens = padded(lengths, length, side or "none")
            with torch.set_grad_enabled(training):
                stack.train(training)(embedded(tokens, stack.shape.dim).float(), positions_of(tokens, stack))
        counts.append(compiled_graphs())
    assert counts[0] == counts[1] <= 24


def test_two_encodings_in_a_process_do_not_disturb_each_other() -> None:
    """Torch compares the inputs of one encoding with the graphs of the others."""
    for name in ("t5", "m1", "t5"):
        check_graphs(Case(name), 4, layers=1)


def test_a_graph_for_each_length_is_caught() -> None:
    with pytest.raises(AssertionError, match="3 graphs"):
        check_graphs(Case("broken", cls=broken.GraphForEachLength), 2, layers=1)


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
    gradients = torch.autograd.grad(directed(out), [x, *stack.parameters()], allow_unused=True)
    return [out, *(torch.zeros(()) if gradient is None else gradient for gradient in gradients)]


@pytest.mark.skipif(ON_GPU, reason="inductor draws other random numbers than torch does eagerly")
@pytest.mark.parametrize("checkpointed", [pytest.param(False, marks=pytest.mark.long), True])
def test_dropout_is_the_same_as_in_eager_mode(checkpointed: bool) -> None:
    """Compiling must not draw random numbers, and activation checkpointing must draw the same again."""
    case = Case("m1")
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


@pytest.mark.parametrize(
    ("first", "backward"),
    [(1, False), (2, True), *(pytest.param(*pair, marks=pytest.mark.long) for pair in ((1, True), (2, False)))],
)
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
            (gradient,) = torch.autograd.grad(directed(out), x)
            use_path(stack, "explicit")
            expected = stack(x, positions_of(tokens, stack))[0]
            use_path(stack, "auto")
            assert_close(out, expected, 1e-9, "output")
            assert_close(gradient, torch.autograd.grad(directed(expected), x)[0], 1e-9, "gradient")
    reasons = [record for record in caplog.records if "the card is too old" in record.message]
    assert [record.levelname for record in reasons] == ["WARNING"]
    assert "attention path of shaw in the encoder: explicit" in reasons[0].message
    assert "for a compiler" not in reasons[0].message


def gradient_of(stack: Stack, x: Tensor, tokens: Tensor, reentrant: bool) -> Tensor:
    """Return the gradient for the input of a step whose layers are computed again in the backward pass."""
    own = x.clone().requires_grad_()
    torch.manual_seed(0)
    positions = positions_of(tokens, stack)
    hidden = own
    for layer, tensors in zip(stack.layers, stack.pos.per_layer(positions), strict=True):
        hidden = checkpoint(layer, hidden, positions, tensors, use_reentrant=reentrant)
    (gradient,) = (
        torch.autograd.grad(directed(hidden), own) if not reentrant else (_of_backward(directed(hidden), own),)
    )
    return gradient


def _of_backward(loss: Tensor, own: Tensor) -> Tensor:
    loss.backward()
    assert own.grad is not None
    return own.grad


@pytest.mark.parametrize(
    ("first", "reentrant"),
    [
        *((1, False), (2, True), (3, False)),
        *(pytest.param(*pair, marks=pytest.mark.long) for pair in ((1, True), (2, False), (3, True))),
    ],
)
def test_a_failure_within_activation_checkpointing_changes_no_gradient(
    first: int, reentrant: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The two layers have graphs of their own. Reentrant checkpointing runs each layer first without gradients."""
    case = Case("shaw+t5", {"shaw.layers": "1", "t5.layers": "2"})
    stack = case.stack(case.shape(), attention_dropout=0.5).train()
    tokens = padded([7, 5], 7)
    x = embedded(tokens, stack.shape.dim)
    expected = gradient_of(stack, x, tokens, reentrant)
    backend = failing(lambda number: number >= first, backward=False)
    monkeypatch.setattr(torch._dynamo, "lookup_backend", lambda name: backend)
    as_if_on_a_gpu(monkeypatch)
    assert_close(gradient_of(stack, x, tokens, reentrant), expected, 1e-9, "gradient")
    assert ("the card is too old" in stack.pos.uncompiled) == (reentrant or first < 3)


def test_recomputing_the_attention_alone_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Activation checkpointing stops a recomputation by an exception."""
    stack = Scene(queries=6).stack(Case("shaw")).train()
    tokens = padded([6, 4], 6)
    where, attention = positions_of(tokens, stack), stack.layers[0].self_attn
    call = attention.view.at(where, stack.pos.per_layer(where)[0])
    q, k, v = (normal(2, 2, 6, 4, generator=torch.Generator().manual_seed(i)).requires_grad_() for i in range(3))
    as_if_on_a_gpu(monkeypatch)
    outputs = []
    for path in ("auto", "explicit"):
        run = lambda q, k, v, path=path: paths.attend(Projected(q, k, v), call, training=True, path=path)[0]  # noqa: E731
        outputs.append(torch.autograd.grad(directed(checkpoint(run, q, k, v, use_reentrant=False)), [q, k, v]))
    for actual, expected in zip(*outputs, strict=True):
        assert_close(actual, expected, 1e-9, "gradient")
    assert not stack.pos.uncompiled


def test_an_error_of_the_caller_is_no_failure_of_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    stack = Scene(queries=6).stack(Case("shaw")).train()
    where = positions_of(padded([6, 4], 6), stack)
    call = stack.layers[0].self_attn.view.at(where, stack.pos.per_layer(where)[0])
    as_if_on_a_gpu(monkeypatch)
    with pytest.raises(RuntimeError):
        paths.attend(Projected(*(torch.ones(2, 2, columns, 4).double() for columns in (6, 5, 6))), call, training=True)
    assert not stack.pos.uncompiled


def as_if_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the path `auto` choose as on a GPU."""
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
    with monkeypatch.context() as patch:
        patch.setattr(torch._dynamo, "lookup_backend", lambda name: failing(lambda number: True, backward=False))
        assert "the card is too old" in refused(Scene().stack(Case("shaw")))
    monkeypatch.setattr(graphs, "compiled", lambda formula, backend: formula)
    assert "TORCHDYNAMO_DISABLE" in refused(Scene().stack(Case("shaw")))


def test_a_lack_of_memory_is_no_failure_of_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """The explicit path would need more memory, and fairseq leaves out a batch that does not fit."""

    def exhausted(*arguments: Any) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(torch._dynamo, "lookup_backend", lambda name: exhausted)
    as_if_on_a_gpu(monkeypatch)
    stack, tokens = Scene().stack(Case("shaw")).train(), padded([6], 6)
    with pytest.raises(Exception, match="CUDA out of memory"):
        stack(embedded(tokens, stack.shape.dim), positions_of(tokens, stack))
    assert not stack.pos.uncompiled


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
            tables = list(stack.pos.parameters())
            gradients = torch.autograd.grad(directed(out), [own, *tables], allow_unused=True)
            outputs.append([torch.zeros(()) if t is None else t for t in (out, *gradients)])
        for actual, expected in zip(outputs[1], outputs[0], strict=True):
            assert_near(actual, expected, 1e-4 if dtype == torch.float32 else 0.06, f"{head_dim}, {length}")
        dropped = case.stack(shape, attention_dropout=0.1).to(dtype).train()
        out = dropped(x.to(dtype), positions_of(tokens, dropped))[0]
        assert torch.isfinite(out).all()
        out.float().square().sum().backward()
        assert all(torch.isfinite(p.grad).all() for p in dropped.parameters() if p.grad is not None)


@pytest.mark.parametrize("length", [64, 192, 320, 704] if ON_GPU else [24])
@pytest.mark.parametrize("name", ["none", "rope", "t5"])
def test_gradients_with_a_mask_are_finite_if_all_logits_are_very_negative(name: str, length: int) -> None:
    """At such lengths, the gradient of cuDNN's kernel contains NaN if a row's logsumexp is below -88.7."""
    case = Case(name)
    shape = case.shape(layers=1, heads=4, head_dim=64, max_length=length)
    stack = case.stack(shape).to(torch.bfloat16 if ON_GPU else torch.float32).train()
    attention = stack.layers[0].self_attn
    with torch.no_grad():  # all keys point away from all queries
        attention.k_proj.weight.copy_(-attention.q_proj.weight)
    tokens = padded([length, length - 5], length)
    x = 60 * normal(1, 1, shape.dim, generator=torch.Generator().manual_seed(0)).expand(2, length, -1)
    own = x.to(attention.q_proj.weight.dtype).requires_grad_()
    where = positions_of(tokens, stack)
    out = attention(own, where, stack.pos.per_layer(where)[0])[0]
    (gradient,) = torch.autograd.grad(directed(out), own)
    q, k = attention.project_query(own), attention.project_key(own)
    assert float((q * k).sum(-1).max()) * attention.head_dim**-0.5 < -88.7
    assert gradient.isfinite().all()
