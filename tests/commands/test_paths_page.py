"""Test the pages of the attention paths."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from laws.cases import Case, every, in_one_direction

from fairseq_posenc.attention.flex import gradients_on_a_cpu
from fairseq_posenc.commands import paths_memory, paths_page
from fairseq_posenc.encodings import specs

DOCS = Path(__file__).resolve().parents[2] / "docs"


def is_not_on_the_page(case: Case) -> bool:
    return bool(case.args) and not set(case.args) & {"clip", "buckets", "values"} and in_one_direction(case)


@pytest.mark.parametrize("case", every(is_not_on_the_page), ids=str)
def test_no_other_option_changes_the_path(case: Case) -> None:
    options = ",".join(f"{name}={value}" for name, value in case.args.items())
    if paths_page.works(case.spec, options):  # some options need a shorter or longer stack than that of the page
        assert paths_page.paths(case.spec, options) == paths_page.paths(case.spec, "")


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
    lines = text.partition("## A whole layer")[0].splitlines()
    rows = [line.split("|")[1:3] for line in lines if line.startswith("| `")]
    written = [(title.strip(), path.strip()) for title, path in rows]
    subjects = list(paths_page.subjects())
    titles = [f"`{name}`" + (f" `{options}`" if options else "") for name, options in subjects]
    chosen = [paths_memory.chosen_path(*subject, paths_memory.LENGTH) for subject in subjects]
    assert written == list(zip(titles, chosen, strict=True))
    assert {name for name, _ in subjects} == set(specs())


def test_the_page_of_memory_counts_a_layer_of_every_encoding_that_takes_flex() -> None:
    """If this fails, run: python -m fairseq_posenc docs --memory."""
    text = (DOCS / paths_memory.PAGE).read_text(encoding="utf-8").partition("## A whole layer")[2]
    rows = [line.split("|")[1].strip() for line in text.splitlines() if line.startswith("| `")]
    chosen = {subject: paths_page.chosen(*subject, paths_page.HALF).path for subject in paths_page.subjects()}
    assert rows == [paths_page.title_of(*subject) for subject, path in chosen.items() if path == "flex"]


@pytest.mark.usefixtures("on_a_cpu")
def test_the_counted_memory_of_a_layer_is_what_the_formulas_say() -> None:
    """A layer keeps 16 numbers in half precision for each token and unit of its width.

    Flex keeps no table of products, which would here be a quarter of what the rest of the layer keeps.
    """
    length = 160
    tokens, width, heads = length * paths_memory.LAYER_BATCH, paths_memory.LAYER_DIM, paths_memory.LAYER_HEADS
    plain = paths_memory.kept_by_layer("none", "", "fused", length)
    assert plain == pytest.approx(2 * 16 * width * tokens, rel=0.02)
    assert paths_memory.kept_by_layer("t5", "", "flex", length) == pytest.approx(plain, rel=0.01)
    assert 4 * tokens * heads * (2 * paths_page.CLIP + 1) > 0.2 * plain  # the table that is not kept
    copies = 2 * 2 * tokens * width  # of the queries from which the table is computed again
    clipped = paths_memory.kept_by_layer("shaw", paths_page.FEWER_ROWS, "flex", length)
    assert clipped == pytest.approx(plain + copies, rel=0.02)


@pytest.mark.usefixtures("on_a_cpu")
def test_the_counted_memory_is_what_the_formulas_say() -> None:
    """Flex keeps q, k, v, the output, one number per query, and what its table of products is computed from."""
    length, width = 256, paths_page.HEAD_DIM
    plain = 4 * length * width * 2 + 4 * length
    assert paths_memory.kept_for_backward("none", "", "flex", length) == pytest.approx(plain, rel=0.01)
    clipped = paths_memory.kept_for_backward("shaw", paths_page.FEWER_ROWS, "flex", length)
    vectors, copies = 2 * (2 * paths_page.CLIP + 1) * width, 2 * 2 * length * width  # of the queries
    assert clipped == pytest.approx(plain + vectors + copies, rel=0.05)
    explicit = paths_memory.kept_for_backward("shaw", paths_page.FEWER_ROWS, "explicit", length)
    assert clipped is not None
    assert explicit is not None
    assert explicit > 1.5 * clipped


def test_a_path_that_is_not_exact_has_no_number() -> None:
    assert paths_memory.kept_for_backward("m3", "", "flex", 16) is None
