"""Test the hand-written text of docs/which-encoding.md: its names are known, and its numbers occur in tables."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import blocks
import pytest
import quoting
from support_which_encoding import HAND, PAGE, ROOT, cells, quoted, sections

from fairseq_posenc.__main__ import COMMANDS
from fairseq_posenc.commands.params import rows
from fairseq_posenc.core.options import names as option_names
from fairseq_posenc.encodings import get, names
from fairseq_posenc.encodings.facts import at_base_size

QUOTES = re.findall(r"<!-- derived: quote (.+?) -->", PAGE)
SHORT = "in-short"


def lines_of(text: str, in_tables: bool) -> list[str]:
    return [line for line in text.splitlines() if line.lstrip().startswith("|") == in_tables]


def numbers(text: str) -> set[str]:
    """Return the numbers with a decimal point, except for names (SQuAD1.1) and sections."""
    return set(re.findall(r"(?<![\w.])\d+\.\d+", re.sub(r"section \d+\.\d+", "", text)))


def unfounded(text: str) -> set[str]:
    """Return the numbers in prose and in the summary that no table of their section contains."""
    missing: set[str] = set()
    tables = {anchor: numbers("\n".join(lines_of(body, True))) for anchor, body in sections(text).items()}
    for anchor, body in sections(blocks.by_hand(text)).items():
        if anchor != SHORT:
            missing |= numbers("\n".join(lines_of(body, False))) - tables[anchor]
    for line in lines_of(sections(text)[SHORT], True)[2:]:
        (anchor,) = re.findall(r"\(#([\w-]+)\)", line)
        missing |= numbers(line) - tables[anchor]
    return missing


def unknown(text: str) -> list[str]:
    """Return texts in backticks that are neither encodings nor options, flags or commands."""
    options = {option for name in names() for option in option_names(get(name).Options)}
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    commands = {f"python -m fairseq_posenc {name}" for name in COMMANDS} | {f"make {target}" for target in targets}
    others = (label for label in quoted(text) if not (label in commands or label.startswith("--pos-enc")))
    return [label for label in others if label.partition("=")[0] not in options and not builds(label)]


def builds(label: str) -> bool:
    try:
        at_base_size(label)
    except ValueError:
        return False
    return True


def test_names_in_backticks_are_known() -> None:
    assert unknown(HAND) == []
    assert unknown("`shwa`, `m4[clop=3]`, `m2+m3`, `make coffee`, `m4`, `m4[clip=3]`, `clip=3`") == [
        "shwa",
        "m4[clop=3]",
        "m2+m3",
        "make coffee",
    ]


def test_every_encoding_has_evidence_or_is_listed_without_it() -> None:
    """A row of a table is evidence; a mention, or a row about the cost, is not."""
    rows = "| `shaw` | 1 |\n| `t5+m2` | 2 |\n\n`xpos`\n\n<!-- derived: without evidence -->\n<!-- end -->\n"
    listed = quoted(blocks.filled(rows).partition("<!--")[2])
    assert set(listed) == set(names()) - {"shaw", "t5", "m2"}
    quotes = "<!-- derived: quote {} | words | train | {} -->\n<!-- end -->"
    assert blocks.scored(quotes.format("a.md", "m4[clip=3]; xl") + quotes.format("speed.md", "fire")) == {"m4", "xl"}
    named = {name for label in quoted(PAGE) for name in label.split("+")}
    assert {"rope", "alibi"} < blocks.scored(PAGE) <= set(names()) <= named


def test_numbers_in_prose_occur_in_the_tables_of_their_section() -> None:
    assert unfounded(PAGE) == set()
    table = "## Task\n\n| F1 |\n|---|\n| 88.5 |\n\n"
    assert unfounded(f"{table}Up to 88.6 (section 5.2).\n\n## In short\n") == {"88.6"}
    assert unfounded(f"{table}## In short\n\n| for |\n|---|\n| [it](#task): 88.5, SQuAD1.1 88.7 |\n") == {"88.7"}


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(([^)]+)\)", HAND))))
def test_links_lead_somewhere(link: str) -> None:
    page, _, anchor = link.partition("#")
    path = ROOT / "docs" / (page or "which-encoding.md")
    assert path.exists()
    if anchor:
        headings = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
        assert anchor in [re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in headings]


@pytest.mark.parametrize("block", sorted(set(QUOTES)))
def test_a_quoted_table_names_its_source_and_condition(block: str) -> None:
    """The paragraph above the block links to the page; every number of the block occurs on this page."""
    page = block.partition(" | ")[0]
    above, _, table = PAGE.partition(f"<!-- derived: quote {block} -->")
    paragraph = above.rstrip().rpartition("\n\n")[2]
    assert re.search(rf"\]\({page}#[\w-]+\)", paragraph), paragraph
    source = cells_with_numbers((ROOT / "docs" / page).read_text(encoding="utf-8"))
    quoted = cells_with_numbers(table.partition("<!-- end -->")[0])
    assert quoted
    assert {cell for cell in quoted - source if not cell.startswith("`")} == set()


def cells_with_numbers(text: str) -> set[str]:
    return {cell.strip() for line in lines_of(text, True) for cell in line.split("|") if re.search(r"\d", cell)}


def test_every_section_says_what_is_not_known() -> None:
    decisions = re.findall(r"^\| \[[^]]+\]\(#([\w-]+)\)", sections(HAND)[SHORT], re.MULTILINE)
    assert len(decisions) > 10
    for anchor in decisions:
        assert "*Not known:*" in sections(HAND)[anchor], anchor


def test_what_a_page_does_not_have_cannot_be_quoted(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("The scores\nof a run:\n\n| encoding | F1 |\n|---|---|\n| m4[clip=8] | 1.5 |\n")
    good = "page.md | The scores of a run | F1 | m4[clip=8]"
    assert "| `m4[clip=8]`  |  1.5 |" in quoting.quote(good, tmp_path)
    for wrong, message in {
        good.replace("scores", "times"): "has no table after the words 'The times of a run'",
        good.replace("F1", "EM"): "the table has no column 'EM'. Choose from: encoding, F1",
        good.replace("=8", "=9"): r"the table has no row 'm4\[clip=9\]'",
    }.items():
        with pytest.raises(ValueError, match=message):
            quoting.quote(wrong, tmp_path)


def test_the_preset_eight_of_the_demo_has_these_encodings() -> None:
    conf = tomllib.loads((ROOT / "recipes" / "demo" / "conf" / "eight.toml").read_text(encoding="utf-8"))
    assert {row[0].strip("`") for row in cells(HAND, "--pos-enc | BLEU of the demo")} == set(conf["encodings"])


def test_parameters_are_those_that_the_papers_print_or_derived() -> None:
    printed = set(re.findall(r"\b\d+(?:\.\d+)?[KM]\b", HAND))
    known = {row["printed"] for row in rows()}
    assert printed
    assert printed <= known
    assert not {f"{row['count']:,}" for row in rows() if row["count"] >= 1000} & set(re.findall(r"[\d,]+\d", HAND))
