"""Compare the encodings of segments, at the input and as biases, with values that were computed by hand."""

from __future__ import annotations

import pytest
import torch
from one_layer import CPU, bias_of, build_encoding

from fairseq_posenc.positions import Positions

#: Segments of [CLS] a [SEP] b b [SEP], and of the same with padding: 1 after the first separator, 0 at padding.
SEGMENTS = torch.tensor([[0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 1, 0]])


@pytest.mark.parametrize("share", ["none", "head-wise", "layer-wise", "all"])
@pytest.mark.parametrize("queries", [6, 2])
def test_a_bias_is_that_of_its_two_segments(share: str, queries: int) -> None:
    """The table of layer l and head h holds 100 l + 10 h + 2 S(i) + S(j), where shared axes count as 0."""
    pos = build_encoding("segments", f"share={share}", layers=2, heads=2)
    weight = pos.members["segments"].weight
    layers, heads = weight.shape[:2]
    weight.copy_(
        100.0 * torch.arange(layers)[:, None, None, None]
        + 10.0 * torch.arange(heads)[:, None, None]
        + torch.tensor([[0.0, 1.0], [2.0, 3.0]])
    )
    for layer in range(2):
        actual = bias_of(pos, Positions(queries, 6, CPU, segments=SEGMENTS), layer + 1)
        for sample, segments in enumerate(SEGMENTS.tolist()):
            for head in range(heads):
                first = 100.0 * (layer if layers > 1 else 0) + 10.0 * head
                expected = [[first + 2 * i + j for j in segments] for i in segments[6 - queries :]]
                assert actual[sample, head].tolist() == expected


def test_a_vector_is_that_of_its_segment() -> None:
    pos = build_encoding("segments-input", "segments=3", head_dim=4)
    pos.members["segments-input"].weight.copy_(torch.tensor([1.0, 2.0, 5.0])[:, None].expand(3, 4))
    segments = torch.tensor([[0, 1, 2, 2, 1, 0]])
    for queries, expected in ((6, [1, 2, 5, 5, 2, 1]), (2, [2, 1])):
        x = torch.zeros(1, queries, 4).double()
        assert pos.embed(x, Positions(queries, 6, CPU, segments=segments))[0, :, 3].tolist() == expected
