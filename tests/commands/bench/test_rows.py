"""Test the rows of a benchmark, and its exit status."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from torch import Tensor

from fairseq_posenc.commands import bench
from fairseq_posenc.commands.bench import targets
from fairseq_posenc.commands.bench.settings import SHAPES
from fairseq_posenc.encodings import Layer
from fairseq_posenc.encodings.raffel import Raffel
from fairseq_posenc.positions import Positions

from .scene import Clock

FIELDS = """encoding options what mode shape width heads layers length batch causal padded dtype ratio spread target
stretch holds rounds passes milliseconds mib first exponent peer device cpu cores threads load allocator torch python
version commit""".split()


def test_every_row_has_every_field(run: Any, time: Clock) -> None:
    parts = "layer,padded,model,decode,memory"
    status, rows = run("--encodings", "t5", "segments", "xpos", "linformer", "--rounds", "1", "--parts", parts)
    assert status == 0
    assert {frozenset(row) for row in rows} == {frozenset(FIELDS)}
    by_part = {what: [row for row in rows if row["what"] == what] for what in parts.split(",")}
    assert len(by_part["layer"]) == 2 * 4 * 2 * 2  # with and without padding; encodings; lengths; modes
    assert [row["padded"] for row in by_part["layer"]].count(True) == 16
    assert {row["encoding"] for row in by_part["decode"]} == {"t5", "xpos", "fairseq"}
    assert {row["layers"] for row in by_part["model"]} == {4}
    assert {(row["length"], row["batch"]) for row in by_part["model"]} == {(512, 1)}
    assert {row["encoding"] for row in rows if row["causal"] and row["what"] == "layer"} == {"xpos"}
    assert all(row["ratio"] == 1.0 and row["spread"] == 0.0 for row in by_part["layer"])


def test_models_have_the_sizes_of_table_1_of_the_diet_paper() -> None:
    assert {(shape.layers, shape.dim, shape.heads) for shape in SHAPES.values()} == {(12, 768, 12), (4, 512, 8)}


def test_only_layers_without_pads_decoding_and_memory_have_targets(run: Any, time: Clock) -> None:
    _, rows = run("--encodings", "t5", "m4", "--rounds", "1", "--parts", "layer,padded,model,decode,memory")
    has = {(row["what"], row["padded"], row["length"]) for row in rows if row["target"] is not None}
    assert has == {("layer", False, 128), ("layer", False, 512), ("decode", False, 512), ("memory", False, 512)}


def test_an_encoding_that_became_slow_is_caught(
    run: Any, time: Clock, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ["--encodings", "t5", "raffel", "--quick", "--rounds", "2"]
    assert run(*argv)[0] == 0
    fast = Raffel.bias

    def slow(self: Raffel, positions: Positions, layer: Layer) -> Tensor:
        time.seconds += 1.0
        return fast(self, positions, layer)

    monkeypatch.setattr(Raffel, "bias", slow)
    status, rows = run(*argv)
    assert status == 1
    assert {(row["encoding"], row["ratio"], row["holds"]) for row in rows} == {
        ("t5", 1.0, True),
        ("raffel", 2.0, False),
    }
    assert {row["encoding"]: row["passes"] for row in rows} == {"t5": 1, "raffel": 4}


def test_rows_over_their_target_are_named(
    run: Any, time: Clock, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(targets, "NOISE", -0.5)
    assert bench.main(["--shapes", "tiny", "--quick", "--rounds", "1", "--encodings", "alibi"]) == 1
    shown = capsys.readouterr()
    assert "above its target: alibi, layer train, tiny, n=128 x 2: 1.000" in shown.err
    assert "0 of 4 targets are met" in shown.out


def test_the_tables_and_the_figure_are_written(
    run: Any, time: Clock, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parts = ["--parts", "layer,padded,decode,memory,scaling", "--rounds", "1"]
    _, rows = run("--encodings", "t5", "shaw:clip=8", *parts, "--output", str(tmp_path / "cost"))
    names = [f"bench.{suffix}" for suffix in ("csv", "json", "md", "pdf", "png")]
    assert sorted(path.name for path in (tmp_path / "cost").iterdir()) == names
    assert json.loads((tmp_path / "cost" / "bench.json").read_text()) == rows
    page = (tmp_path / "cost" / "bench.md").read_text()
    for text in (
        "| shaw:clip=8 ",
        "left-padded",
        "MiB per sequence",
        "Exponents of growth with the length",
        "MALLOC_MMAP_THRESHOLD_",
    ):
        assert text in page
    assert (tmp_path / "cost" / "bench.png").read_bytes().startswith(b"\x89PNG")


def test_without_matplotlib_the_other_files_are_written(
    run: Any, time: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    argv = ["--shapes", "tiny", "--encodings", "t5", "--quick", "--rounds", "1", "--output", str(tmp_path)]
    assert bench.main(argv) == 0
    assert "matplotlib is missing" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bench.json", "bench.md"]
