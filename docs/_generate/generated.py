"""Return the files that are derived from the code, completely or in blocks."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import blocks
import encoding_pages

from fairseq_posenc.core.options import describe
from fairseq_posenc.encodings import get, names, spec_of
from fairseq_posenc.encodings.facts import declared

ROOT = blocks.DOCS.parent
ENCODINGS = blocks.DOCS / "encodings"
#: Written by hand, with blocks that this program fills.
WITH_BLOCKS = (
    ROOT / "README.md",
    blocks.DOCS / "choosing.md",
    blocks.DOCS / "training.md",
    ENCODINGS / "index.md",
)
#: Facts about the encodings, which recipes read before torch is installed.
FACTS = ROOT / "recipes" / "lib" / "encodings.json"


def files() -> dict[Path, str]:
    """Return the current text of each generated file.

    Raises:
        ValueError: A block of a page cannot be filled. The message names the page.
    """
    pages = {ENCODINGS / f"{name}.md": text for name, text in encoding_pages.pages().items()}
    return pages | {page: _filled(page) for page in WITH_BLOCKS} | {FACTS: _facts()}


def surplus(current: Iterable[Path]) -> set[Path]:
    """Return the pages of encodings that are no longer registered."""
    return {*ENCODINGS.glob("*.md")} - {*current}


def _filled(page: Path) -> str:
    try:
        return blocks.filled(page.read_text(encoding="utf-8"), page.parent)
    except ValueError as error:
        raise ValueError(f"{page}: {error}") from None


def _facts() -> str:
    """Return JSON: whether each encoding works in decoders, in encoders and with segment memory, and its options."""
    rows = []
    for name in names():
        defaults = {option["name"]: option["default"] for option in describe(get(name).Options)}
        capabilities = declared(spec_of(name))
        facts = {key: capabilities[key] for key in ("causal", "bidirectional", "memory")} | {"options": defaults}
        rows.append(f" {json.dumps(name)}: {json.dumps(facts)}")
    return "{\n" + ",\n".join(rows) + "\n}\n"
