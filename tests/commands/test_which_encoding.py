"""Test the hand-written text of docs/which-encoding.md: its names are known, and its numbers occur in tables."""

from __future__ import annotations

import re
import tomllib

import pytest
from support_which_encoding import HAND, PAGE, ROOT, cells, sections

from fairseq_posenc.__main__ import COMMANDS
from fairseq_posenc.commands import choosing
from fairseq_posenc.commands.params import at_base_size, rows, split
from fairseq_posenc.core.options import names as option_names
from fairseq_posenc.encodings import get, names

MULTI30K = (ROOT / "docs" / "multi30k.md").read_text(encoding="utf-8")
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
    for anchor, body in sections(text).items():
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
    others = (label for label in choosing.quoted(text) if not (label in commands or label.startswith("--pos-enc")))
    return [label for label in others if label.partition("=")[0] not in options and not builds(label)]


def builds(label: str) -> bool:
    try:
        at_base_size(*split(label))
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
    with_evidence = choosing.mentioned(HAND)
    listed = choosing.filled("`shaw`, `m4[clip=3]`, `t5+m2`\n<!-- derived: without evidence -->\n<!-- end -->\n")
    assert choosing.mentioned(listed) == set(names())
    assert not {"shaw", "m4", "t5", "m2"} & choosing.mentioned(listed.partition("<!--")[2])
    assert with_evidence <= choosing.mentioned(PAGE) == set(names())


def test_numbers_in_prose_occur_in_the_tables_of_their_section() -> None:
    assert unfounded(HAND) == set()
    table = "## Task\n\n| F1 |\n|---|\n| 88.5 |\n\n"
    assert unfounded(f"{table}Up to 88.6 (section 5.2).\n\n## In short\n") == {"88.6"}
    assert unfounded(f"{table}## In short\n\n| for |\n|---|\n| [it](#task): 88.5, SQuAD1.1 88.7 |\n") == {"88.7"}


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(([^)]+)\)", HAND))))
def test_links_lead_somewhere(link: str) -> None:
    if link.startswith("#"):
        assert link[1:] in sections(HAND)
    else:
        assert (ROOT / "docs" / link).exists()


def test_multi30k_is_as_measured() -> None:
    measured = {row[0]: row for row in cells(MULTI30K, "--pos-enc | BLEU | ±")}
    on_the_page = cells(HAND, "--pos-enc | BLEU | ± | p against none")
    assert on_the_page == [measured[row[0]][: len(row)] for row in on_the_page]
    assert {row[0] for row in on_the_page} == set(measured)
    back = cells(HAND, "--pos-enc | BLEU | ± | p against sinusoidal")
    sentence = " and ".join(f"{bleu} ± {half} for `{name}`" for name, bleu, half, _ in back)
    assert f"From German to English with SentencePiece, BLEU is {sentence} (p = {back[-1][-1]})." in MULTI30K


def test_the_demo_has_these_encodings() -> None:
    conf = tomllib.loads((ROOT / "recipes" / "demo" / "conf" / "demo.toml").read_text(encoding="utf-8"))
    assert {row[0] for row in cells(HAND, "--pos-enc | BLEU of the demo")} == set(conf["encodings"])


def test_parameters_are_those_that_the_papers_print_or_derived() -> None:
    printed = set(re.findall(r"\b\d+(?:\.\d+)?[KM]\b", HAND))
    known = {row["printed"] for row in rows()}
    assert printed
    assert printed <= known
    assert not {f"{row['count']:,}" for row in rows() if row["count"] >= 1000} & set(re.findall(r"[\d,]+\d", HAND))
