"""Test the section of docs/cost.md about GPUs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fairseq_posenc.commands.bench import gpu_page

DOCS = Path(__file__).resolve().parents[3] / "docs"


def line_of(section: str, name: str) -> list[str]:
    rows = ([cell.strip() for cell in line.split("|")[1:-1]] for line in section.splitlines() if line[:1] == "|")
    (cells,) = (cells for title, *cells in rows if title == name)
    return cells


def results(device: str = "a GPU", **row: Any) -> dict[str, Any]:
    facts = {"part": "cost", "options": "", "path": "auto", "length": 512, "memory": None}
    return {"setting": {"device": device, "torch": "2.11", "python": "3.12"}, "rows": [{**facts, **row}]}


def test_the_page_has_the_present_paths_and_targets() -> None:
    """If this fails, run: python -m fairseq_posenc docs."""
    section = gpu_page.section(None)
    assert section in (DOCS / "cost.md").read_text(encoding="utf-8")
    empty = "not measured on a GPU"
    assert line_of(section, "`t5`") == ["flex", empty, "1.10", empty, "1.20", empty, "1.10"]
    assert line_of(section, "`shaw` `clip=64`") == ["flex", empty, "1.15", empty, "1.20", empty, "1.10"]
    assert [line_of(section, f"`{name}`")[2] for name in ("shaw", "m4", "rope")] == ["1.30", "1.40", ""]
    assert line_of(section, "`linformer`")[5:] == ["-", ""]


def test_a_row_that_is_missing_is_added_unless_a_gpu_was_measured() -> None:
    page = (DOCS / "cost.md").read_text(encoding="utf-8")
    assert gpu_page.refreshed(page) == page
    (row,) = (line for line in gpu_page.section(None).splitlines(keepends=True) if line.startswith("| `tisa` "))
    assert gpu_page.refreshed(page.replace(row, "")) == page
    measured = page.replace(gpu_page.section(None), gpu_page.section(results(encoding="t5", mode="train", ratio=1.1)))
    assert gpu_page.refreshed(measured) == measured != page


def test_measurements_are_next_to_their_targets() -> None:
    section = gpu_page.section(results(encoding="t5", mode="train", ratio=1.134, memory=1.01))
    assert "These costs were measured on a GPU, torch 2.11, python 3.12." in section
    assert line_of(section, "`t5`")[1:5] == ["1.13 !", "1.10", "1.01", "1.20"]


@pytest.mark.parametrize(
    ("content", "message"),
    [("[]", "gpu.json that gpu-check"), (json.dumps(results("cpu (AVX512)")), "measured on a CPU")],
)
def test_other_files_are_refused(content: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "gpu.json").write_text(content)
    with pytest.raises(SystemExit, match=message):
        gpu_page.read(tmp_path / "gpu.json")
