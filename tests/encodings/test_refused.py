"""Test that options that are wrong, have no effect or cannot be combined raise errors that give the reason."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
import torch
from laws.compare import assert_refused
from one_layer import CPU, build_encoding

from fairseq_posenc.encodings import StackShape, build
from fairseq_posenc.positions import Positions

TABLES: dict[str, list[Any]] = tomllib.loads(Path(__file__).with_name("refused.toml").read_text("utf-8"))
FLAGS = {"name_flag": "--pos-enc", "args_flag": "--pos-enc-args"}
STACKS = {
    "encoder": StackShape(6, 2, 8, 16, **FLAGS),
    "cls": StackShape(6, 2, 8, 16, has_cls=True, **FLAGS),
    "decoder": StackShape(6, 2, 8, 16, causal=True, **FLAGS),
}


@pytest.mark.parametrize("row", TABLES["refused"], ids=lambda row: "-".join(row[:3]))
def test_what_cannot_be_built_is_refused(row: list[str]) -> None:
    spec, args, stack, *words = row
    assert_refused(lambda: build(spec, args, STACKS[stack]), *words)


def test_pairs_of_features_need_an_even_width() -> None:
    assert_refused(lambda: build("rope", None, StackShape(1, 1, 5, 16)), "even", "5")


@pytest.mark.parametrize("row", TABLES["positions"], ids=lambda row: row["spec"])
def test_positions_without_what_an_encoding_reads_are_refused(row: dict[str, Any]) -> None:
    pos = build_encoding(row["spec"], row.get("args", ""), has_cls=row.get("has_cls", False))
    segments = torch.tensor(row["segments"]) if "segments" in row else None
    assert_refused(lambda: pos.check(Positions(3, 3, CPU, segments=segments)), *row["words"])
