"""Test that peak memory counts every byte, and that no encoding stores a vector for every pair of tokens."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from fairseq_posenc.commands.bench import memory, settings
from fairseq_posenc.commands.bench.settings import Setting, Shape, Subject
from fairseq_posenc.encodings import Layer
from fairseq_posenc.encodings.huang import M3
from fairseq_posenc.ops import compiled
from fairseq_posenc.positions import Positions

from .scene import CPU

#: [Q, K, D] is 16 MiB, a tensor of all logits 0.5 MiB
SQUARE = Shape("square", 128, 2, ((256, 1),), ((256, 1),))
CUBE = 256 * 256 * 64 * 4


def core_peak(subject: Subject, shape: Shape = SQUARE, length: int = 256) -> int:
    """Return the peak memory of the attention core in training, in bytes."""
    return memory.measured(subject, Setting("memory", "train", shape, length, 1, CPU, subject.causal()))


def test_every_byte_is_counted() -> None:
    def step() -> None:
        first = torch.zeros(1 << 20)  # 4 MiB
        second = first + 1
        del first
        second.mul_(2)
        torch.zeros(1 << 18)  # 8 MiB at once, then 4, then 5

    assert 8 * 2**20 <= memory.peak(step, CPU) < 8 * 2**20 + 1000


def test_the_core_without_positions_stores_weights_and_two_gradients_of_their_size() -> None:
    logits = 2 * 256 * 256 * 4
    assert 3 * logits <= core_peak(Subject("none")) <= 4 * logits


@pytest.mark.parametrize("subject", settings.default_subjects(), ids=str)
def test_no_encoding_stores_a_vector_for_every_pair(subject: Subject) -> None:
    """Only DAPE does: its MLP has 32 hidden units for each pair, of which the backward pass needs two tensors."""
    hidden = 2 * 32 * 256 * 256 * 4 if subject.encoding == "alibi+dape" else 0
    assert core_peak(subject) < CUBE + hidden


def test_m3_without_a_compiler_stores_no_vector_for_every_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "usable", lambda *work: False)
    assert core_peak(Subject("m3")) < CUBE


def test_m3_trains_with_no_more_memory_than_m4() -> None:
    base = settings.SHAPES["base"], 512
    assert core_peak(Subject("m3"), *base) <= core_peak(Subject("m4"), *base)


def test_a_vector_for_every_pair_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def literal(self: M3, q: Tensor, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        return self.reference(q, k, positions, layer)

    monkeypatch.setattr(M3, "scores", literal)
    assert core_peak(Subject("m3")) > CUBE
