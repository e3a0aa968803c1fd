"""Test that presets train the models of the papers with the hyperparameters of their tables."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from support_recipes import RECIPES, planned, run, settings

from fairseq_posenc.papers.reading import figures
from recipes.lib.departures import flags
from recipes.lib.encodings import published

LFHC = tomllib.loads(Path(__file__).with_name("papers.toml").read_text("utf-8"))
MODELS = sorted(path.stem for path in RECIPES["lm_wikitext103"].glob("conf/wt103*.sh"))
COMMANDS = {**{f"lm_wikitext103 --preset {preset}": "WT103" for preset in MODELS}, **LFHC["commands"]}


@pytest.mark.parametrize("command", COMMANDS)
def test_presets_have_the_hyperparameters_of_lfhc(command: str) -> None:
    paper = {figure.row: figure.value for figure in figures("LFHC", table="Table 4", column=COMMANDS[command])}
    paper |= {"dropout": 0.1} if "wt103-dropout01" in command else {}
    commands = planned(run(*command.split(), "--seeds", 1, "--until", "train", "--dry-run").stdout).values()
    train = next(flags(words) for words in commands if words[0] == "fairseq-train")
    rows = LFHC["flags"]
    assert {row: float(train[flag]) for row, flag in rows.items()} == {row: paper[row] for row in rows}
    assert train.get("total-num-update", train["max-update"]) == train["max-update"]


def test_language_models_have_the_memories_and_seeds_of_lfhc() -> None:
    found = [settings("lm_wikitext103", preset) for preset in MODELS]
    facts = {(own["mem_train"], own["mem_eval"], len(own["seeds"].split(","))) for own in found}
    assert facts == {("150", "150,640", 10)}


def test_every_language_model_of_the_presets_has_its_scores() -> None:
    """Shaw has a table per head. What the paper calls T5 has distances up to M; `t5` is not in the paper."""
    text = ",".join(settings("lm_wikitext103", preset)["pos_enc"] for preset in MODELS)
    labels = set(re.findall(r"[^,\[]+(?:\[[^\]]*\])?", text))
    for memory in ("memory 150", "memory 640", "best"):
        numbers = {label: published(figures("LFHC", column=memory), label) for label in labels}
        assert {label for label, number in numbers.items() if number is None} == {"t5"}
    found = [published(figures("LFHC", column="memory 150"), f"shaw[{args}clip=8]") for args in ("share=none,", "")]
    assert [figure and figure.value for figure in found] == [25.34, None]


@pytest.mark.parametrize(("preset", "column"), [("paper", "SQuAD"), ("paper-cmrc", "CMRC")])
def test_every_question_model_of_the_presets_has_its_number(preset: str, column: str) -> None:
    for k in ("", "-k-shaw", "-k-lfhc"):
        labels = settings("question_generation", f"{preset}{k}")["pos_enc"]
        for label in str(labels).replace("],", "] ").replace("xl,", "xl ").split():
            assert published(figures("LFHC", column=column), label), label
