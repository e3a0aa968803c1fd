"""Test that options that are wrong, have no effect or cannot be combined raise errors that give the reason."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
import torch
from laws.compare import assert_refused
from one_layer import CPU, build_encoding

from fairseq_posenc.encodings import StackShape, build
from fairseq_posenc.positions import Positions

REFUSED: list[list[str]] = tomllib.loads(Path(__file__).with_name("refused.toml").read_text("utf-8"))["refused"]
FLAGS = {"name_flag": "--pos-enc", "args_flag": "--pos-enc-args"}
STACKS = {
    "encoder": StackShape(6, 2, 8, 16, **FLAGS),
    "cls": StackShape(6, 2, 8, 16, has_cls=True, **FLAGS),
    "decoder": StackShape(6, 2, 8, 16, causal=True, **FLAGS),
}


@pytest.mark.parametrize("row", REFUSED, ids=lambda row: "-".join(row[:3]))
def test_what_cannot_be_built_is_refused(row: list[str]) -> None:
    spec, args, stack, *words = row
    assert_refused(lambda: build(spec, args, STACKS[stack]), *words)


def test_pairs_of_features_need_an_even_width() -> None:
    assert_refused(lambda: build("rope", None, StackShape(1, 1, 5, 16)), "even", "5")


NO_CLS = Positions(3, 3, CPU)
SEGMENTS = torch.tensor([[0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 1, 0]])


def with_segments(segments: torch.Tensor | None) -> Positions:
    return Positions(6, 6, CPU, segments=segments)


MISSING = [
    ("tupe", "", NO_CLS, r"begin with \[CLS\].*Positions.cls_column is None"),
    ("m4", "reset=vector", NO_CLS, r"begin with \[CLS\].*Positions.cls_column is None"),
    *(
        row
        for spec in ("segments", "segments-input")
        for row in (
            (spec, "", with_segments(None), f"{spec} needs .*segment.*segments=.*remove {spec} from pos_enc"),
            (
                *(spec, "", with_segments(SEGMENTS * 2)),
                f"{spec} has parameters for the segments 0 to 1, .* 0 to 2: set pos_enc_args .* segments=3",
            ),
            (spec, "", with_segments(SEGMENTS - 1), "contains -1, but segment ids start at 0"),
        )
    ),
]


@pytest.mark.parametrize(("spec", "args", "positions", "pattern"), MISSING)
def test_positions_without_what_an_encoding_reads_are_refused(
    spec: str, args: str, positions: Positions, pattern: str
) -> None:
    with pytest.raises(ValueError, match=pattern):
        build_encoding(spec, args, has_cls=spec in ("tupe", "m4")).check(positions)
