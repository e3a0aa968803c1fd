"""Test law 12: half precision stays finite and close to float32, and logits and softmax are at least float32."""

from __future__ import annotations

import copy
import itertools
from contextlib import nullcontext
from dataclasses import replace

import pytest
import torch

from fairseq_posenc.attention import formula
from fairseq_posenc.ops.precision import promoted
from fairseq_posenc.stack import Stack

from .cases import Case, directions, in_one_direction, in_turn, options_once, without_options
from .compare import assert_close, assert_finite
from .scene import batch_of, drawn, observed, on_device, outcome, padded, positions_of, use_path

#: Length, and widths of heads. Beyond 256, squares of distances are too large for float16, and bfloat16 cannot
#: distinguish some columns. One stack of every encoding has heads as wide as BERT's. Options and the other direction
#: are tested with narrow heads, which take a tenth of the time.
LENGTH, WIDE, NARROW = 272, 64, 8
#: With fewer columns, sums in half precision would lose too little to be distinguished from sums in float32.
LENGTH_OF_SUMS = 384
#: Tolerances relative to the largest number: a few rounding errors.
LOOSE = {torch.float16: 0.02, torch.bfloat16: 0.12}
#: Largest rms of the difference of gradients, relative to their rms: those of CoPE jump where a count passes a whole
#: number.
GRADIENTS = {torch.float16: 0.1, torch.bfloat16: 0.4}
#: Tolerance relative to the largest number: three rounding errors of bfloat16.
SUMMED = 0.012


def at_length(case: Case, length: int) -> Case:
    """Return the case for sequences of this length, which a longer table must exceed."""
    return replace(case, args={**case.args, "extend_to": 2 * length}) if "extend_to" in case.args else case


def small(case: Case, length: int = LENGTH, *, narrow: bool = False) -> Stack:
    """Return one layer for this maximum length, float32, with parameters of an ordinary size."""
    torch.manual_seed(0)
    wide = not narrow and (case.cls is not None or (not case.args and case.causal == directions(case.spec)[0]))
    shape = case.shape(layers=1, head_dim=WIDE if wide else NARROW, max_length=length)
    return drawn(at_length(case, length).stack(shape), size=0.4 * shape.dim**-0.5).float()


def gradients(stack: Stack, output: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return the gradients of the tables and of the projections, each as one vector."""
    results = outcome(stack, output.float())
    parts = {
        kind: [gradient.flatten().double() for name, gradient in results.items() if word in name]
        for kind, word in (("tables", "gradient of pos."), ("projections", "self_attn."))
    }
    return {kind: torch.cat(tensors) for kind, tensors in parts.items() if tensors}


def forward(stack: Stack) -> torch.Tensor:
    """Run a stack on padded tokens at the maximum length: [B, T, d]."""
    length = stack.pos.limit or stack.shape.max_length
    return stack(*batch_of(stack, [length, length // 2])[1:])[0]


def check_half(case: Case, dtype: torch.dtype | None = None) -> None:
    """Compare a module with the same module in float32: in half precision and under autocast, or of one dtype only."""
    stack = small(case)
    right = forward(stack)
    expected = gradients(stack, right)
    ways = itertools.product(LOOSE, (False, True)) if dtype is None else [(dtype, False)]
    for (dtype, autocast), path in itertools.product(ways, ("explicit", "auto")):
        half = copy.deepcopy(stack).to(torch.float32 if autocast else dtype)
        use_path(half, path)
        cast = torch.autocast(torch.get_default_device().type, dtype=dtype) if autocast else nullcontext()
        with pytest.MonkeyPatch.context() as patch, cast, torch.set_grad_enabled(path == "explicit"):
            numbers = [observed(patch, formula, name) for name in ("logits", "_softmax")]
            output = forward(half)
        assert_close(output.float(), right, LOOSE[dtype], f"half precision, {dtype} on the {path} path")
        assert {x.dtype for results in numbers for x in results} <= {torch.float32}, "logits and softmax"
        if path == "explicit":
            assert all(numbers)
            for kind, actual in gradients(half, output).items():
                assert_finite(actual, f"gradients of {kind}")
                drift = float((actual - expected[kind]).square().mean().sqrt() / expected[kind].square().mean().sqrt())
                assert drift <= GRADIENTS[dtype], f"the gradients of {kind} drift by {drift:.2g}"


def hook_outputs(stack: Stack) -> list[torch.Tensor]:
    """Return the outputs of all hooks of an encoding for positive inputs, in the dtype of the stack."""
    tokens = padded([stack.shape.max_length, stack.shape.max_length // 2], stack.shape.max_length)
    where, dtype = positions_of(tokens, stack), stack.layers[0].fc1.weight.dtype
    generator = torch.Generator().manual_seed(0)

    def some(*shape: int) -> torch.Tensor:
        return on_device(torch.rand(shape, generator=generator, device="cpu")).to(torch.bfloat16).to(dtype)

    batch, length = tokens.shape
    heads = batch, stack.shape.heads
    x, q, k = some(batch, length, stack.shape.dim), *(some(*heads, length, stack.shape.head_dim) for _ in "qk")
    results = [stack.pos.embed(x, where)]
    for block, tensors in zip(stack.layers, stack.pos.per_layer(where), strict=True):
        call = block.self_attn.view.at(where, tensors).with_inputs(x)
        if call.has("compress"):
            results += call.compress(x, x)
            k = k[:, :, : results[-1].shape[1]]  # one key per slot
        else:
            results += call.project_q(q), call.project_k(k)
        # masked logits may be anything
        hidden = None if call.has("compress") else where.forbidden
        logits = [x for x in (call.additive(q, k), call.scores(q, k)) if x is not None]
        if call.has("adapt"):
            content = promoted(some(*heads, length, length))
            logits.append(call.adapt(content, logits[0]))
        factor = call.row_factor()
        results += [] if factor is None else [factor[..., 0]]
        results += logits if hidden is None else [x.masked_fill(hidden, 0.0) for x in logits]
        results.append(call.values(some(*heads, length, k.shape[2])))
    return [x for x in results if x is not None]


def check_sums(case: Case, dtype: torch.dtype = torch.bfloat16) -> None:
    """Compare the gradients of an encoding's parameters in half precision with those in float64.

    Each hook's output has positive gradients, larger for later keys, so that no sum cancels: only the rounding of
    the terms may show, not that of a sum of hundreds of them.
    """
    half = small(case, LENGTH_OF_SUMS, narrow=True).to(dtype).train()
    gradients = []
    for stack in (half, copy.deepcopy(half).double()):
        generator = torch.Generator().manual_seed(1)
        outputs = hook_outputs(stack)
        rows = [on_device(torch.rand(x.shape, generator=generator, device="cpu")) for x in outputs]
        weights = [row * torch.linspace(0, 1, row.shape[-1]) for row in rows]
        sum((x.double() * to_x).sum() for x, to_x in zip(outputs, weights, strict=True)).backward()
        gradients.append({name: p.grad for name, p in stack.pos.named_parameters() if p.grad is not None})
    for name, expected in gradients[1].items():
        size = max(1e-30, float(expected.abs().max()))
        assert_close(gradients[0][name].double() / size, expected / size, SUMMED, f"summed gradient of {name}")


@pytest.mark.parametrize("case", in_turn(options_once, without_options))
def test_half_precision_is_finite_and_close(case: Case) -> None:
    """M3 is tried in one way here, because compiling its loops for a dtype takes ten seconds."""
    check_half(case, torch.bfloat16 if case.name == "m3" else None)


@pytest.mark.long
def test_m3_is_finite_and_close_in_every_way() -> None:
    check_half(Case("m3"))


def learns(case: Case) -> bool:
    """Return whether the encoding has parameters."""
    return options_once(case) and next(case.encoding(case.shape()).parameters(), None) is not None


@pytest.mark.parametrize("case", in_turn(learns, lambda case: without_options(case) and in_one_direction(case)))
def test_gradients_of_tables_are_summed_in_float32(case: Case) -> None:
    check_sums(case)
