"""Test the flags of published models in docs/encodings/index.md: what is active in each layer, as in their papers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest

from fairseq_posenc.core.compose import LayerView
from fairseq_posenc.encodings import StackShape, build

PAGE = Path(__file__).parents[2] / "docs" / "encodings" / "index.md"


class Kind(NamedTuple):
    """Describe a layer: the base of RoPE or None without RoPE, the window, and whether logits grow with log n."""

    base: float | None
    window: int | None = None
    grows: bool = False


MISTRAL = Kind(1e4, 4096)
LOCAL, GLOBAL = Kind(1e4, 1024), Kind(1e6)
NEAR, FAR = Kind(1e4, 128), Kind(1.6e5)
MODELS: dict[str, tuple[int, list[Kind]]] = {  # the longest sequence, and all layers
    "Mistral 7B": (8192, [MISTRAL] * 32),
    "Gemma 3, 4B and larger": (8192, [*([*[LOCAL] * 5, GLOBAL] * 5), *[LOCAL] * 4]),
    "ModernBERT-base (an encoder)": (8192, [*([FAR, NEAR, NEAR] * 7), FAR]),
    "OLMo 3 7B": (8192, [*[Kind(5e5, 4096)] * 3, Kind(5e5)] * 8),
    "Command R7B": (8192, [*[Kind(5e4, 4096)] * 3, Kind(None)] * 8),
    "SmolLM3": (4096, [*[Kind(5e4)] * 3, Kind(None)] * 9),
    "Llama 4 Scout": (16384, [*[Kind(5e5)] * 3, Kind(None, None, True)] * 12),
    "gpt-oss-20b": (8192, [Kind(1.5e5, 128), Kind(1.5e5)] * 12),
}


def flags() -> dict[str, str]:
    """Return the flag of each model on the page."""
    section = PAGE.read_text(encoding="utf-8").split("## Patterns of published models")[1].split("\n## ")[0]
    rows: list[tuple[str, str]] = re.findall(r"^\| ([^|]+) \| `([^`|]+)` \|", section, re.MULTILINE)
    return dict(rows[1:])  # without the head of the table


def kind(view: LayerView) -> Kind:
    bases = [member.options.base for name, member in view.members.items() if name.startswith("rope")]
    assert len(bases) <= 1
    return Kind(bases[0] if bases else None, view.window, "logn" in view.members)


@pytest.mark.parametrize("model", flags())
def test_a_flag_gives_the_layers_of_its_model(model: str) -> None:
    length, kinds = MODELS[model]
    shape = StackShape(len(kinds), 2, 16, length, causal="encoder" not in model)
    encoding = build(flags()[model], None, shape)
    assert [kind(encoding.layer(index)) for index in range(1, len(kinds) + 1)] == kinds


def test_the_page_has_all_models() -> None:
    assert set(flags()) == set(MODELS)
