"""The GLUE recipe; `recipes/finetune_glue/run.sh` calls it in the right environment."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from recipes.lib import problems
from recipes.lib.command import main
from recipes.lib.finetuning import in_a_name
from recipes.lib.recipe import Recipe, Row, compared
from recipes.lib.stages import Stage, read_json

from .plan import RECORD, make_plan
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


def tell(stage: Stage) -> str:
    """What a finished stage found."""
    if stage.kind == "check":
        found = read_json(stage.outputs[0])
        return f" {found['encoding']}, {found['layers']} layers of {found['dim']}, {found['updates']} updates"
    if stage.kind == "prepare":
        return f" {counted(stage.outputs[0])}"
    if stage.kind == "baseline":
        found = read_json(stage.outputs[0])["valid"]
        return " " + ", ".join(f"{name} {one['score']} (always {one['constant']})" for name, one in found.items())
    if stage.kind == "evaluate":
        found = read_json(stage.outputs[0])["scores"]["valid"]
        return " " + ", ".join(f"{name} {score:.2f}" for name, score in found.items())
    return ""


def counted(folder: Path) -> str:
    record = read_json(folder / RECORD)
    splits = record["splits"].items()
    told = ["rows " + ", ".join(f"{split} {facts['items']:,} of {facts['given']:,}" for split, facts in splits)]
    if cut := ", ".join(f"{split} {facts['cut']:,}" for split, facts in splits if facts["cut"]):
        told.append(f"cut to {record['longest']} pieces: {cut}")
    if unknown := ", ".join(f"{split} {unknown_part(facts):.2%}" for split, facts in splits if facts["unknown"]):
        told.append(f"pieces that the model does not know: {unknown}")
    return "; ".join([*told, *([wrong] if (wrong := problems.counted(record["problems"])) else [])])


def unknown_part(facts: dict[str, Any]) -> float:
    return float(facts["unknown"] / max(facts["pieces"], 1))


def strange(prepared: Sequence[Path]) -> list[str]:
    """Splits whose text is of another kind than the model's, so that their scores say little."""
    told = []
    for folder in prepared:
        record = read_json(folder / RECORD)
        named = [split for split, facts in record["splits"].items() if unknown_part(facts) > record["strange"]]
        part = f"{folder.name}: more than {record['strange']:.0%} of the pieces of {', '.join(named)}"
        told += [f"{part} are unknown to the model: scores on it say little."] if named else []
    return told


def remarks(settings: Settings, output: Path) -> list[str]:
    rows = compared(settings, output)
    told = [LEGEND, *(f"{folder.name}: {counted(folder)}." for folder in sorted((output / "data-bin").iterdir()))]
    for model in dict.fromkeys(str(row["model"]) for row in rows):
        scores = [float(str(row["score"])) for row in rows if row["model"] == model]
        if len(scores) > 1:
            told.append(f"Mean of {model} over {len(scores)} tasks: {sum(scores) / len(scores):.2f}.")
    told += strange(sorted((output / "data-bin").iterdir()))
    return told + behind([(f"{row['model']} on {row['task']}", row) for row in rows])


def behind(rows: Sequence[tuple[str, Row]]) -> list[str]:
    """Those that do not beat the baseline.

    Args:
        rows: by what they are called.
    """
    named = [name for name, row in rows if not row["beats baseline"]]
    return [f"Not above the constant answer: {', '.join(named)}."] if named else []


def default_output(settings: Settings) -> str:
    """Another preset, other models, segments or rows, another protocol or seed is another experiment."""
    rows, models = Path(settings.data).resolve().name, in_a_name(settings.checkpoint)
    segments = [] if settings.segments == ["none"] else settings.segments
    told = [settings.preset, rows, models, settings.protocol, *settings.task, *segments, str(settings.seed)]
    return f"finetune_glue/{'.'.join(one for one in told if one)}"


FINETUNE_GLUE = Recipe(
    name="finetune_glue",
    description=DESCRIPTION,
    settings=Settings,
    conf=CONF,
    preset="small",
    plan=make_plan,
    results=compared,
    tell=tell,
    environment=Settings.variables,
    slots=Settings.slots,
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
