"""Test that the files that `python docs/_generate` writes are current and complete."""

from __future__ import annotations

import functools
import inspect
import re

import blocks
import encoding_pages
import generated
import pytest
from laws.cases import Case, every

from fairseq_posenc.commands.params import split
from fairseq_posenc.papers.reading import figures

WHICH = (blocks.DOCS / "choosing.md").read_text(encoding="utf-8")
INDEX = (generated.ENCODINGS / "index.md").read_text(encoding="utf-8")


@functools.cache  # it counts parameters, which takes seconds, so it does not run while tests are collected
def pages() -> dict[str, str]:
    """Return the Markdown of each page, keyed by the name of the encoding."""
    return encoding_pages.pages()


def narrow(text: str) -> str:
    """Return a text without the spaces that align the columns of its tables."""
    return re.sub(" +", " ", text)


def test_the_generated_files_are_current() -> None:
    """If this fails, run: python docs/_generate."""
    files = generated.files()
    assert [path for path, text in files.items() if path.read_text(encoding="utf-8") != text] == []
    assert generated.surplus(files) == set()


def test_only_the_blocks_of_a_page_are_rewritten() -> None:
    wrong = re.sub(r"(\| `t5` +\| +)384 ", r"\g<1>385 ", WHICH)
    assert wrong.count(" 385 ") == 1
    assert blocks.filled(wrong.replace("In short", "At length")) == WHICH.replace("In short", "At length")


@pytest.mark.parametrize("text", ["<!-- derived: all -->", "<!-- derived: all -->\n<!-- derived: t5 -->\n<!-- end -->"])
def test_a_marker_without_its_other_half_is_refused(text: str) -> None:
    """Otherwise, the text up to the next marker would be deleted."""
    with pytest.raises(ValueError, match="'derived' and "):
        blocks.filled(text)


def test_the_index_has_table_6_of_the_diet_paper_next_to_our_totals() -> None:
    section = INDEX.partition("## Parameters of whole models")[2]
    lines = [[cell.strip() for cell in line.split("|")] for line in section.splitlines() if line.startswith("|")]
    rows = {(name, options): cells for _, name, options, *cells in lines}
    for figure in figures("DIET", table="Table 6"):
        if figure.column != "XTREME":
            assert figure.printed in rows[split(figure.encoding)]


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
    assert narrow(blocks.table([label]).splitlines()[-1]).endswith(narrow(told))


@pytest.mark.parametrize("case", every(), ids=str)
def test_a_page_has_the_docstring_of_every_form_of_its_encoding(case: Case) -> None:
    """Check the docstring of the class that implements these options."""
    *_, (name, member) = case.encoding(case.shape()).members.items()
    assert inspect.cleandoc(type(member).__doc__ or "") in pages()[name]


def test_encodings_that_act_in_layers_name_the_option_layers() -> None:
    assert "\n## Active in some layers\n" in INDEX
    linked = {name for name, text in pages().items() if encoding_pages.LAYERS in text}
    assert {"linformer", "dape", "diet-rel"} <= linked
    assert "none" in linked  # for the option window
    assert not {"learned", "segments-input"} & linked
    assert all("layers=" not in text for text in pages().values())


def test_forms_are_listed_with_their_option() -> None:
    assert "\n\n`form=paper`: Learn p [n, D]" in pages()["tupe"]
    assert "\n\n`form=original`: Learn p [n, d] with a layer norm" in pages()["tupe"]
    assert "\n\n`form=original`: Compute r = P W_k" in pages()["deberta"]
    assert sum("\n\n`form=" in text for text in pages().values()) == 2


def test_a_page_lists_parameters_without_effect() -> None:
    assert "- `theta[..., 0]` (`reset=scalar`)\n" in pages()["m4"]
    assert "- `theta[..., 0]` (encoders with a [CLS])\n" in pages()["tupe"]
    assert "- `output_bias`\n" in pages()["fire"]
    assert "without effect" not in pages()["shaw"]
