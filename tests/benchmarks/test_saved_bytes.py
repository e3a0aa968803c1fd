"""Test that attention keeps at most as many bytes for the backward pass as Hugging Face's layers do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from fairseq_posenc.attention import graphs
from fairseq_posenc.ops import toeplitz
from fairseq_posenc.positions import Positions
from tests.benchmarks import peers, steps
from tests.benchmarks.steps import Setting

SETTING = Setting("layer", "train", 128, 2, 768, 12, torch.device("cpu"), torch.bfloat16)
#: Hugging Face has no m3, so m3 is compared with the layer that keeps least.
PAIRS = {"shaw": "bert-relative-key", "m4": "bert-relative-key-query", "t5": "hf-t5", "m3": "bert-relative-key"}


@pytest.fixture(autouse=True)
def traced(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Trace the compiled formula without generating code; its saved tensors are the same."""
    monkeypatch.setattr(graphs, "BACKEND", "aot_eager")
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def kept(run: Any, parameters: Sequence[Tensor]) -> int:
    """Return the bytes of the tensors that autograd saves in a forward pass, without the parameters."""
    known, sizes = {parameter.untyped_storage().data_ptr() for parameter in parameters}, {}

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in known:
            sizes[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        result = run()
    del result
    return sum(sizes.values())


def of_ours(encoding: str, path: str) -> int:
    stack = steps.stack_of(encoding, SETTING)
    stack.layers[0].self_attn.path = path
    positions, x = steps.positions_of(stack, SETTING), SETTING.random().requires_grad_()
    return kept(lambda: stack(x, positions())[0], list(stack.parameters()))


def of_peer(name: str) -> int:
    peer = next(peer for peer in peers.PEERS if peer.name == name)
    if reason := peer.missing():
        pytest.skip(reason)
    (module, run), x = peers.layer_of(peer, SETTING), SETTING.random().requires_grad_()
    return kept(lambda: run(x), list(module.parameters()))


CASES = [*((encoding, "explicit") for encoding in ("shaw", "m4", "t5")), ("t5", "compiled")]
#: To trace or compile these formulas takes up to fifteen seconds each.
SLOW = [("m3", "explicit"), *((encoding, "compiled") for encoding in ("shaw", "m4", "m3"))]


@pytest.mark.parametrize(("encoding", "path"), CASES + [pytest.param(*case, marks=pytest.mark.long) for case in SLOW])
def test_a_layer_keeps_at_most_what_its_counterpart_keeps(encoding: str, path: str) -> None:
    assert of_ours(encoding, path) <= of_peer(PAIRS[encoding])


def test_a_float32_vector_for_each_pair_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def product(q: Tensor, table: Tensor, positions: Positions, rows: Any) -> Tensor:
        vectors = toeplitz.take(table, rows, -2)[:, positions.delta + positions.key_length - 1]
        return (q[..., None, :] * vectors.float()).sum(-1)

    monkeypatch.setattr(toeplitz, "query_product", product)
    assert of_ours("shaw", "explicit") > of_peer("bert-relative-key")
