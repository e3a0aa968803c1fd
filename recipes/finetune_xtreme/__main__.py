"""Fine-tune on English and score other languages of XTREME; `recipes/finetune_xtreme/run.sh` starts this program."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from recipes.lib.command import main
from recipes.lib.finetuning.models import in_a_name
from recipes.lib.finetuning.questions import report as questions
from recipes.lib.finetuning.questions.files import GOLD, RECORD
from recipes.lib.finetuning.sentences import report as sentences
from recipes.lib.finetuning.sentences import xnli
from recipes.lib.finetuning.sentences.plan import RECORD as ROWS
from recipes.lib.recipe import Recipe, Row, compared
from recipes.lib.stages import Stage, read_json

from .languages import rows_of_sentences
from .plan import make_plan
from .sets import SETS
from .settings import Settings

DESCRIPTION = """\
Pretrained multilingual masked language models of any position encoding, trained on English and scored in other
languages without having seen any task in them (zero-shot), by the DIET paper's protocol: XNLI; the questions of XQuAD,
MLQA and TyDiQA-GoldP, trained on SQuAD 1.1."""

SENTENCES = """\
Score: accuracy by language, in percent, of the test sets, or of the development sets where the tests have no labels.
Learning rates and checkpoints are chosen on English's development set. Baseline: the constant answer that scores best
on the training rows; a model beats it that is more than two standard errors above it, 2 sqrt(p (1 - p) / rows). Chance
is 33.33. Paper: the DIET paper's mean over XNLI's languages, beside ours with English, as XTREME's means are."""
QUESTIONS = """\
EM, F1: in percent, by each set's own rules: MLQA's for its language, otherwise SQuAD 1.1's. Baseline: the span of the
language's mean length in which most words of the question are, beaten by two standard errors, 2 sqrt((p
(1 - p) + q (1 - q)) / questions) of F1 p and q. Learning rates, epochs and checkpoints (--keep best; without --dev-file
the last) are chosen by English questions that are not scored; of several runs the median counts. Out of reach:
questions whose answers no prediction can be. Paper: the DIET paper's means over all languages of a set."""

COLUMNS = (
    *("task", "model", "language", "score", "of", "EM", "F1", "baseline", "baseline EM", "baseline F1", "chance"),
    *("beats baseline", "paper", "paper's EM", "paper's F1", "comparable", "questions", "out of reach", "rules"),
    *("lr", "epochs", "runs", "updates", "minutes"),
)


def results(settings: Settings, output: Path) -> list[Row]:
    rows = compared(settings, output)
    return rows_of_sentences(rows, output) if settings.sentences else rows


def tell(stage: Stage) -> str:
    """Return a short result of a finished stage for the screen."""
    parts = {one.name for one in SETS.values()} & set(stage.variant.split("."))
    if stage.kind in ("score", "baselines") and parts:
        return f" {by_language(read_json(stage.outputs[0]))}"
    spans = stage.kind == "prepare" and (stage.outputs[0] / RECORD).exists()
    squad = spans or "recipes.finetune_squad.check" in stage.command or stage.kind in ("score", "baselines")
    return questions.tell(stage) if squad else sentences.tell(stage)


def by_language(found: Mapping[str, Any]) -> str:
    """Return the F1 of each language as text; if there are several baselines, the F1 of the first."""
    first = {one: facts if "f1" in facts else next(iter(facts.values())) for one, facts in found.items()}
    return "F1 " + ", ".join(f"{one} {facts['f1']:.2f}" for one, facts in first.items())


def remarks(settings: Settings, output: Path) -> list[str]:
    """Return the remarks of the report: its legend, the counts of the data, and the scores of the gold answers."""
    prepared = sorted((output / "data-bin").iterdir())
    if settings.sentences:
        told = [SENTENCES, *(f"{one.name}: {sentences.counted(one)}." for one in prepared)]
        told += sentences.strange(prepared)
        rows = [row for row in results(settings, output) if not row["beats baseline"]]
        told += sentences.behind([f"{row['model']} in {row['language']}" for row in rows])
        return told + [xnli.summary(read_json(one / ROWS)["splits"]) for one in prepared[:1]]
    told = [QUESTIONS, *(f"{one.name}: {questions.counted(one)}." for one in prepared)]
    for task in settings.task:
        scored = {row["language"] for row in compared(settings, output) if row["task"] == task}
        missing = [language for language in SETS[task].languages if language not in scored]
        told += [f"{task}: not scored in {', '.join(missing)}."] if missing else []
    for file in sorted((output / "baselines").glob("*.json")):
        gold = {language: scores[GOLD] for language, scores in read_json(file).items()}
        scores = ", ".join(f"{language} {one['em']:g}/{one['f1']:g}" for language, one in gold.items())
        told.append(f"The right answers of {file.stem} have EM/F1 {scores}.")
    return told


def default_output(settings: Settings) -> str:
    """Return a folder name that differs for every preset, task, dataset, model, protocol, segment encoding and seed."""
    what = ".".join(one.lower() for one in settings.task)
    data = Path(settings.data).resolve().name
    parts = [settings.preset, what, data, in_a_name(settings.checkpoint), settings.protocol, *settings.segments]
    return f"finetune_xtreme/{'.'.join(filter(None, parts))}.{settings.seed}"


FINETUNE_XTREME = Recipe(
    name="finetune_xtreme",
    description=DESCRIPTION,
    settings=Settings,
    conf=Path(__file__).parent / "conf",
    preset="small",
    plan=make_plan,
    results=results,
    tell=tell,
    remarks=remarks,
    default_output=default_output,
    examples=(
        "--preset smoke --task xquad --output /tmp/smoke",
        "--preset small --checkpoint my-run --data xtreme/ --train-rows 1500",
        "--preset small --task xquad,tydiqa --languages en,fi,ru --checkpoint mine/checkpoint_last.pt --data xtreme/",
        "--preset small --task mlqa --checkpoint mine/checkpoint_last.pt --data MLQA_V1 --train-file train.json.gz",
        "--preset paper --task xquad,mlqa,tydiqa --segments head --dry-run "
        "--checkpoint results/pretrain_mlm/wiki100.posenc_bert_base.512.1",
    ),
    columns=COLUMNS,
    files=("predictions/", "checkpoints/"),
    plain={"smoke": {}, "paper": {"checkpoint": "MODEL"}},
)

if __name__ == "__main__":
    sys.exit(main(FINETUNE_XTREME, sys.argv[1:]))
