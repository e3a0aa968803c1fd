"""Test that the files that `python docs/_generate` writes are current and complete."""

from __future__ import annotations

import blocks
import generated
import pytest


def test_the_generated_files_are_current() -> None:
    """If this fails, run: python docs/_generate."""
    files = generated.files()
    assert [path for path, text in files.items() if path.read_text(encoding="utf-8") != text] == []
    assert generated.surplus(files) == set()


@pytest.mark.parametrize(
    "text", ["<!-- derived: flags -->", "<!-- derived: flags -->\n<!-- derived: flags -->\n<!-- end -->"]
)
def test_a_marker_without_its_other_half_is_refused(text: str) -> None:
    """Otherwise, the text up to the next marker would be deleted."""
    with pytest.raises(ValueError, match="'derived' and "):
        blocks.filled(text)
