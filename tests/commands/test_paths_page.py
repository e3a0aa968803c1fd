"""Test the pages of the attention paths."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fairseq_posenc.attention.flex import gradients_on_a_cpu
from fairseq_posenc.commands import paths_memory, paths_page
from fairseq_posenc.encodings import specs

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture(scope="module")
def on_a_cpu() -> Iterator[None]:
    with gradients_on_a_cpu():
        yield


def test_the_page_of_paths_matches_the_choice() -> None:
    """If this fails, run: python -m fairseq_posenc docs."""
    assert (DOCS / paths_page.PAGE).read_text(encoding="utf-8") == paths_page.page()


def test_the_page_of_memory_has_every_row_and_the_present_choice() -> None:
    """If this fails, run: python -m fairseq_posenc docs --memory."""
    text = (DOCS / paths_memory.PAGE).read_text(encoding="utf-8")
    assert text.startswith(paths_memory.INTRODUCTION)
    rows = [line.split("|")[1:3] for line in text.splitlines() if line.startswith("| `")]
    written = [(title.strip(), path.strip()) for title, path in rows]
    subjects = list(paths_page.subjects())
    titles = [f"`{name}`" + (f" `{options}`" if options else "") for name, options in subjects]
    chosen = [paths_memory.chosen_path(*subject, paths_memory.LENGTH) for subject in subjects]
    assert written == list(zip(titles, chosen, strict=True))
    assert {name for name, _ in subjects} == set(specs())


@pytest.mark.usefixtures("on_a_cpu")
def test_the_counted_memory_is_what_the_formulas_say() -> None:
    """Flex keeps q, k, v, the output, one number per query, and the table of its products."""
    length, width = 256, paths_page.HEAD_DIM
    plain = 4 * length * width * 2 + 4 * length
    assert paths_memory.kept_for_backward("none", "", "flex", length) == pytest.approx(plain, rel=0.01)
    table = 4 * length * (2 * paths_page.CLIP + 1)
    clipped = paths_memory.kept_for_backward("shaw", paths_page.FEWER_ROWS, "flex", length)
    assert clipped == pytest.approx(plain + table, rel=0.4)
    explicit = paths_memory.kept_for_backward("shaw", paths_page.FEWER_ROWS, "explicit", length)
    assert clipped is not None
    assert explicit is not None
    assert explicit > 1.5 * clipped


def test_a_path_that_is_not_exact_has_no_number() -> None:
    assert paths_memory.kept_for_backward("m3", "", "flex", 16) is None
