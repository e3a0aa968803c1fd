"""Test the language model recipe: its text and memories, what it refuses, and the numbers of the paper."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from support_dry_run import ROOT, planned, run, values

from fairseq_posenc.papers.reading import figures
from recipes.lib import runs
from recipes.lib.encodings import published

RECIPE = "lm_wikitext103"
PAPERS = sorted(path.stem for path in (ROOT / "recipes" / RECIPE / "conf").glob("wt103*.sh"))


def settings(preset: str) -> dict[str, Any]:
    return runs.settings(run(RECIPE, "--preset", preset, "--settings").stdout)


@pytest.mark.parametrize("preset", PAPERS)
def test_presets_have_the_settings_of_the_paper(preset: str) -> None:
    """Compare with the settings in the LFHC/GCDF paper (Qu et al. 2021, Table 4)."""
    theirs = {figure.row: figure.value for figure in figures("LFHC", table="Table 4", column="WT103")}
    ours = settings(preset)
    flags = ours["train"]
    rows = {"lr": "lr rate", "clip-norm": "clip norm", "max-update": "maximum steps", "warmup-updates": "warmup steps"}
    rows |= {"batch-size": "batch size", "validate-interval-updates": "eval interval"}
    assert {flag: float(values(flags, f"--{flag}")[0]) for flag in rows} == {flag: theirs[rows[flag]] for flag in rows}
    assert float(values(flags, "--dropout")[0]) == (0.1 if preset == "wt103-dropout01" else theirs["dropout"])
    assert (ours["mem_train"], ours["mem_eval"], len(ours["seeds"].split(","))) == ("150", "150,640", 10)


def test_every_model_of_the_paper_has_its_scores() -> None:
    """Shaw has a table per head. What the paper calls T5 has distances up to M; `t5` is not in the paper."""
    text = ",".join(settings(preset)["pos_enc"] for preset in PAPERS)
    labels = set(re.findall(r"[^,\[]+(?:\[[^\]]*\])?", text))
    for memory in ("memory 150", "memory 640", "best"):
        numbers = {label: published(figures("LFHC", column=memory), label) for label in labels}
        assert {label for label, number in numbers.items() if number is None} == {"t5"}
    found = [published(figures("LFHC", column="memory 150"), f"shaw[{args}clip=8]") for args in ("share=none,", "")]
    assert [figure and figure.value for figure in found] == [25.34, None]


def test_encodings_without_memory_are_trained_and_evaluated_without_it() -> None:
    steps = planned(RECIPE, "--pos-enc", "xl[biases=tied],learned,learned+t5[buckets=8],rope+rope-2")
    memories = {name: values(command, "--mem-length")[0] for name, command in steps.items() if name[:6] == "train:"}
    assert [*memories.values()] == ["150", "0", "0", "150"]
    evaluated = [values(command, "--memories")[0] for name, command in steps.items() if name[:9] == "evaluate:"]
    assert evaluated == ["0,150,640", "0", "0", "0,150,640"]


@pytest.mark.parametrize("types", [5, 6])
def test_types_are_those_of_a_prepared_dictionary(tmp_path: Path, types: int) -> None:
    """Count the words, <unk> and <eos>, but not the symbols that fairseq adds to fill the dictionary."""
    (tmp_path / "dict.txt").write_text("a 2\nb 1\nc 1\nmadeupword0000 0\n")
    (tmp_path / "train.idx").touch()
    words = ("--corpus", tmp_path, "--types", types)
    if types == 5:
        steps = planned(RECIPE, *words)
        assert not {"text", "binarise"} & set(steps)
        assert str(tmp_path) in steps["train:learned.s1"]
    else:
        assert "dict.txt has 5 word types. Give --types 5" in run(RECIPE, *words, "--dry-run").stderr


def test_flags_that_a_setting_replaces_are_refused(tmp_path: Path) -> None:
    for flag, setting in (("mem-length", "mem-train"), ("same-length", "eval-same-length")):
        process = run(RECIPE, f"--train.{flag}", 8, "--output", tmp_path / "out")
        assert (process.returncode, f"Give --{setting} instead" in process.stderr) == (1, True)


def test_the_largest_distance_is_set_for_encodings_that_have_one() -> None:
    pytest.importorskip("fairseq")
    from recipes.lm_wikitext103.evaluate import clamped

    assert clamped("xl", "biases=tied", 400) == "biases=tied,clamp=400"
    assert clamped("xl", "clamp=50", 400) == "clamp=50"
    assert clamped("learned+xl[biases=none]", "", 400) == "clamp=400"
    assert clamped("t5", "", 400) == ""
