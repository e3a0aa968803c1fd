"""Fine-tune pretrained models on GLUE; `recipes/finetune_glue/run.sh` starts this program in its environment."""

from __future__ import annotations

import sys
from pathlib import Path
from statistics import fmean

from recipes.lib.command import main
from recipes.lib.finetuning.models import in_a_name
from recipes.lib.finetuning.sentences.report import behind, counted, strange, tell
from recipes.lib.recipe import Recipe, compared

from .plan import make_plan
from .settings import CONF, Settings

DESCRIPTION = """\
Pretrained masked language models of any position encoding on the tasks of GLUE: rows to pieces, fairseq-train by a
paper's protocol, scores beside what a constant answer gets and the paper's figures, answers of the test sets in GLUE's
submission format. Several models, tasks and kinds of segments are compared."""

LEGEND = """\
Scores are of the development set (of MNLI the matched one), in percent: of several learning rates and numbers of epochs
those with the best median of the runs, and the median of each score. Baseline: the constant answer that scores best on
the training rows. A model beats it that is more than two standard errors above it: those of the constant's score on so
many rows, of accuracy 2 sqrt(p (1 - p) / rows); of correlations, where it is 0, those of answers that have nothing to
do with the labels, 2 / sqrt(rows - 1).
Paper: the figure of the protocol's paper for this encoding, of models of 12 layers pretrained on its corpora; of m4m
also roberta-base's, and those of what went on from it. Rows are told from the published ones by their number.
submission/MODEL has the test sets' answers of the run of the median."""

COLUMNS = (
    *("task", "model", "score", "of", "also", "baseline", "beats baseline", "paper", "comparable", "lr", "epochs"),
    *("runs", "updates", "parameters", "minutes"),
)


def remarks(settings: Settings, output: Path) -> list[str]:
    rows = compared(settings, output)
    prepared = sorted((output / "data-bin").iterdir())
    told = [LEGEND, *(f"{folder.name}: {counted(folder)}." for folder in prepared)]
    for model in dict.fromkeys(row["model"] for row in rows):
        scores = [row["score"] for row in rows if row["model"] == model]
        if len(scores) > 1:
            told.append(f"Mean of {model} over {len(scores)} tasks: {fmean(scores):.2f}.")
    told += strange(prepared)
    return told + behind([f"{row['model']} on {row['task']}" for row in rows if not row["beats baseline"]])


def default_output(settings: Settings) -> str:
    """Return a folder name that differs for every preset, dataset, model, protocol, task, segment encoding and seed."""
    rows, models = Path(settings.data).resolve().name, in_a_name(settings.checkpoint)
    segments = [] if settings.segments == ["none"] else settings.segments
    parts = [settings.preset, rows, models, settings.protocol, *settings.task, *segments, str(settings.seed)]
    return f"finetune_glue/{'.'.join(filter(None, parts))}"


FINETUNE_GLUE = Recipe(
    name="finetune_glue",
    description=DESCRIPTION,
    settings=Settings,
    conf=CONF,
    preset="small",
    plan=make_plan,
    results=compared,
    tell=tell,
    remarks=remarks,
    default_output=default_output,
    examples=(
        "--preset smoke --output /tmp/smoke",
        "--preset small --task SST-2,MRPC,RTE --checkpoint my-run --data glue_data",
        "--preset paper --protocol m4m --task MNLI "
        "--checkpoint results/pretrain_mlm/books_wiki.posenc_roberta_base.512.1",
        "--preset paper --protocol diet --task CoLA --checkpoint m4.pt --dry-run",
        "--preset segments --task MNLI --checkpoint results/pretrain_mlm/books_wiki.posenc_bert_base.128.1",
    ),
    columns=COLUMNS,
    files=("submission/", "predictions/", "checkpoints/"),
    plain={"smoke": {}, "paper": {"checkpoint": "MODEL"}},
)

if __name__ == "__main__":
    sys.exit(main(FINETUNE_GLUE, sys.argv[1:]))
