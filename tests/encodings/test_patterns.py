"""Test the flags of published models in docs/encodings/index.md: what is active in each layer, as in their papers."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from fairseq_posenc.core.compose import LayerView
from fairseq_posenc.encodings import StackShape, build

PAGE = (Path(__file__).parents[2] / "docs" / "encodings" / "index.md").read_text("utf-8")
MODELS: dict[str, dict[str, Any]] = tomllib.loads(Path(__file__).with_name("patterns.toml").read_text("utf-8"))


def flags() -> dict[str, str]:
    """Return the flag of each model on the page."""
    section = PAGE.split("## Patterns of published models")[1].split("\n## ")[0]
    rows: list[tuple[str, str]] = re.findall(r"^\| ([^|]+) \| `([^`|]+)` \|", section, re.MULTILINE)
    return dict(rows[1:])  # without the head of the table


def kind(view: LayerView) -> dict[str, Any]:
    bases = [member.options.base for name, member in view.members.items() if name.startswith("rope")]
    assert len(bases) <= 1
    facts = {"base": bases[0] if bases else None, "window": view.window, "grows": "logn" in view.members or None}
    return {name: value for name, value in facts.items() if value is not None}


@pytest.mark.parametrize("name", MODELS)
def test_a_flag_gives_the_layers_of_its_model(name: str) -> None:
    model = MODELS[name]
    kinds = [model[letter] for letter in model["layers"].replace(" ", "")]
    encoding = build(flags()[name], None, StackShape(len(kinds), 2, 16, model["length"], causal="encoder" not in name))
    assert [kind(encoding.layer(index)) for index in range(1, len(kinds) + 1)] == kinds


def test_the_page_has_all_models() -> None:
    assert set(flags()) == set(MODELS)
