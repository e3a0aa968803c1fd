"""Test that presets train with the hyperparameters of the papers' tables."""

from __future__ import annotations

import pytest
from support_recipes import ROOT, planned, settings

from fairseq_posenc.papers.reading import figures
from recipes.lib.departures import flags
from recipes.lib.encodings import published

#: Rows of the tables of hyperparameters in the paper of LFHC, and the flags of fairseq-train for them.
LFHC_FLAGS = {
    "batch size": "batch-size",
    "lr rate": "lr",
    "dropout": "dropout",
    "clip norm": "clip-norm",
    "warmup steps": "warmup-updates",
    "maximum steps": "max-update",
    "eval interval": "validate-interval-updates",
}
MODELS = sorted(path.stem for path in (ROOT / "recipes" / "lm_wikitext103" / "conf").glob("wt103*.sh"))
TASKS = ("IMDB", "SST-2", "SNLI", "QNLI", "QQP", "MNLI")


@pytest.mark.parametrize(
    ("recipe", "preset", "words", "column"),
    [
        *(("lm_wikitext103", preset, (), "WT103") for preset in MODELS),
        *(("text_classification", "paper", ("--tasks", task, "--pos-enc", "xl"), task) for task in TASKS),
        ("question_generation", "paper", (), "SQuAD"),
        ("question_generation", "paper-cmrc", (), "CMRC"),
    ],
)
def test_presets_have_the_hyperparameters_of_lfhc(
    recipe: str, preset: str, words: tuple[str, ...], column: str
) -> None:
    paper = {figure.row: figure.value for figure in figures("LFHC", table="Table 4", column=column)}
    paper |= {"dropout": 0.1} if preset == "wt103-dropout01" else {}
    commands = planned(recipe, "--preset", preset, *words, "--seeds", 1, "--until", "train").values()
    train = next(flags(command) for command in commands if command[0] == "fairseq-train")
    assert {row: float(train[flag]) for row, flag in LFHC_FLAGS.items()} == {row: paper[row] for row in LFHC_FLAGS}
    assert train.get("total-num-update", train["max-update"]) == train["max-update"]


def test_language_models_have_the_memories_and_seeds_of_lfhc() -> None:
    found = [settings("lm_wikitext103", preset) for preset in MODELS]
    facts = {(own["mem_train"], own["mem_eval"], len(own["seeds"].split(","))) for own in found}
    assert facts == {("150", "150,640", 10)}


@pytest.mark.parametrize(("preset", "column"), [("paper", "SQuAD"), ("paper-cmrc", "CMRC")])
def test_every_question_model_of_the_presets_has_its_number(preset: str, column: str) -> None:
    for k in ("", "-k-shaw", "-k-lfhc"):
        labels = settings("question_generation", f"{preset}{k}")["pos_enc"]
        for label in str(labels).replace("],", "] ").replace("xl,", "xl ").split():
            assert published(figures("LFHC", column=column), label), label
