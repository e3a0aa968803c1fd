"""Test that names on pages exist, here and in other packages, and that numbers are those of papers or other pages."""

from __future__ import annotations

import re
import tomllib
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import blocks
import pytest
from fairseq.models import ARCH_MODEL_REGISTRY
from fairseq.tasks import TASK_REGISTRY

import fairseq_posenc.models  # registers the architectures and tasks
from fairseq_posenc.__main__ import COMMANDS
from fairseq_posenc.commands import params
from fairseq_posenc.core.options import names as option_names
from fairseq_posenc.encodings import get, names
from fairseq_posenc.encodings.facts import at_base_size
from fairseq_posenc.papers.reading import FOLDER, figures

ROOT = Path(fairseq_posenc.__file__).parents[1]
PAGES = {path.stem: path.read_text(encoding="utf-8") for path in (ROOT / "docs").glob("*.md")}
CHOOSING = blocks.by_hand(PAGES["choosing"])
PACKAGES = {"fairseq": "fairseq", "transformers": "transformers", "x-transformers": "x_transformers"}
OPTIONS = {option for name in names() for option in option_names(get(name).Options)}
#: Other words of ours in backticks: choices, commands and flags of models.
WORDS = {*COMMANDS, *"linear ntk yarn padding memory export-hf rotary_emb_dim use_abs_pos_emb --mem-length".split()}


def codes(text: str) -> list[str]:
    return re.findall(r"`([^`\n]+)`", text)


def known(code: str) -> bool:
    """Return whether a text in backticks names something of this package."""
    flag, _, rest = code.removeprefix("python -m fairseq_posenc ").partition(" ")
    if flag == "--pos-enc" and rest:
        value, _, args = rest.partition(" --pos-enc-args ")
        return builds(value.strip("'"), args)
    if code.startswith("fairseq_posenc."):
        module, _, name = code.rpartition(".")
        return hasattr(import_module(module), name)
    registries = {"--arch": ARCH_MODEL_REGISTRY, "--task": TASK_REGISTRY}
    if flag in registries:
        return rest in registries[flag]
    parts = {part.partition("=")[0] for part in flag.split(",")}
    return parts <= OPTIONS | WORDS or flag.startswith("--pos-enc") or builds(code)


def builds(label: str, args: str = "") -> bool:
    try:
        return at_base_size(*((label, args) if args else params.split(label))) is not None
    except ValueError:
        return False


def rows(library: str) -> list[list[str]]:
    """Return the cells of each row of the table of coming-from.md whose first column has this library."""
    table = (
        PAGES["coming-from"].partition(f"| {library} | here | in the file |\n|---|---|---|\n")[2].partition("\n\n")[0]
    )
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]


@pytest.mark.parametrize("library", PACKAGES)
def test_names_of_other_libraries_exist_in_their_files(library: str) -> None:
    pytest.importorskip(PACKAGES[library])
    assert len(rows(library)) > 5
    (folder,) = find_spec(PACKAGES[library]).submodule_search_locations  # type: ignore[union-attr]
    for theirs, _, file in rows(library):
        wanted = [name.partition("=")[0] for name in codes(theirs) if not name.startswith("--")]
        text = (Path(folder) / codes(file)[0]).read_text(encoding="utf-8")
        assert [name for name in wanted if not re.search(rf"\b{name}\b", text)] == []


def test_names_of_this_package_exist() -> None:
    ours = " ".join(row[1] for library in PACKAGES for row in rows(library))
    assert [code for code in codes(f"{ours} {CHOOSING}") if not known(code)] == []
    wrong = (
        "`--arch posenc_gpt`, `clop=3`, `fairseq_posenc.stack.Stock`, `--pos-enc roap`, `shwa`, `m4[clop=3]`, `m2+m3`"
    )
    assert [code for code in codes(f"{wrong}, `m4`, `m4[clip=3]`, `clip=3`") if not known(code)] == codes(wrong)


def test_encodings_in_commands_exist() -> None:
    commands = re.findall(r"--pos-enc '([^']+)'", "\n".join(PAGES.values()))
    given = {spec for values in commands for spec in re.split(r",(?![^[]*\])", values)}
    assert len(given) > 15
    assert [spec for spec in given if not builds(spec)] == []


# -- numbers ---------------------------------------------------------------------------------------------------

README = (ROOT / "README.md").read_text(encoding="utf-8")
SUMMARY, EXPLANATION, _ = (part for part in re.split(r"^## .*\n", CHOOSING, flags=re.M)[1:])
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
    """Leave out the two averages that choosing.md computes itself; tests/papers/test_tables.py computes them anew."""
    papers = "".join(re.findall(r"^## What the .* reports?\n(.*?)^## ", PAGES[page], re.M | re.S))
    text = " ".join(re.sub(r"\]\([^)]*\)", "", EXPLANATION if page == "choosing" else papers).split())
    assert numbers(text) <= of_papers(*CITATIONS) | {"54.9", "57.4"}


def test_parameters_are_those_that_the_papers_print_or_derived() -> None:
    printed = set(re.findall(r"\b\d+(?:\.\d+)?[KM]\b", CHOOSING))
    assert printed
    assert printed <= {row["printed"] for row in params.rows()}
    counts = {f"{row['count']:,}" for row in params.rows() if row["count"] >= 1000}
    assert not counts & set(re.findall(r"[\d,]+\d", CHOOSING))


def test_every_score_in_the_readme_occurs_on_the_page_of_its_source() -> None:
    """Compute two numbers anew: how far the means of encodings differ, and how far their seeds do."""
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
