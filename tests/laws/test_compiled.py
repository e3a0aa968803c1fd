"""Test laws 18 and 26: a stack and its positions compile to a single graph, and a model exports to one.

A compiled stack has the same outputs and gradients. A model, which makes its positions itself, is exported without a
cache, for batches of any size and for all lengths. `make test-long` also runs the graphs as ONNX, with onnxruntime.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram

from fairseq_posenc.stack import Stack

from . import broken
from .cases import Case, defaults, every, first_of_kind, in_one_direction, in_turn, scheduled, without_options
from .compare import assert_all_close, assert_close
from .scene import BOS, PAD, WORDS, batch_of, drawn, outcome, padded, positions_of


def trained(stack: Stack, backend: str | None, side: str) -> dict[str, Tensor]:
    """Return the output and the gradients of the input and of all parameters."""
    tokens, x, _ = batch_of(stack, side=side)
    x.requires_grad_()

    def forward(x: Tensor) -> Tensor:
        out: Tensor = stack(x, positions_of(tokens, stack))[0]
        return out.masked_fill(tokens.eq(PAD)[..., None], 0.0)  # outputs at padding have no meaning

    torch._dynamo.reset()
    run = forward if backend is None else torch.compile(forward, fullgraph=True, backend=backend)
    return outcome(stack, run(x), input=x)


def check_compiled(
    case: Case, backend: str = "aot_eager", *, training: bool = True, side: str = "left", layers: int = 2
) -> None:
    """Compare a compiled stack with an eager stack, with padding on one side."""
    stack = drawn(case.stack(case.shape(layers=layers))).train(training)
    expected, actual = (trained(stack, kind, side) for kind in (None, backend))
    assert_all_close(actual, expected, 1e-9, backend)


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
    products = case.hooks & {"content_bias", "scores", "values"}  # whose gradients are traced too, which takes long
    check_compiled(case, "aot_eager" if products else "eager", layers=1)
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


@pytest.mark.parametrize(
    ("cls", "words"), [(broken.LooksAtData, "data-dependent"), (broken.OtherWhenCompiled, "aot_eager")]
)
def test_a_graph_that_is_not_the_encoding_is_caught(cls: type, words: str) -> None:
    with pytest.raises(Exception, match=words):
        check_compiled(Case("broken", cls=cls), layers=1)


# -- export ------------------------------------------------------------------------------------------------

#: Lengths of the samples of each batch that an exported model gets, from the shortest that torch.export accepts to the
#: maximum length. The large batch is one for which `compiled.usable` would choose M3's compiled loops.
BATCHES = ([2], [5], [16], [7, 4, 2], [2, 2, 2, 1], [16, 9] * 40)
LENGTH = 16
TOLERANCE = 1e-5
#: ONNX has no operator that solves triangular systems.
NOT_IN_ONNX = {"path"}
WITH_WINDOW = Case("rope+none", {"none.window": 4})
EXPORTED_ALWAYS = [Case("shaw", {"clip": 2}), Case("rope"), Case("m3"), Case("t5", causal=True), WITH_WINDOW]


class Model(nn.Module):
    """Embed tokens and run a stack, in float32."""

    def __init__(self, stack: Stack) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embed = nn.Embedding(WORDS, stack.shape.dim)
        self.stack = stack.float()

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the last states, [B, T] -> [B, T, d]."""
        return self.stack(self.embed(tokens), positions_of(tokens, self.stack))[0]


def model_of(case: Case, layers: int = 1) -> Model:
    return Model(drawn(case.stack(case.shape(layers=layers, max_length=LENGTH)))).eval()


def exported(model: Model) -> ExportedProgram:
    """Export the model with a small batch whose size and length are those of no other batch."""
    shapes = {"tokens": {0: Dim.DYNAMIC, 1: Dim.DYNAMIC}}
    with torch.no_grad():
        return torch.export.export(model, (padded([6, 5, 3], 6, "right"),), dynamic_shapes=shapes)


def compare(model: Model, run: Callable[[Tensor], Tensor], what: str) -> None:
    """Compare the outputs at tokens, with padding on either side; outputs at padding have no meaning."""
    for side in ("right", "left"):
        for lengths in BATCHES:
            tokens = padded(lengths, max(lengths), side)
            tokens[:, 0] = torch.where(tokens[:, 0] == PAD, PAD, BOS)
            real = tokens.ne(PAD)
            with torch.no_grad():
                assert_close(run(tokens)[real].double(), model(tokens)[real].double(), TOLERANCE, what)


def check_exported(case: Case, layers: int = 1) -> None:
    model = model_of(case, layers)
    before = copy.deepcopy(model)
    program = exported(model)
    ends = [constraint.upper for constraint in program.range_constraints.values()]
    assert LENGTH in ends, f"the exported graph accepts sizes up to {ends}, not up to {LENGTH} tokens"
    compare(before, program.module(), "exported")
    compare(before, model, "after the export")


@pytest.mark.parametrize("case", EXPORTED_ALWAYS, ids=str)
def test_a_model_exports(case: Case) -> None:
    """The other encodings are exported by `make test-long`."""
    check_exported(case)


def test_a_model_for_a_single_token_exports() -> None:
    """A graph for several lengths cannot include length 1, but a graph for this length only is possible."""
    model, token = model_of(Case("shaw")), torch.tensor([[BOS]])
    with torch.no_grad():
        program = torch.export.export(model, (token,))
        assert_close(program.module()(token).double(), model(token).double(), TOLERANCE, "exported")


@pytest.mark.long
@pytest.mark.parametrize("case", [*every(in_one_direction), *scheduled("2")], ids=str)
def test_a_model_with_any_option_exports(case: Case) -> None:
    check_exported(case, layers=2)


@pytest.mark.long
@pytest.mark.parametrize("case", defaults(lambda case: case.spec not in NOT_IN_ONNX), ids=str)
def test_onnxruntime_gives_the_same(case: Case, tmp_path: Path) -> None:
    import onnxruntime

    model, path = model_of(case), tmp_path / "model.onnx"
    program = torch.onnx.export(exported(model), dynamo=True, verbose=False)
    assert program is not None
    program.save(path)
    session = onnxruntime.InferenceSession(path)
    compare(model, lambda tokens: torch.from_numpy(session.run(None, {"tokens": tokens.numpy()})[0]), "ONNX")


def test_an_encoding_that_depends_on_the_length_of_the_example_is_caught() -> None:
    with pytest.raises(AssertionError, match="up to 16 tokens"):
        check_exported(Case("broken", cls=broken.ShortWhenCompiled))
