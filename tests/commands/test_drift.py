"""Test that the page of `drift` has every encoding, that drifts are small, and that broken encodings are found."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from laws import broken
from torch.nn import functional as F

from fairseq_posenc.commands import drift, rounding
from fairseq_posenc.encodings import registry, specs

PAGE = Path(__file__).resolve().parents[2] / "docs" / "half-precision.md"
PRECISIONS = {str(precision): precision for precision in rounding.PRECISIONS}


def tables(page: str) -> list[list[list[str]]]:
    """Return the cells of each table, with the heading first."""
    blocks = re.findall(r"(?:^\|.*\|\n)+", page, re.MULTILINE)
    cells = [[[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()] for table in blocks]
    return [[table[0], *table[2:]] for table in cells]


@pytest.fixture(scope="module")
def page_tables() -> list[list[list[str]]]:
    return tables(PAGE.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def cases() -> list[drift.Case]:
    return drift.cases(specs())


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Return the rows of all encodings at a small length, as --json writes them."""
    path = tmp_path_factory.mktemp("drift") / "rows.json"
    assert drift.main(["--length", "16", "--json", "--output", str(path)]) == 0
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    return json.loads(path.read_text(encoding="utf-8"))


def test_the_page_has_every_encoding_reading_and_stack(
    page_tables: list[list[list[str]]], cases: list[drift.Case]
) -> None:
    """If this fails, run: python -m fairseq_posenc drift --output docs/half-precision.md."""
    expected = [[f"`{case.encoding}`" + f" `{case.written}`" * bool(case.options), case.stack] for case in cases]
    assert {case.encoding for case in cases} == set(specs())
    for table in page_tables[2:]:
        assert table[0] == ["encoding", "stack", "positions", *PRECISIONS]
        assert [row[:2] for row in table[1:]] == expected


def test_the_page_is_within_bounds(page_tables: list[list[list[str]]]) -> None:
    outputs, gradients = page_tables[2:]
    for table, bound in ((outputs, "outputs"), (gradients, "gradients")):
        for row in table[1:]:
            for cell, (name, precision) in zip(row[3:], PRECISIONS.items(), strict=True):
                numbers = [float(number) for number in re.split(r" \(| / ", cell.strip(")")) if number != "-"]
                drifts = numbers[:1] if table is outputs else numbers
                assert max(drifts) <= getattr(precision, bound) * (1e6 if name == "float32" else 1e3), row


def test_the_page_is_right_about_the_largest_drifts(page_tables: list[list[list[str]]]) -> None:
    _, gradients, outputs, _ = page_tables
    assert [row[0] for row in gradients[1:3]] == ["`cope`", "`fire`"]
    module, weights, autocast = (float(number) for number in gradients[2][2:])
    assert weights > 0.9 * module > 3 * autocast
    near = {(row[0], row[1]): float(row[5].split()[0]) for row in outputs[1:]}
    for stack in ("encoder", "decoder"):
        assert near["`alibi`", stack] < 1.1 * near["`none`", stack]


def test_every_encoding_is_finite_and_within_bounds(rows: list[dict[str, Any]], cases: list[drift.Case]) -> None:
    measured = [(row["encoding"], row["options"], row["stack"], row["precision"]) for row in rows]
    assert measured == [(case.encoding, case.written, case.stack, name) for case in cases for name in PRECISIONS]
    assert all(row["finite"] and row["near"] for row in rows)
    assert {(row["length"], row["seed"], row["torch"]) for row in rows} == {(16, drift.SEED, torch.__version__)}
    assert {type(value) for row in rows for value in row.values()} == {str, int, bool, float, type(None)}


def test_positions_have_an_effect_and_half_precision_drifts(rows: list[dict[str, Any]]) -> None:
    assert all((row["positions"] > 0.005) == (row["encoding"] != "none") for row in rows)
    least = {"float32": 1e-8, "float16": 1e-4, "bfloat16": 1e-3}
    assert all(row["output_rms"] > least[row["precision"].split()[-1]] for row in rows)
    assert all(row["projections_rms"] > least[row["precision"].split()[-1]] for row in rows)


@pytest.mark.parametrize(
    ("cls", "precision", "verdict"),
    [("OverflowsInHalf", "float16", "not finite"), ("RoundsPositions", "bfloat16", "too far")],
)
def test_a_broken_encoding_is_found(
    cls: str, precision: str, verdict: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "fairseq_posenc.encodings.broken", broken)
    monkeypatch.setitem(registry.ENCODINGS, "broken", f"broken:{cls}")
    assert drift.main(["--encodings", "broken", "alibi", "--length", "288"]) == 1
    out, err = capsys.readouterr()
    for table in tables(out)[2:]:
        cells = {row[0]: dict(zip(table[0], row, strict=True)) for row in table[1:]}
        assert verdict in cells["`broken`"][precision]
        assert "**" not in "".join([cells["`broken`"]["float32"], *cells["`alibi`"].values()])
    assert f"broken (encoder, {precision}): " in err
    assert "alibi (" not in err


def test_cope_drifts_less_where_its_table_is_smooth() -> None:
    """Check the reason that the page gives for the gradients of CoPE."""
    case = next(case for case in drift.cases(["cope"], 128))
    drifts = []
    for smooth in (False, True):
        torch.manual_seed(1)
        stack = rounding.drawn(case.built(), 1)
        table = stack.pos.members["cope"].weight
        if smooth:
            mean = F.avg_pool1d(table.detach()[:, 0].transpose(1, 2), 33, 1, 16, count_include_pad=False)
            table.data = (mean * (table.std() / mean.std())).transpose(1, 2)[:, None]
        drifts.append(rounding.measured(stack, 1)[2]["projections_rms"])
    assert drifts[1] < drifts[0] / 3


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--encodings", "shaw", "shwa"], "known names: none, learned"),
        (["--length", "4"], "at least 8"),
        *([] if torch.cuda.is_available() else [(["--device", "cuda"], "sees no GPU")]),
    ],
)
def test_bad_arguments_are_refused_before_anything_is_measured(
    argv: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        drift.main(["--output", str(tmp_path / "page.md"), *argv])
    assert stop.value.code == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", [".", "missing/page.md"])
def test_an_impossible_output_is_refused_first(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        drift.main(["--output", str(tmp_path / name)])
    assert "or its parent folder does not exist. Give the path of a file to write" in capsys.readouterr().err


def test_stdout_contains_only_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert drift.main(["--json", "--encodings", "none", "--length", "8"]) == 0
    out, err = capsys.readouterr()
    assert [row["precision"] for row in json.loads(out)] == 2 * list(PRECISIONS)
    assert "1/2 none encoder" in err


def test_an_old_page_stays_if_writing_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "page.md"
    path.write_text("before")

    def full(*paths: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(os, "replace", full)
    assert drift.main(["--encodings", "none", "--length", "8", "--output", str(path)]) == 1
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("page.md", "before")]
