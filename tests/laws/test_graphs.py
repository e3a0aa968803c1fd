"""Test law 19: the compiled formula, which GPUs run, has the outputs and gradients of the reference, in few graphs.

`make test` traces the formula of every kind of encoding without generating code, and generates it for one on a CPU;
`test_compiled` also traces gradients. With `--device cuda`, the tests at users' sizes run on the GPU.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from fairseq_posenc.attention import graphs, windows
from fairseq_posenc.core import relative
from fairseq_posenc.stack import Stack

from . import broken
from .cases import Case, defaults, first_of_kind, in_one_direction, in_turn, without_options
from .compare import assert_all_close, assert_close
from .scene import PAD, Scene, batch_of, directed, embedded, normal, outcome, padded, positions_of, use_path
from .test_reference import Forward

ON_GPU = torch.get_default_device().type == "cuda"
MOST = 4
#: Sizes of the batches of a training run: samples and tokens.
BATCHES = ((2, 16), (3, 24), (2, 33))


@pytest.fixture(autouse=True)
def as_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Trace without generating code, and let layers compute shared biases themselves, as on a GPU."""
    monkeypatch.setattr(graphs, "BACKEND", "inductor" if ON_GPU else "eager")
    monkeypatch.setattr(relative, "ONCE", ())
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.fixture
def traced_gradients(as_on_a_gpu: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trace the gradients too, which takes three times as long."""
    monkeypatch.setattr(graphs, "BACKEND", "inductor" if ON_GPU else "aot_eager")


def check(case: Case, scene: Scene) -> None:
    """Compare outputs and gradients of the compiled path in float32 with the reference in float64."""
    exact, forward = Forward(case, scene), Forward(case, scene, torch.float32)
    actual, expected = forward.outcome(forward.actual("compiled")), exact.outcome(exact.literal())
    assert_all_close(actual, expected, 1e-5, "compiled")


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


@pytest.mark.parametrize("case", in_turn(without_options, lambda case: str(case) == "shaw-causal"))
def test_inductor_gives_the_reference(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs, "BACKEND", "inductor")
    check(case, Scene(before=2, side="left", layers=1))


def compiled_and_explicit(stack: Stack, run: Callable[[], dict[str, Tensor]]) -> list[dict[str, Tensor]]:
    """Return the results of both paths."""
    results = []
    for path in ("compiled", "explicit"):
        use_path(stack, path)
        results.append(run())
    return results


def test_documents_and_own_positions_are_compiled() -> None:
    stack = Scene(queries=6, layers=1).stack(Case("shaw", {"clip": 2})).float()
    _, x, where = batch_of(stack, [6, 6])
    documents = torch.tensor([[0, 0, 1, 1, 1, 2], [0, 0, 0, 0, 1, 1]])
    for positions in (replace(where, documents=documents), replace(where, ids=torch.tensor([0, 3, 4, 9, 12, 13]))):
        results = compiled_and_explicit(stack, lambda at=positions: outcome(stack, stack(x, at)[0]))
        assert_all_close(*results, 1e-5, "compiled")


# -- few graphs ----------------------------------------------------------------------------------------------


def compiled_graphs() -> int:
    """Return how many graphs torch keeps of the formula."""
    return len(torch._dynamo.eval_frame._debug_get_cache_entry_list(graphs._attended.__code__))


def assert_near(actual: Tensor, exact: Tensor, tolerance: float, what: str) -> None:
    """Compare two tensors relative to the largest number of the exact one, unless it is zero except for rounding."""
    largest = float(exact.abs().max())
    if largest > 1e-9:
        assert_close(actual.double() / largest, exact.double() / largest, tolerance, what)


def trained(stack: Stack, tokens: Tensor, x: Tensor | None = None) -> dict[str, Tensor]:
    """Return the output at tokens and the gradients of a training step, in float64."""
    x = embedded(tokens, stack.shape.dim) if x is None else x
    x = x.to(next(stack.layers.parameters()).dtype).requires_grad_()
    out = stack(x, positions_of(tokens, stack))[0][tokens.ne(PAD)]
    return {name: tensor.double() for name, tensor in outcome(stack, out, input=x).items()}


def check_graphs(case: Case, most: int, *, side: str = "", layers: int = 2) -> None:
    """Train in bfloat16 on several batches, with padding if `side` is set, and compare the number of all graphs.

    The compiled path must be about as near to float64 as the explicit one.
    """
    exact = case.stack(case.shape(layers=layers, head_dim=16, max_length=64)).train()
    half = copy.deepcopy(exact).bfloat16()
    use_path(exact, "explicit")
    for batch, length in BATCHES:
        tokens = padded([length - (i % 2 if side else 0) for i in range(batch)], length, side or "none")
        actual, explicit = compiled_and_explicit(half, lambda tokens=tokens: trained(half, tokens))
        for name, right in trained(exact, tokens).items():
            error = float((explicit[name] - right).abs().max() / right.abs().max().clamp(min=1e-9))
            assert_near(actual[name], right, min(2 * error + 0.02, 0.2), f"bfloat16: {name}")
    assert compiled_graphs() <= most, f"{compiled_graphs()} graphs"


#: Biases and products; the tests below train with relative vectors, sinusoids, rotations and absolute positions.
FEW = [Case("t5"), Case("m1")]


@pytest.mark.usefixtures("traced_gradients")
@pytest.mark.parametrize("case", in_turn(now=lambda case: case in FEW))
def test_an_encoding_has_few_graphs(case: Case) -> None:
    """No layer and no size of a batch needs a graph of its own, and bfloat16 is as exact as in eager mode."""
    check_graphs(case, 2)


def test_padding_and_lengths_beyond_a_clip_distance_need_few_more_graphs() -> None:
    case = Case("shaw", {"clip": 20}, causal=True)
    check_graphs(case, 1, layers=1)
    check_graphs(case, 2, side="right", layers=1)


def test_single_samples_short_texts_padding_and_validation_need_few_graphs() -> None:
    """Torch makes graphs of their own for one sample, and for one and two tokens, but for no larger numbers."""
    case = Case("alibi", causal=True)
    stack = case.stack(case.shape(layers=1, head_dim=8, max_length=64)).float()
    use_path(stack, "compiled")
    counts = []
    for batches, longest in (((1, 2), 16), ((1, 5), 40)):
        lengths = [(1, 0), (2, 0), (longest, 0), (longest, 1)]
        for training, batch, (length, pads) in itertools.product((True, False), batches, lengths):
            tokens = padded([length, *[length - pads] * (batch - 1)], length)
            with torch.set_grad_enabled(training):
                stack.train(training)(embedded(tokens, stack.shape.dim).float(), positions_of(tokens, stack))
        counts.append(compiled_graphs())
    assert counts[0] == counts[1] <= 16


def test_blocks_of_a_window_need_few_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "SMALLEST", 4)
    check_graphs(Case("alibi", {"window": 4}, causal=True), MOST, layers=1)


def test_two_encodings_in_a_process_do_not_disturb_each_other() -> None:
    """Torch compares the inputs of one encoding with the graphs of the others."""
    for name in ("m2", "shaw", "m2"):
        check_graphs(Case(name), MOST, layers=1)


def test_a_graph_for_each_length_is_caught() -> None:
    with pytest.raises(AssertionError, match="3 graphs"):
        check_graphs(Case("broken", cls=broken.GraphForEachLength), 2, layers=1)


def test_an_encoding_that_compiles_to_something_else_is_caught() -> None:
    with pytest.raises(AssertionError, match="output"):
        check(Case("broken", cls=broken.OtherWhenCompiled), Scene(before=2))


# -- as in eager mode -----------------------------------------------------------------------------------------


@pytest.mark.usefixtures("traced_gradients")
@pytest.mark.skipif(ON_GPU, reason="inductor draws other random numbers than torch does eagerly")
def test_dropout_is_the_same_as_in_eager_mode() -> None:
    """Compiling must not draw random numbers, and activation checkpointing must draw the same again."""
    case = Case("m1")
    stack = case.stack(case.shape(), attention_dropout=0.4, checkpoint_activations=True).train()

    def run(seed: int = 0) -> dict[str, Tensor]:
        torch.manual_seed(seed)
        return trained(stack, padded([7, 5], 7))

    assert_all_close(*compiled_and_explicit(stack, run), 1e-9, "a step with dropout")
    use_path(stack, "compiled")
    assert not torch.equal(run()["output"], run(seed=1)["output"])


@pytest.mark.usefixtures("traced_gradients")
def test_the_compiled_path_serves_inference_mode_autocast_and_a_single_token() -> None:
    stack = Scene(queries=6, layers=1).stack(Case("raffel", causal=True)).float()

    def run() -> dict[str, Tensor]:
        with torch.inference_mode():
            outputs = {str(lengths): stack(*batch_of(stack, lengths)[1:])[0] for lengths in ([6, 4], [1, 1])}
        with torch.autocast(torch.get_default_device().type, torch.bfloat16):
            return {**outputs, "autocast": stack(*batch_of(stack)[1:])[0].float()}

    actual, expected = compiled_and_explicit(stack, run)
    assert_close(actual.pop("autocast"), expected.pop("autocast"), 0.04, "autocast")
    assert_all_close(actual, expected, 1e-5, "compiled")


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
        use_path(exact, "explicit")
        actual, expected = (trained(stack, tokens, x) for stack in (case.stack(shape).to(dtype).train(), exact))
        for name in [name for name in expected if "layers." not in name]:
            tolerance = 1e-4 if dtype == torch.float32 else 0.06
            assert_near(actual[name], expected[name], tolerance, f"{name}, {head_dim}, {length}")
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
