"""Fine-tune pretrained models on GLUE; `recipes/finetune_glue/run.sh` starts this program."""

from __future__ import annotations

import sys
from pathlib import Path

from recipes.lib.command import main
from recipes.lib.finetuning.models import in_a_name
from recipes.lib.finetuning.sentences.report import behind, counted, strange, tell
from recipes.lib.recipe import Recipe, compared

from .plan import make_plan
from .settings import CONF, Settings

DESCRIPTION = """\
Fine-tune pretrained masked language models with any position encoding on the tasks of GLUE. The stages tokenize the
rows and train with fairseq-train and the settings of a paper. Later stages score the development sets and write GLUE
submissions for the test sets. For each task, the report compares the scores of all models and segment encodings with a
constant answer and with the scores in the paper."""

LEGEND = """\
Scores are in percent on the development set (for MNLI, the matched set). Each score is the median over the seeds, as in
the DIET paper. The columns `mean` and `sd` show the mean score and the standard deviation over the seeds. The column
`p` shows the p-value of Welch's t-test between the scores of this model and of the first model on the same task, after
Holm's correction. If several learning rates or numbers of epochs are tried, the table shows the combination with the
best median and every combination in which a training run diverged. Each row `average` shows a model's mean score over
all tasks; the two development sets of MNLI count as two tasks. In the rows `average`, `mean` and `sd` are computed from
one average for each seed. A seed has no average if one of its training runs diverged. The baseline is the
constant answer that scores best on the training rows. A model beats the baseline if its score is higher by more than
two standard errors. Two standard errors are 2 sqrt(p (1 - p) / rows) if the constant answer has the score p, and 2 /
sqrt(rows - 1) for correlations. The column `paper` shows the score that the protocol's paper reports for this encoding.
The paper's models have 12 layers and were pretrained on the paper's corpora. For the protocol m4m, the column `paper`
also shows the scores of roberta-base and of models whose pretraining started from roberta-base. The column `paper` is
empty if the number of rows in a dataset differs from the published number. In a row `average`, the column `paper` is
also empty if the paper averages other tasks; the column `comparable` then says what differs. The folder
submission/MODEL contains, for each task, the test predictions of the run with the median score."""

MAIN = {
    "task": "task",
    "model": "model",
    "score": "score (%)",
    "sd": "standard deviation over seeds",
    "seeds": "seeds",
    "of": "metric",
    "paper": "score in the paper (%)",
    "p": "p",
    "diverged": "diverged",
    "lr": "learning rate",
    "parameters": "parameters",
}
COLUMNS = (
    *("task", "model", "score", "mean", "sd", "seeds", "p", "of", "also", "baseline", "beats baseline", "paper"),
    *("comparable", "diverged", "lr", "epochs", "updates", "parameters", "minutes"),
)


def remarks(settings: Settings, output: Path) -> list[str]:
    rows = compared(settings, output)
    prepared = sorted((output / "data-bin").iterdir())
    lines = [LEGEND, *(f"{folder.name}: {counted(folder)}." for folder in prepared)]
    lines += strange(prepared)
    return lines + behind([f"{row['model']} on {row['task']}" for row in rows if row["beats baseline"] is False])


def default_output(settings: Settings) -> str:
    """Return the output folder's name, made of preset, dataset, models, protocol, tasks, segment encodings and seed."""
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
    main=MAIN,
    columns=COLUMNS,
    files=("submission/", "predictions/", "checkpoints/"),
    plain={"smoke": {}, "paper": {"checkpoint": "MODEL"}},
)

if __name__ == "__main__":
    sys.exit(main(FINETUNE_GLUE, sys.argv[1:]))
