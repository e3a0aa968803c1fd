"""Test FIRE (Li et al. 2024)."""

from __future__ import annotations

import math

import pytest
import torch
from one_layer import CPU, bias_of, build_encoding, lengths

from fairseq_posenc.encodings import fire
from fairseq_posenc.positions import Positions


def by_hand(member: fire.Fire, i: int, j: int, head: int) -> float:
    """Return the bias of layer 1 as the paper's code computes it, one number at a time."""
    c, threshold = member.c[0].item(), abs(member.multiplier[0].item() * member.options.threshold)
    x = math.log(abs(c * (i - j)) + 1) / (math.log(abs(c * max(i, threshold)) + 1) + 1e-6)
    hidden = zip(member.hidden_weight[0], member.hidden_bias[0], member.output_weight[0, head], strict=True)
    return member.output_bias[0, head].item() + sum(o.item() * max(w.item() * x + b.item(), 0) for w, b, o in hidden)


@pytest.mark.parametrize("threshold", [512, 3])
@lengths
def test_the_bias_below_and_beyond_the_threshold(threshold: int, queries: int, keys: int) -> None:
    pos = build_encoding("fire", f"threshold={threshold}", heads=2)
    member = pos.members["fire"]
    bias = bias_of(pos, Positions(queries, keys, CPU, causal=True))
    assert bias.shape == (1, 2, queries, keys)
    for head in range(2):
        for row, i in enumerate(range(keys - queries, keys)):
            for j in range(keys):
                assert bias[0, head, row, j].item() == pytest.approx(by_hand(member, i, j, head), abs=1e-12)


def test_positions_beyond_the_threshold_are_those_of_the_sample() -> None:
    """A sample with padding on the left gets the same bias as alone, although its columns differ."""
    pos, tokens = (
        build_encoding("fire", "threshold=3"),
        torch.tensor([[5, 6, 7, 8, 9, 5, 6, 7], [1, 1, 1, 5, 6, 7, 8, 9]]),
    )
    together = bias_of(pos, Positions.of_tokens(tokens, pad=1, causal=True))
    assert together.shape == (2, 1, 8, 8)
    alone = bias_of(pos, Positions.of_tokens(tokens[1:, 3:], pad=1, causal=True))
    torch.testing.assert_close(together[1:, :, 3:, 3:], alone, rtol=0, atol=1e-12)
    assert (together[1, 0, 3:, 3:] - together[0, 0, 3:, 3:]).abs().max() > 1e-3


@pytest.mark.parametrize("layers_share", ["none", "layer-wise"])
def test_long_sequences_take_a_few_rows_at_a_time(layers_share: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers and gradients are the same, although the hidden layer never holds all rows."""
    tokens = torch.tensor([[5, 6, 7, 8, 9, 5, 6, 7], [1, 1, 1, 5, 6, 7, 8, 9]])
    largest: list[int] = []
    plain = torch.relu

    def watched(x: torch.Tensor) -> torch.Tensor:
        largest.append(x.numel())
        return plain(x)

    def run(chunk: int) -> list[torch.Tensor]:
        monkeypatch.setattr(fire, "CHUNK", chunk)
        pos = (
            build_encoding("fire", f"threshold=3,width=5,share={layers_share}", heads=2, layers=2)
            .train()
            .requires_grad_(True)
        )
        bias = bias_of(pos, Positions.of_tokens(tokens, pad=1, causal=True))
        (bias * torch.arange(8)).sum().backward()
        return [bias.detach(), *(p.grad for p in pos.parameters())]

    monkeypatch.setattr(torch, "relu", watched)
    whole, parts = run(2**20), run(2 * 2 * 8 * 5)
    assert max(largest[1:]) == largest[0] // 4
    for one, other in zip(whole, parts, strict=True):
        torch.testing.assert_close(other, one, rtol=0, atol=1e-12)


def test_the_network_of_a_short_sequence_sees_distances_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to T the network runs on L = 2K - 1 distances per layer instead of K^2 pairs."""
    seen: list[tuple[int, ...]] = []
    plain = torch.relu
    monkeypatch.setattr(torch, "relu", lambda x: (seen.append(tuple(x.shape)), plain(x))[1])
    bias_of(build_encoding("fire", layers=2), Positions(8, 8, CPU, causal=True))
    assert seen == [(1, 1, 15, 32)] * 2


def test_how_it_starts() -> None:
    member = build_encoding("fire", layers=40, heads=4).members["fire"]
    assert member.c.tolist() == pytest.approx([0.1] * 40)
    assert set(member.multiplier.tolist()) == {1.0}
    for weight, bound in (
        (member.hidden_weight, 1), (member.hidden_bias, 1),
        (member.output_weight, 32**-0.5), (member.output_bias, 32**-0.5),
    ):  # fmt: skip
        assert 0.95 * bound < weight.abs().max() <= bound
        assert abs(weight.mean().item()) < 0.2 * bound
