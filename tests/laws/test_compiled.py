"""Test law 18: a stack and its positions compile to a single graph, with the same outputs and gradients."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from fairseq_posenc.stack import Stack

from . import broken
from .cases import Case, every, first_of_kind, in_turn, without_options
from .compare import assert_close
from .scene import PAD, batch_of, drawn, positions_of


def outcome(stack: Stack, backend: str | None, side: str, length: int) -> list[Tensor]:
    """Return the output and the gradients of the input and of all parameters."""
    tokens, x, _ = batch_of(stack, [length, length - 2], side)
    x.requires_grad_()

    def forward(x: Tensor) -> Tensor:
        out: Tensor = stack(x, positions_of(tokens, stack))[0]
        return out.masked_fill(tokens.eq(PAD)[..., None], 0.0)  # outputs at padding have no meaning

    torch._dynamo.reset()
    run = forward if backend is None else torch.compile(forward, fullgraph=True, backend=backend)
    output = run(x)
    used = [p for p in stack.parameters() if p.requires_grad]
    weight = torch.linspace(-1, 1, output.numel(), dtype=output.dtype).view_as(output)
    gradients = torch.autograd.grad((output * weight).sum(), [x, *used], allow_unused=True)
    return [output, *(torch.zeros(()) if g is None else g for g in gradients)]


def check_compiled(
    case: Case, backend: str = "aot_eager", *, training: bool = True, side: str = "left", layers: int = 2
) -> None:
    """Compare a compiled stack with an eager stack, with padding on one side."""
    stack = drawn(case.stack(case.shape(layers=layers))).train(training)
    expected, actual = (outcome(stack, kind, side, 6) for kind in (None, backend))
    for one, other in zip(actual, expected, strict=True):
        assert_close(one, other, 1e-9, backend)


def check_in_use(case: Case, dtype: torch.dtype, tolerance: float) -> None:
    """Compare both in evaluation without gradients, where encodings cache values."""
    stack = drawn(case.stack(case.shape(layers=1))).eval().to(dtype)
    tokens, x, positions = batch_of(stack, side="left")
    real = tokens.ne(PAD)
    torch._dynamo.reset()
    run = torch.compile(stack, fullgraph=True, backend="eager")
    with torch.no_grad():
        assert_close(run(x, positions)[0][real].double(), stack(x, positions)[0][real].double(), tolerance, "in use")


@pytest.mark.parametrize("case", in_turn(without_options, first_of_kind))
def test_a_layer_compiles_to_one_graph(case: Case) -> None:
    changes_logits = case.hooks & {"bias", "content_bias", "scores", "adapt", "values"}
    check_compiled(case, "aot_eager" if changes_logits else "eager", layers=1)
    check_in_use(case, torch.float64, 1e-9)


@pytest.mark.parametrize("name", ["m3", "m4m", "t5"])
def test_a_layer_in_half_precision_compiles(name: str) -> None:
    check_in_use(Case(name), torch.bfloat16, 0.1)


@pytest.mark.long
@pytest.mark.parametrize("training", [True, False], ids=["training", "evaluation"])
@pytest.mark.parametrize("case", every(), ids=str)
def test_a_stack_with_any_option_compiles_to_one_graph(case: Case, training: bool) -> None:
    for side in ("none", "right"):
        check_compiled(case, training=training, side=side)


@pytest.mark.long
@pytest.mark.parametrize("name", ["m3", "shaw", "m4m", "t5"])
def test_inductor_gives_the_same(name: str) -> None:
    """The encodings are M3, whose product becomes a loop, and three others."""
    check_compiled(Case(name), "inductor")


@pytest.mark.parametrize(
    ("cls", "words"), [(broken.LooksAtData, "data-dependent"), (broken.OtherWhenCompiled, "aot_eager")]
)
def test_a_graph_that_is_not_the_encoding_is_caught(cls: type, words: str) -> None:
    with pytest.raises(Exception, match=words):
        check_compiled(Case("broken", cls=cls), layers=1)
