"""Test that the words of docs/glossary.md are in alphabetical order, and that each word occurs once."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "glossary.md").read_text(encoding="utf-8")


def test_the_words_are_in_order() -> None:
    words = [re.sub(r"[^a-z]", "", word.lower()) for word in re.findall(r"^\| ([^|]+) \|", PAGE, re.MULTILINE)]
    assert len(words) > 20
    assert words[1:] == sorted(set(words[1:]))
