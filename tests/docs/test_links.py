"""Test links, headings and paths of README.md and of all pages, and that the recipes accept the commands on them."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
CODE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)


def headings(text: str) -> list[str]:
    return re.findall(r"^#+ (.+)", CODE.sub("", text), re.MULTILINE)


def anchors(text: str) -> list[str]:
    """Return the anchors of the headings of a page, as Git hosts make them."""
    titles = [re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower() for heading in headings(text)]
    return [re.sub(r"[^\w -]", "", title).replace(" ", "-") for title in titles]


def faults(page: Path, text: str) -> list[str]:
    """Return the links that lead nowhere, the anchors that two headings share, and paths of code that do not exist."""
    prose = re.sub(r"`[^`\n]*`", "", text)  # code such as `f[name](x)` has no links
    wrong = [anchor for anchor, count in Counter(anchors(text)).items() if count > 1]
    for link, anchor in re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", prose):
        target = page.parent / link if link else page
        own = text if target == page else target.read_text(encoding="utf-8") if anchor and target.exists() else ""
        if not target.exists() or (anchor and anchor not in anchors(own)):
            wrong.append(f"{link}#{anchor}" if anchor else link)
    is_of_others = page.stem == "CHANGELOG" or page.stem.startswith("adding-a")  # paths that went, and examples
    paths = (
        [] if is_of_others else re.findall(r"`((?:docs|recipes|tests|fairseq_posenc|data-bin-scripts)/[\w./-]+)`", text)
    )
    return wrong + [path for path in paths if not (ROOT / path).exists()]


def test_links_headings_and_paths_are_right() -> None:
    assert {page: wrong for page in PAGES if (wrong := faults(page, page.read_text(encoding="utf-8")))} == {}
    text = "# A b\n[x](gone.md) [y](#a-b) [z](#none) [w](api.md#none)\n## A b\n`docs/gone.md`, `docs/index.md`\n"
    found = faults(ROOT / "docs" / "index.md", text)
    assert found == ["a-b", "gone.md", "#none", "api.md#none", "docs/gone.md"]


def test_the_index_leads_to_every_page() -> None:
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    pages = {path.name for path in (ROOT / "docs").glob("*.md")} - {"index.md"}
    assert pages == set(re.findall(r"\]\(([\w-]+\.md)\)", index))


def commands() -> dict[str, str]:
    """Return the commands of recipes in the code blocks of all pages, with the flag that checks them fast enough.

    A command with a flag that no longer command has is planned as a whole; otherwise, the recipe only reads the words.
    """
    blocks = (block for page in PAGES for block in re.findall(r"```(?:bash)?\n(.*?)```", page.read_text("utf-8"), re.S))
    lines = (re.sub(r"\s+# .*$", "", line) for block in blocks for line in block.replace("\\\n", " ").splitlines())
    found = {line.strip() for line in lines if re.match(r"recipes/\w+/run\.sh (?!--help)", line)}
    checks, seen = dict[str, str](), set[tuple[str, str]]()
    for line in sorted(found, key=lambda line: (-len(line), line)):
        flags = {(line.partition(" ")[0], flag) for flag in re.findall(r" --[\w.-]+", line)}
        checks[line] = "--settings" if flags <= seen else "--dry-run"
        seen |= flags
    return checks


@pytest.mark.parametrize(("command", "flag"), commands().items())
def test_a_recipe_accepts_the_command(command: str, flag: str) -> None:
    process = subprocess.run(["bash", "-c", f"{command} {flag}"], cwd=ROOT, capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
