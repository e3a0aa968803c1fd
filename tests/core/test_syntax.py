"""Test the one syntax of encodings with options, `m4[clip=64]`, as build, Stack and all commands take it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from fairseq_posenc.encodings import StackShape, build
from fairseq_posenc.encodings.building import parse, spelled_out
from fairseq_posenc.hub.model import ModelConfig
from fairseq_posenc.stack import Stack

ROOT = Path(__file__).parents[2]
SHAPE = StackShape(layers=2, heads=2, dim=8, max_length=8, name_flag="--pos-enc", args_flag="--pos-enc-args")

SPELLINGS = tomllib.loads(Path(__file__).with_name("syntax.toml").read_text("utf-8"))["spellings"]


@pytest.mark.parametrize("row", SPELLINGS, ids=lambda row: row["written"])
def test_brackets_hold_the_options_of_the_encoding_before_them(row: dict[str, Any]) -> None:
    spec = parse(row["written"], row.get("args"))
    assert (spec.label, spec.args) == (row.get("label", row["written"]), row["options"])
    assert parse(spec.name, spec.args).options == parse(spec.label).options == spec.options
    assert str(build(row["written"], row.get("args"), SHAPE)) == str(build(spec.name, row["options"], SHAPE))


def test_an_encoding_without_brackets_is_not_changed() -> None:
    assert spelled_out("rope", "  base=1e6") == ("rope", "  base=1e6")
    assert parse("rope").args is None
    assert parse("rope").label == "rope"


def test_a_stack_and_the_settings_of_a_model_take_options_in_brackets() -> None:
    assert Stack("m4[clip=1]", None, SHAPE).pos.m4.weight.shape[-2] == 3
    config = ModelConfig(
        layers=1, dim=8, ffn=8, heads=2, max_length=8, vocabulary=9, pos_enc="m4[clip=1]", pos_enc_args="share=none"
    )
    assert (config.pos_enc, config.pos_enc_args) == ("m4", "clip=1,share=none")


def test_no_other_code_splits_options_in_brackets() -> None:
    """Refuse a second parser: a file that looks for the brackets itself."""
    parsers = re.compile(r"""partition\(["']\[["']\)|removesuffix\(["']\]["']\)""")
    folders = ("fairseq_posenc", "recipes", "tests/benchmarks")
    files = [file for folder in folders for file in (ROOT / folder).rglob("*.py")]
    assert len(files) > 100
    assert [str(file) for file in files if parsers.search(file.read_text(encoding="utf-8"))] == []
