"""Test that the pages in docs/encodings match the registry."""

from __future__ import annotations

import functools
import inspect
import re
from pathlib import Path

import pytest
from laws.cases import Case, every

from fairseq_posenc.commands import choosing, pages
from fairseq_posenc.commands.params import split
from fairseq_posenc.encodings import names
from fairseq_posenc.papers.reading import figures

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "encodings"
WHICH = (FOLDER.parent / choosing.PAGE).read_text(encoding="utf-8")
NAMES = ["index.md", *(f"{name}.md" for name in names())]


@functools.cache  # it counts parameters, which takes seconds, so it does not run while tests are collected
def generated() -> dict[str, str]:
    """Return the Markdown of each page, keyed by file name."""
    return pages.pages()


def narrow(text: str) -> str:
    """Return a text without the spaces that align the columns of its tables."""
    return re.sub(" +", " ", text)


@pytest.mark.parametrize("name", NAMES)
def test_a_page_matches_the_registry(name: str) -> None:
    """If this fails, run: python -m fairseq_posenc docs."""
    assert (FOLDER / name).read_text(encoding="utf-8") == generated()[name]


def test_the_facts_for_recipes_match_the_registry() -> None:
    """If this fails, run: python -m fairseq_posenc docs."""
    assert (FOLDER.parents[1] / pages.KNOWN).read_text(encoding="utf-8") == pages.known()


def test_pages_of_removed_encodings_are_deleted(tmp_path: Path) -> None:
    assert {path.name for path in FOLDER.iterdir()} == set(generated())
    (tmp_path / "gone.md").write_text("# `gone`: an old encoding\n")
    foreign = {"notes.md": b"old\n", "copy.md": b"# `shaw`: a copy of a page\n", "bytes.md": b"\xff\n", "empty.md": b""}
    for name, text in foreign.items():
        (tmp_path / name).write_bytes(text)
    assert pages.main(["--output", str(tmp_path)]) == 0
    assert {path.name for path in tmp_path.iterdir()} == set(generated()) | set(foreign)
    assert {name: (tmp_path / name).read_bytes() for name in foreign} == foreign


def test_a_page_has_formula_options_capabilities_and_counts() -> None:
    shaw = narrow(generated()["shaw.md"])
    for part in (
        "$$e_{ij} = ",
        "Shaw et al. 2018",
        "| `clip` | unset |",
        "- supports segment memory: yes",
        "| 785,664 | 785K |",
    ):
        assert part in shaw


def test_the_page_that_helps_to_choose_matches_the_registry() -> None:
    """If this fails, run: python -m fairseq_posenc docs."""
    assert choosing.filled(WHICH) == WHICH
    assert f"(../{choosing.PAGE})" in generated()["index.md"]


def test_the_index_has_table_6_of_the_diet_paper_next_to_our_totals() -> None:
    section = generated()["index.md"].partition("## Parameters of whole models")[2]
    lines = [[cell.strip() for cell in line.split("|")] for line in section.splitlines() if line.startswith("|")]
    rows = {(name, options): cells for _, name, options, *cells in lines}
    for figure in figures("DIET", table="Table 6"):
        if figure.column != "XTREME":
            assert figure.printed in rows[split(figure.encoding)]


def test_only_its_tables_are_rewritten(tmp_path: Path) -> None:
    page = tmp_path / choosing.PAGE
    for name in re.findall(r"derived: quote (\S+)", WHICH):
        (tmp_path / name).write_text((FOLDER.parent / name).read_text(encoding="utf-8"), encoding="utf-8")
    wrong = re.sub(r"(\| `t5` +\| +)384 ", r"\g<1>385 ", WHICH)
    assert wrong.count(" 385 ") > 1
    page.write_text(wrong.replace("In short", "At length"))
    assert pages.main(["--output", str(tmp_path / "encodings")]) == 0
    assert page.read_text() == WHICH.replace("In short", "At length")


@pytest.mark.parametrize("text", ["<!-- derived: all -->", "<!-- derived: all -->\n<!-- derived: t5 -->\n<!-- end -->"])
def test_a_marker_without_its_other_half_deletes_nothing(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / choosing.PAGE).write_text(text)
    assert pages.main(["--output", str(tmp_path / "encodings")]) == 1
    assert "'derived' and " in capsys.readouterr().err
    assert (tmp_path / choosing.PAGE).read_text() == text


@pytest.mark.parametrize(
    ("label", "told"),
    [
        ("learned", "| 393,216 | yes | yes |  |  | yes | yes |  |"),
        ("xpos", "| 0 | yes |  | yes | yes | yes | yes |  |"),
        ("m4[reset=vector]", "| 787,200 |  | yes |  | yes | yes | yes | [CLS] |"),
        ("m4", "[CLS], with `reset` |"),
        ("tupe", "[CLS], if there is one |"),
        ("sentence-restart", "| sentence ends |"),
        ("diet-rel+segments", "|  | yes |  | yes | yes | yes | segments |"),
    ],
)
def test_a_row_has_count_capabilities_and_inputs(label: str, told: str) -> None:
    assert narrow(choosing.table([label]).splitlines()[-1]).endswith(narrow(told))


@pytest.mark.parametrize("case", every(), ids=str)
def test_a_page_has_the_docstring_of_every_form_of_its_encoding(case: Case) -> None:
    """Check the docstring of the class that implements these options."""
    *_, (name, member) = case.encoding(case.shape()).members.items()
    assert inspect.cleandoc(type(member).__doc__ or "") in generated()[f"{name}.md"]


def test_the_option_layers_is_explained_once() -> None:
    assert "\n## Active in some layers\n" in generated()["index.md"]
    assert all(
        "(index.md#active-in-some-layers)" in generated()[f"{name}.md"] for name in ("linformer", "dape", "diet-rel")
    )
    assert all("layers=" not in text for name, text in generated().items() if name != "index.md")
    assert all("#active" not in generated()[f"{name}.md"] for name in ("none", "learned", "segments-input"))


def test_forms_are_listed_with_their_option() -> None:
    assert "\n\n`form=paper`: Learn p [n, D]" in generated()["tupe.md"]
    assert "\n\n`form=original`: Learn p [n, d] with a layer norm" in generated()["tupe.md"]
    assert "\n\n`form=original`: Compute r = P W_k" in generated()["deberta.md"]
    assert sum("\n\n`form=" in text for text in generated().values()) == 2


def test_a_page_lists_parameters_without_effect() -> None:
    assert "- `theta[..., 0]` (`reset=scalar`)\n" in generated()["m4.md"]
    assert "- `theta[..., 0]` (encoders with a [CLS])\n" in generated()["tupe.md"]
    assert "- `output_bias`\n" in generated()["fire.md"]
    assert "without effect" not in generated()["shaw.md"]
