"""Test law 26: a model exports to one graph, without a cache, for batches of any size and for all lengths.

The model makes its positions itself. `make test-long` also runs the graphs as ONNX, with onnxruntime.
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
from .cases import Case, defaults, every, in_one_direction, scheduled
from .compare import assert_close
from .scene import BOS, PAD, WORDS, drawn, padded, positions_of

#: Lengths of the samples of each batch that an exported model gets, from the shortest that torch.export accepts to the
#: maximum length. The large batch is one for which `compiled.usable` would choose M3's compiled loops.
BATCHES = ([2], [5], [16], [7, 4, 2], [2, 2, 2, 1], [16, 9] * 40)
LENGTH = 16
TOLERANCE = 1e-5
#: ONNX has no operator that solves triangular systems.
NOT_IN_ONNX = {"path"}
EXPORTED_ALWAYS = [Case("shaw", {"clip": 2}), Case("rope"), Case("m3"), Case("t5", causal=True)]


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
