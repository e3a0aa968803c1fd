"""Fine-tune on English and score in other languages of XTREME; `recipes/finetune_xtreme/run.sh` starts this program."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from recipes.lib.command import main
from recipes.lib.finetuning.models import in_a_name
from recipes.lib.finetuning.questions import report as questions
from recipes.lib.finetuning.questions.files import CHECKED, GOLD, RECORD
from recipes.lib.finetuning.sentences import report as sentences
from recipes.lib.finetuning.sentences import xnli
from recipes.lib.finetuning.sentences.plan import RECORD as ROWS
from recipes.lib.recipe import Recipe, Row, compared
from recipes.lib.stages import Stage, read_json

from .languages import rows_of_sentences
from .plan import make_plan
from .sets import SETS, XNLI
from .settings import Settings

DESCRIPTION = """\
Fine-tune pretrained multilingual masked language models on English, and score the models in other languages without
further training (zero-shot). The settings follow the DIET paper. The tasks are XNLI and the question datasets XQuAD,
MLQA and TyDiQA-GoldP. Models for the question datasets are trained on SQuAD 1.1."""

SENTENCES = """\
The score of a language is the accuracy in percent on its test set, or on its development set if the test sets have no
labels. Learning rates and checkpoints are chosen on the English development set. The baseline is the constant answer
that scores best on the training rows. A model beats the baseline if its score is higher by more than two standard
errors. Two standard errors are 2 sqrt(p (1 - p) / rows) for the accuracy p of the baseline. Chance is 33.33 %. The
column `paper` shows the DIET paper's mean accuracy over the languages of XNLI. The row `mean` includes English, like
the means in the XTREME paper."""
QUESTIONS = """\
EM and F1 are in percent. MLQA has its own scoring rules for each language; the other datasets use the rules of SQuAD
1.1. The baseline answers each question with the span that shares the most words with the question. In each language,
the baseline's spans have the mean length of the answers. A model beats the baseline if its F1 is higher by more than
two standard errors. Two standard errors are 2 sqrt((p (1 - p) + q (1 - q)) / questions), where p and q are the F1 of
the model and of the baseline. Learning rates, epochs and (with --keep best) checkpoints are chosen on English questions
that are not scored. Without English development questions (--dev-file), the last checkpoint is used. With several
seeds, scores are medians, and sd is the standard deviation of F1 over the seeds. The column p shows the p-value of
Welch's t-test between the mean F1 of the row's model and of the first model, after Holm's correction. For each training
run that diverged, the column `diverged` shows the update, the loss and (with several seeds) the seed. The model of a
diverged run is not scored. The column `out of reach` shows the number of questions that cannot be answered correctly,
because their gold answers are too long or lie in no window. The column `paper` shows the DIET paper's mean over all
languages of a dataset; the column is empty if the run has fewer languages or other questions."""

AVERAGES = """\
Each row `average` shows the mean of a model's accuracy on XNLI and its F1 and EM on each question dataset. With all
four tasks, the row `average` is the mean of the seven numbers that the DIET paper averages. An average is computed for
every seed for which no training run diverged; `mean` and `sd` are the mean and the standard deviation of these
averages. If the tasks or data of the run differ from those of the paper's average, the column `paper` is empty and the
column `comparable` says what differs."""

MAIN = {
    "task": "task",
    "model": "model",
    "language": "language",
    "score": "accuracy (%)",
    "F1": "F1 (%)",
    "EM": "EM (%)",
    "sd": "standard deviation over seeds",
    "seeds": "seeds",
    "paper": "accuracy in the paper (%)",
    "paper's F1": "F1 in the paper (%)",
    "paper's EM": "EM in the paper (%)",
    "p": "p",
    "diverged": "diverged",
    "parameters": "parameters",
}
COLUMNS = (
    *("task", "model", "language", "score", "of", "EM", "F1", "baseline", "baseline EM", "baseline F1", "chance"),
    *("beats baseline", "paper", "paper's EM", "paper's F1", "comparable", "questions", "out of reach", "rules"),
    *("mean", "mean F1", "mean EM", "sd", "seeds", "p", "diverged", "lr", "epochs", "updates", "parameters"),
    "minutes",
)


def results(settings: Settings, output: Path) -> list[Row]:
    rows = compared(settings, output)
    return rows if settings.question_sets else rows_of_sentences(rows, output)


def tell(stage: Stage) -> str:
    """Return a short result that the screen shows after a finished stage."""
    parts = {known.name for known in SETS.values()} & set(stage.variant.split("."))
    if stage.kind in ("score", "baselines") and parts:
        return f" {by_language(read_json(stage.outputs[0]))}"
    squad = stage.kind in ("score", "baselines")
    squad |= stage.kind == "check" and stage.outputs[0].parent.name == CHECKED
    squad |= stage.kind == "prepare" and (stage.outputs[0] / RECORD).exists()
    return questions.tell(stage) if squad else sentences.tell(stage)


def by_language(scores: Mapping[str, Any]) -> str:
    """Return the F1 of each language as text; if the file has several baselines, use the first one."""
    first = {code: facts if "f1" in facts else next(iter(facts.values())) for code, facts in scores.items()}
    return "F1 " + ", ".join(f"{code} {facts['f1']:.2f}" for code, facts in first.items())


def remarks(settings: Settings, output: Path) -> list[str]:
    """Return the remarks of the report."""
    prepared = sorted((output / "data-bin").iterdir())
    lines: list[str] = []
    if settings.sentences:
        rows = [row for row in results(settings, output) if row["task"] == XNLI]
        lines += of_sentences(rows, [folder for folder in prepared if (folder / ROWS).exists()])
    if settings.question_sets:
        lines += of_questions(settings, output, [folder for folder in prepared if (folder / RECORD).exists()])
    if settings.sentences and settings.question_sets:
        lines.append(AVERAGES)
    return lines


def of_sentences(rows: list[Row], prepared: list[Path]) -> list[str]:
    """Return the remarks about XNLI."""
    lines = [SENTENCES, *(f"{folder.name}: {sentences.counted(folder)}." for folder in prepared)]
    lines += sentences.strange(prepared)
    lines += sentences.behind([f"{row['model']} in {row['language']}" for row in rows if not row["beats baseline"]])
    return lines + [xnli.summary(read_json(folder / ROWS)["splits"]) for folder in prepared[:1]]


def of_questions(settings: Settings, output: Path, prepared: list[Path]) -> list[str]:
    """Return the remarks about the question datasets."""
    lines = [QUESTIONS, *(f"Prepared questions {folder.name}: {questions.counted(folder)}." for folder in prepared)]
    for task in settings.question_sets:
        scored = {row["language"] for row in compared(settings, output) if row["task"] == task}
        missing = [language for language in SETS[task].languages if language not in scored]
        lines += [f"{task} is not scored in {', '.join(missing)}."] if missing else []
        scores_by_language = read_json(output / "baselines" / f"{SETS[task].name}.json")
        gold = {language: scores[GOLD] for language, scores in scores_by_language.items()}
        scores = ", ".join(f"{code} {score['em']:g}/{score['f1']:g}" for code, score in gold.items())
        lines.append(
            f"As a test of the scorer, the gold answers of {SETS[task].name} are also scored, and their EM/F1 should "
            f"be 100/100: {scores}."
        )
    return lines


def default_output(settings: Settings) -> str:
    """Return the output folder's name, made of preset, tasks, dataset, models, protocol, segment encodings and seed."""
    tasks = ".".join(task.lower() for task in settings.task)
    data = Path(settings.data).resolve().name
    parts = [settings.preset, tasks, data, in_a_name(settings.checkpoint), settings.protocol, *settings.segments]
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
        "--preset paper --task xnli,xquad,mlqa,tydiqa --segments head --dry-run "
        "--checkpoint results/pretrain_mlm/wiki100.posenc_bert_base.512.1",
    ),
    main=MAIN,
    columns=COLUMNS,
    files=("predictions/", "checkpoints/"),
    plain={"smoke": {}, "paper": {"checkpoint": "MODEL"}},
)

if __name__ == "__main__":
    sys.exit(main(FINETUNE_XTREME, sys.argv[1:]))
