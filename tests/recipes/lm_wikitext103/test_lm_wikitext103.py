"""Test the language model recipe: its text and memories, and the numbers of the paper."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from support_recipes import ROOT, called, planned, run, settings, values

from fairseq_posenc.papers.reading import figures
from recipes.lib.encodings import published

RECIPE = "lm_wikitext103"
PAPERS = sorted(path.stem for path in (ROOT / "recipes" / RECIPE / "conf").glob("wt103*.sh"))


def test_every_model_of_the_paper_has_its_scores() -> None:
    """Shaw has a table per head. What the paper calls T5 has distances up to M; `t5` is not in the paper."""
    text = ",".join(settings(RECIPE, preset)["pos_enc"] for preset in PAPERS)
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


def test_a_longer_memory_is_evaluated_in_short_segments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("fairseq")
    from recipes.lm_wikitext103 import evaluate

    overrides: list[dict[str, Any]] = []

    def load(path: Path, changed: dict[str, Any], *, cpu: bool) -> SimpleNamespace:
        overrides.append(changed)
        return SimpleNamespace(model=torch.nn.Linear(1, 1))

    trained = {"cfg": SimpleNamespace(model=SimpleNamespace(pos_enc="xl", pos_enc_args=""))}
    monkeypatch.setattr(evaluate.checkpoint_utils, "load_checkpoint_to_cpu", lambda path: trained)
    monkeypatch.setattr(evaluate, "load", load)
    monkeypatch.setattr(evaluate, "updates", lambda path: 3)
    monkeypatch.setattr(evaluate, "evaluate", lambda *_: {"nats": 2.0, "tokens": 2, "words": 1})
    words = "--checkpoint C --data D --split S --streams 1 --length 150 --memories 150,640 --segment 64"
    words += f" --same-length true --clamp 400 --output {tmp_path / 'scores.json'}"
    called(evaluate, *words.split())
    names = ("eval_mem_length", "eval_segment_length", "same_length", "pos_enc_args")
    assert [[changed.get(name) for name in names] for changed in overrides] == [
        [150, 150, False, None],
        [640, 64, True, "clamp=400"],
    ]
    assert json.loads((tmp_path / "scores.json").read_text())["best"]["per word"] == pytest.approx(math.exp(2))


def test_the_largest_distance_is_set_for_encodings_that_have_one() -> None:
    pytest.importorskip("fairseq")
    from recipes.lm_wikitext103.evaluate import clamped

    assert clamped("xl", "biases=tied", 400) == "biases=tied,clamp=400"
    assert clamped("xl", "clamp=50", 400) == "clamp=50"
    assert clamped("learned+xl[biases=none]", "", 400) == "clamp=400"
    assert clamped("t5", "", 400) == ""
