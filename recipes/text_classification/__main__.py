"""Define the text classification recipe; `recipes/text_classification/run.sh` starts this module."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from recipes.lib.command import main
from recipes.lib.recipe import Hints, Recipe, compared
from recipes.lib.stages import Stage, read_json

from .plan import make_plan
from .settings import CONF, Settings

DESCRIPTION = """\
Train text classifiers from scratch with several position encodings and random seeds, and compare them. Train on the
tasks of Qu et al. 2021 (IMDB, SST-2, SNLI, QNLI, QQP, MNLI) or on your own files."""

LEGEND = """\
Score: accuracy in percent; for QQP the mean of accuracy and F1, for MNLI the mean over the matched and the mismatched
test set. The score is the mean over seeds, and sd is the standard deviation over seeds. The column p shows the p-value
of Welch's t-test between the scores of the row's encoding and of the first encoding, after Holm's correction. Diverged:
update, loss and (with several seeds) seed of each training run that diverged; its model is not scored. Checkpoints are
chosen on the validation set; the test set (for GLUE's tasks, the development set) is scored once. Majority: score of
always answering the most frequent label. Bag of words: score of logistic regression on the words of a text. Paper:
score in Table 1 of Qu et al. 2021, the mean over ten seeds of models with GloVe vectors and 8 layers of width 512. Only
runs with the paper's settings are comparable with the paper. The column `paper` is empty unless the run has all
published rows of the task."""

MAIN = {
    "encoding": "encoding",
    "score": "score (%)",
    "sd": "standard deviation over seeds",
    "seeds": "seeds",
    "paper": "score in the paper (%)",
    "p": "p",
    "diverged": "diverged",
    "parameters": "parameters",
}
COLUMNS = (
    *("encoding", "score", "sd", "seeds", "p", "paper", "majority", "bag of words"),
    *("diverged", "updates", "parameters", "minutes"),
)


def tell(stage: Stage) -> str:
    """Return the short result that the screen shows after a finished stage."""
    if stage.kind == "evaluate":
        return f" score {read_json(stage.outputs[0])['score']:.2f}"
    if stage.kind == "baselines":
        baselines = read_json(stage.outputs[0])
        return f" majority {baselines['majority']:.2f}, bag of words {baselines['bag of words']:.2f}"
    return ""


def remarks(settings: Settings, output: Path) -> list[str]:
    """Return the remarks of the report: an explanation of its columns, and the size of the data."""
    record = read_json(output / "data-bin" / "glue.json")
    splits = ", ".join(f"{split} {facts['items']:,}" for split, facts in record["splits"].items())
    vectors = record["word vectors"]
    kind = f"{record['words']:,} words, " + (f"word vectors {vectors['name']}" if vectors else "no word vectors")
    return [LEGEND, f"{settings.name}: {splits} rows; {kind}."]


def default_output(settings: Settings) -> str:
    """Return the output folder's name, which contains task and architecture."""
    return f"text_classification/{settings.name}.{settings.arch}"


def hints(settings: Settings, output: Path) -> Hints:
    rows = [row for row in compared(settings, output) if row["score"] is not None]
    if not rows:
        return {}
    best = max(rows, key=lambda row: row["score"])
    title = f"List the files with predictions ({best['encoding']} has the best mean score):"
    return {title: shlex.join(["ls", str(output / "predictions")])}


TEXT_CLASSIFICATION = Recipe(
    name="text_classification",
    description=DESCRIPTION,
    settings=Settings,
    conf=CONF,
    preset="small",
    plan=make_plan,
    results=compared,
    tell=tell,
    hints=hints,
    remarks=remarks,
    default_output=default_output,
    examples=(
        "--preset smoke",
        "--preset small --task sst2 --pos-enc none,shaw,gcdf --seeds 1,2,3",
        "--preset small --task my-folder --text title --label topic --pos-enc rope",
        "--preset paper --task imdb --pos-enc xl,gcdf --glove published",
        "--preset paper-k-shaw --task mnli --launch torchrun --processes 4 --batches 4",
    ),
    main=MAIN,
    columns=COLUMNS,
    figure="lengths.png",
    files=("lengths.png", "predictions/"),
    plain={"smoke": {}, "paper": {}},
)

if __name__ == "__main__":
    sys.exit(main(TEXT_CLASSIFICATION, sys.argv[1:]))
