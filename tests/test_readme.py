"""Test that the README matches the registry, the pages that it quotes and the parsers of its commands.

Its Python example runs here; its shell commands run in tests/integration/test_readme_commands.py.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from pathlib import Path

import blocks
import torch

from fairseq_posenc.commands.doctor.stack import TESTED_FAIRSEQ
from fairseq_posenc.core.families import FAMILIES
from fairseq_posenc.encodings import get, names

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
TRANSLATION = (ROOT / "docs" / "translation.md").read_text(encoding="utf-8")
PAPERS = tomllib.loads((ROOT / "fairseq_posenc" / "papers" / "citations.toml").read_text(encoding="utf-8"))


def test_every_encoding_is_in_the_line_of_its_family() -> None:
    lines = re.findall(r"^\| ([a-z ]+) \| [^|]+ \| (\[`.*) \|$", README, re.MULTILINE)
    listed = {family: re.findall(r"\[`([^`]+)`\]\(docs/encodings/\1\.md\)", links) for family, links in lines}
    assert list(listed) == [family for family, _ in lines] == list(FAMILIES)
    assert all(listed.values())
    assert Counter(name for members in listed.values() for name in members) == Counter(names())
    assert {family: [name for name in names() if get(name).facts.family == family] for family in FAMILIES} == listed


def test_readme_is_short() -> None:
    """This includes the generated tables, because a reader has to scroll past them, too."""
    assert len(README.splitlines()) <= 130


def section(heading: str) -> str:
    """Return the text of a section of the README."""
    return README.partition(f"## {heading}\n")[2].partition("\n## ")[0]


def decimals(text: str) -> set[str]:
    """Return the numbers with a decimal point, except for parts of URLs and versions such as 0.12.3.1."""
    return set(re.findall(r"(?<![\d./-])\d+\.\d+(?![\d/]|\.\d)", text))


def scores() -> dict[str, list[float]]:
    """Return the scores of each encoding in the README: BLEU with seeds 1 and 2, and their mean."""
    rows = re.findall(r"^\| `([^`[]+)[^`]*` +\| +([\d.]+), ([\d.]+) \| +([\d.]+) \|", section("A result"), re.MULTILINE)
    return {name: [*map(float, numbers)] for name, *numbers in rows}


def test_every_score_in_the_readme_occurs_on_the_page_of_its_source() -> None:
    """Except two numbers that the text computes from the table: how far the means and the seeds of encodings differ."""
    result = section("A result")
    assert "](docs/translation.md#" in result
    equal = [scores()[name] for name in ("shaw", "diet-rel", "diet-abs", "t5")]
    means = [mean for *_, mean in equal]
    means_differ = f"{max(means) - min(means):.1f}"
    seeds_differ = f"{max(abs(first - second) for first, second, _ in equal):.1f}"
    assert f"(means within {means_differ} BLEU, seeds within {seeds_differ})" in result
    assert len(decimals(result)) > 20
    assert decimals(result) - {means_differ, seeds_differ} <= decimals(TRANSLATION)
    assert decimals("12.5 and 99.9 (0.12.3.1, https://x.org/2021.emnlp/) at 3.5") == {"12.5", "99.9", "3.5"}
    text = " ".join(result.split())
    best = max(scores(), key=lambda name: scores()[name][-1])
    limits = ("each encoding with two seeds", "(11 epochs, one seed)", "does not cover the variation between seeds")
    assert [words for words in (*limits, f"`{best}` has the best mean") if words not in text] == []


def test_the_readme_names_the_four_papers_with_links() -> None:
    papers = section("The four papers")
    bullets = re.findall(r"^- \[([A-Z][a-z]+) et al\. (\d{4})\]\((https://[^)]+)\)(.*?)(?=^- |\Z)", papers, re.M | re.S)
    authors = [paper["authors"].split(",")[0].split()[-1] for paper in PAPERS.values()]
    assert [author for author, *_ in bullets] == authors
    years = [re.findall(r"\b20\d\d\b", paper["where"])[0] for paper in PAPERS.values()]
    assert [year for _, year, *_ in bullets] == years
    assert len({link for *_, link, _ in bullets}) == 4
    for *_, text in bullets:
        assert set(re.findall(r"`([^`]+)`", text)) <= set(names())
        assert "`" in text


def test_the_readme_names_the_fairseq_that_it_needs() -> None:
    setup = (ROOT / "setup.py").read_text(encoding="utf-8")
    assert f'"fairseq-fixed=={TESTED_FAIRSEQ}"' in setup
    assert f"[fairseq-fixed {TESTED_FAIRSEQ}](" in README


def test_the_readme_and_the_page_about_speed_agree_about_gpus() -> None:
    """Whoever measures on a GPU has to change both pages."""
    speed = (ROOT / "docs" / "speed.md").read_text(encoding="utf-8")
    unmeasured = "No time on this page was measured on a GPU" in speed
    assert ("Nothing was measured on a GPU with the present code" in " ".join(README.split())) == unmeasured


def test_the_readme_states_no_number_of_encodings() -> None:
    """Nobody would correct the number when an encoding is added."""
    assert re.findall(r"\d+\s+(?:position\s+)?encodings", blocks.by_hand(README)) == []


def without_link(text: str) -> list[str]:
    """Return the files and folders of the repository that a text names between backticks, but does not link to."""
    paths = re.findall(r"(?<!\[)`([\w.-]+(?:/[\w.-]+)+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    return [path for path in paths if (ROOT / path).exists()]


def test_all_paths_in_the_readme_are_links() -> None:
    assert without_link(README) == []
    assert without_link("`docs/index.md`, [`docs/index.md`](docs/index.md), `results/x.md`") == ["docs/index.md"]


def test_the_python_example_runs() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    namespace: dict[str, torch.Tensor] = {}
    exec(code, namespace)
    assert namespace["states"].shape == (2, 4, 64)
    assert bool(namespace["states"].isfinite().all())
