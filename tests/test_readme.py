"""Test that the README matches the registry, and that its Python example runs."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
import torch

from fairseq_posenc.commands import choosing
from fairseq_posenc.core.options import Options
from fairseq_posenc.core.options import names as option_names
from fairseq_posenc.encodings import get, names

ROOT = Path(__file__).resolve().parents[1]
PAGES = ["README.md", *(str(path.relative_to(ROOT)) for path in sorted((ROOT / "docs").rglob("*.md")))]
README = (ROOT / "README.md").read_text(encoding="utf-8")
INDEX = (ROOT / "docs" / "encodings" / "index.md").read_text(encoding="utf-8")


def table() -> dict[str, list[str]]:
    """Return the options of each encoding from the table in docs/encodings/index.md."""
    rows = re.findall(r"^\| `([a-z][^`]*)` +\| [^|]+ \|(.*)\|$", INDEX.replace(r"\|", "/"), re.MULTILINE)
    return {name: [option.partition("=")[0] for option in re.findall(r"`([^`]+)`", cell)] for name, cell in rows}


def test_readme_and_table_have_every_encoding() -> None:
    """If this fails, run: python -m fairseq_posenc docs."""
    assert list(table()) == names()
    assert re.findall(r"\[`([^`]+)`\]\(docs/encodings/", README) == names()
    assert choosing.filled(README) == README


def test_readme_is_short() -> None:
    assert len(choosing.by_hand(README).splitlines()) <= 135


def test_the_readme_states_no_number_of_encodings() -> None:
    """Nobody would correct the number when an encoding is added."""
    assert re.findall(r"\d+\s+(?:position\s+)?encodings", choosing.by_hand(README)) == []


def without_link(text: str) -> list[str]:
    """Return the files and folders of the repository that a text names between backticks, but does not link to."""
    paths = re.findall(r"(?<!\[)`([\w.-]+(?:/[\w.-]+)+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    return [path for path in paths if (ROOT / path).exists()]


def test_all_paths_in_the_readme_are_links() -> None:
    assert without_link(README) == []
    assert without_link("`docs/index.md`, [`docs/index.md`](docs/index.md), `results/x.md`") == ["docs/index.md"]


def repeated_headings(text: str) -> list[str]:
    """Return the headings that a page has more than once, so that links cannot tell them apart."""
    headings = re.findall(r"^##+ .+", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE), re.MULTILINE)
    return [heading for heading, count in Counter(headings).items() if count > 1]


@pytest.mark.parametrize("page", PAGES)
def test_no_heading_occurs_twice(page: str) -> None:
    assert repeated_headings((ROOT / page).read_text(encoding="utf-8")) == []
    assert repeated_headings("## Speed\n```\n## Speed\n```\n## Memory\n## Speed\n") == ["## Speed"]


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_files(page: str) -> None:
    text = re.sub(r"`[^`\n]*`", "", (ROOT / page).read_text(encoding="utf-8"))  # code such as `f[name](x)` has no links
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text)
    assert [link for link in links if not (ROOT / page).parent.joinpath(link).exists()] == []


def test_the_index_leads_to_every_page() -> None:
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    pages = {path.name for path in (ROOT / "docs").glob("*.md")} - {"index.md"}
    assert pages == set(re.findall(r"\]\(([\w-]+\.md)\)", index))


@pytest.mark.parametrize("name", names())
def test_the_table_has_every_option(name: str) -> None:
    """The table leaves out the options that all encodings have, which a section explains."""
    assert table()[name] + option_names(Options) == option_names(get(name).Options)


def test_the_python_example_runs() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    namespace: dict[str, torch.Tensor] = {}
    exec(code, namespace)
    assert namespace["states"].shape == (2, 4, 64)
    assert bool(namespace["states"].isfinite().all())


@pytest.mark.parametrize("path", re.findall(r"`((?:docs|recipes|fairseq_posenc)/[\w./-]+)`|\((docs/[\w.]+)\)", README))
def test_files_named_in_the_readme_exist(path: tuple[str, str]) -> None:
    assert (Path(__file__).resolve().parents[1] / (path[0] or path[1])).exists()
