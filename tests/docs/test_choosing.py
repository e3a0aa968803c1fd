"""Test the hand-written text of docs/choosing.md: its names are known, and its numbers occur in tables of pages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import quoting
from support_choosing import HAND, PAGE, PAGES, ROOT, cells, quoted, section

from fairseq_posenc.__main__ import COMMANDS
from fairseq_posenc.commands.params import rows, split
from fairseq_posenc.core.options import names as option_names
from fairseq_posenc.core.syntax import names_in
from fairseq_posenc.encodings import get, names
from fairseq_posenc.encodings.facts import at_base_size

SHORT = "In short"
#: Encodings that were not trained yet; the page says so.
NOT_MEASURED = {"logn", "pope", "wall"}
RECIPES = ("translation", "language-models", "masked-lm", "fine-tuning", "question-generation", "text-classification")


def lines_of(text: str, in_tables: bool) -> list[str]:
    return [line for line in text.splitlines() if line.lstrip().startswith("|") == in_tables]


def numbers(text: str) -> set[str]:
    """Return the numbers with a decimal point, except for names (SQuAD1.1) and sections."""
    return set(re.findall(r"(?<![\w.])\d+\.\d+", re.sub(r"section \d+\.\d+", "", text)))


def unfounded(table: str, pages: dict[str, str]) -> set[str]:
    """Return the numbers in the rows of a table that no table of the pages has to which the row links."""
    missing: set[str] = set()
    for line in lines_of(table, True)[2:]:
        linked = [pages[name] for name in re.findall(r"\]\(([\w-]+)\.md", line)]
        missing |= numbers(line) - numbers("\n".join(row for page in linked for row in lines_of(page, True)))
    return missing


def unknown(text: str) -> list[str]:
    """Return texts in backticks that are neither encodings nor options, choices, flags or commands."""
    options = {option for name in names() for option in option_names(get(name).Options)}
    choices = {"linear", "ntk", "yarn"}
    labels = [label.removeprefix("python -m fairseq_posenc ").partition(" ")[0] for label in quoted(text)]
    others = (label for label in labels if not (label in {*COMMANDS, *choices} or label.startswith("--pos-enc")))
    return [label for label in others if label.partition("=")[0] not in options and not builds(label)]


def builds(label: str) -> bool:
    try:
        at_base_size(*split(label))
    except ValueError:
        return False
    return True


def test_names_in_backticks_are_known() -> None:
    assert unknown(HAND) == []
    assert unknown("`shwa`, `m4[clop=3]`, `m2+m3`, `m4`, `m4[clip=3]`, `clip=3`") == ["shwa", "m4[clop=3]", "m2+m3"]


def test_numbers_of_the_summary_occur_in_the_tables_of_the_linked_pages() -> None:
    assert len(numbers(section(PAGE, SHORT))) > 50
    assert unfounded(section(PAGE, SHORT), PAGES) == set()
    table = "| for | take |\n|---|---|\n| [it](a.md#task): 88.5, SQuAD1.1 88.7 |\n"
    assert unfounded(table, {"a": "| F1 |\n|---|\n| 88.5 |\n\n88.7\n"}) == {"88.7"}


@pytest.mark.parametrize("page", RECIPES)
def test_numbers_in_prose_about_the_papers_occur_in_the_tables_of_their_page(page: str) -> None:
    papers = PAGES[page].partition("## What the ")[2].partition("\n## ")[0]
    tables = numbers("\n".join(lines_of(PAGES[page], True)))
    assert numbers("\n".join(lines_of(papers, False))) <= tables


def test_every_encoding_has_a_score() -> None:
    text = "\n".join(PAGES[page] for page in (*RECIPES, "length-tasks"))
    labels = [
        stack for label in re.findall(r"^ *\| *`?([^`\n|]+?)`? +\|", text, re.MULTILINE) for stack in label.split("/")
    ]
    scored = {name for label in labels for name in names_in(label.partition("[")[0])}
    assert {*names()} - scored - {"dape"} == NOT_MEASURED  # `alibi+dape` has a row
    assert all(f"`{name}`" in section(PAGE, "Open questions") for name in NOT_MEASURED)
    assert "alibi+dape" in text


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
    conf = (ROOT / "recipes" / "demo" / "conf" / "eight.sh").read_text(encoding="utf-8")
    (encodings,) = re.findall(r"^pos_enc=(.*)$", conf, re.M)
    scores = cells(PAGES["translation"], "--pos-enc | BLEU of the demo")
    assert {row[0].strip("`") for row in scores} == set(encodings.split(","))


def test_parameters_are_those_that_the_papers_print_or_derived() -> None:
    printed = set(re.findall(r"\b\d+(?:\.\d+)?[KM]\b", HAND))
    known = {row["printed"] for row in rows()}
    assert printed
    assert printed <= known
    assert not {f"{row['count']:,}" for row in rows() if row["count"] >= 1000} & set(re.findall(r"[\d,]+\d", HAND))


def test_the_page_is_short() -> None:
    assert len(PAGE.splitlines()) <= 150
