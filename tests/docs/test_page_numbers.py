"""Test that numbers in README.md and docs/choosing.md are those of the papers or of tables on other pages."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import blocks
import pytest

from fairseq_posenc.commands.params import rows
from fairseq_posenc.papers.reading import FOLDER, figures

ROOT = Path(__file__).resolve().parents[2]
PAGES = {path.stem: path.read_text(encoding="utf-8") for path in (ROOT / "docs").glob("*.md")}
README = (ROOT / "README.md").read_text(encoding="utf-8")
HAND = blocks.by_hand(PAGES["choosing"])
SUMMARY, EXPLANATION, _ = (part for part in re.split(r"^## .*\n", HAND, flags=re.M)[1:])
CITATIONS = tomllib.loads((FOLDER / "citations.toml").read_text("utf-8"))
RECIPES = ("translation", "language-models", "masked-lm", "fine-tuning", "question-generation", "text-classification")


def numbers(text: str) -> set[str]:
    """Return the numbers with a decimal point, except for names (SQuAD1.1), versions, parts of URLs and sections."""
    plain = re.sub(r"section \d+\.\d+|, 5\.3\)|\]\(https[^)]*\)", "", text)
    return set(re.findall(r"(?<![\w.])\d+\.\d+(?!\.?\d)", plain))


def of_papers(*papers: str) -> set[str]:
    """Return the numbers that the papers print, and the times of DIET as ratios, as this documentation writes them."""
    times = {f"{1 + time.value / 100:.2f}" for time in figures("DIET", table="Table 1") if time.value is not None}
    return numbers(" ".join(figure.printed.replace("±", " ") for paper in papers for figure in figures(paper))) | times


def unfounded(table: str, pages: dict[str, str]) -> set[str]:
    """Return the numbers in a table that neither its papers print nor a page has to which the row links.

    The first cells of a row link to pages, the third names papers, and the fourth has our measurements.
    """
    missing: set[str] = set()
    for line in [line for line in table.splitlines() if line.startswith("|")][2:]:
        *_, printed, measured = [cell.strip() for cell in line.strip().strip("|").split("|")]
        linked = [pages[name] for name in re.findall(r"\]\(([\w-]+)\.md", line)]
        missing |= numbers(printed) - of_papers(*(paper for paper in CITATIONS if paper in printed))
        missing |= numbers(measured) - numbers("\n".join(linked))
    return missing


def test_numbers_of_the_summary_occur_in_the_tables_of_the_linked_pages() -> None:
    assert len(numbers(SUMMARY)) > 50
    assert unfounded(SUMMARY, PAGES) == set()
    head = "| for | take | the papers | ours |\n|---|---|---|---|\n"
    table = f"{head}| [it](a.md#task) | `m4` | 90.53, 99.53 (M1-M4) | 88.5, SQuAD1.1 88.7 |\n"
    assert unfounded(table, {"a": "| F1 |\n|---|\n| 88.5 |\n\n89.7\n"}) == {"99.53", "88.7"}


@pytest.mark.parametrize("page", ["choosing", *RECIPES])
def test_numbers_about_the_papers_are_printed_in_one_of_them(page: str) -> None:
    """Except the two averages that choosing.md computes, as tests/papers/test_tables.py does."""
    papers = "".join(re.findall(r"^## What the .* reports?\n(.*?)^## ", PAGES[page], re.M | re.S))
    text = " ".join(re.sub(r"\]\([^)]*\)", "", EXPLANATION if page == "choosing" else papers).split())
    assert numbers(text) <= of_papers(*CITATIONS) | {"54.9", "57.4"}


def test_parameters_are_those_that_the_papers_print_or_derived() -> None:
    printed = set(re.findall(r"\b\d+(?:\.\d+)?[KM]\b", HAND))
    assert printed
    assert printed <= {row["printed"] for row in rows()}
    assert not {f"{row['count']:,}" for row in rows() if row["count"] >= 1000} & set(re.findall(r"[\d,]+\d", HAND))


def test_every_score_in_the_readme_occurs_on_the_page_of_its_source() -> None:
    """Except two numbers that the text computes from the table: how far the means and the seeds of encodings differ."""
    result = README.partition("## A result\n")[2].partition("\n## ")[0]
    lines = re.findall(r"^\| `([^`[]+)[^`]*` +\| +([\d.]+), ([\d.]+) \| +([\d.]+) \|", result, re.MULTILINE)
    scores = {name: [*map(float, own)] for name, *own in lines}
    equal = [scores[name] for name in ("shaw", "diet-rel", "diet-abs", "t5")]
    means = f"{max(mean for *_, mean in equal) - min(mean for *_, mean in equal):.1f}"
    seeds = f"{max(abs(first - second) for first, second, _ in equal):.1f}"
    assert f"(means within {means} BLEU, seeds within {seeds})" in result
    assert len(numbers(result)) > 20
    assert numbers(result) - {means, seeds} <= numbers(PAGES["translation"])
    best = max(scores, key=lambda name: scores[name][-1])
    assert f"`{best}` has the best mean" in " ".join(result.split())
