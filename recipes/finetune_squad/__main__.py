"""The SQuAD recipe; `recipes/finetune_squad/run.sh` calls it in the right environment."""

from __future__ import annotations

import sys
from pathlib import Path

from recipes.lib import problems
from recipes.lib.command import main
from recipes.lib.finetuning import in_a_name
from recipes.lib.recipe import Hints, Recipe, compared
from recipes.lib.stages import Stage, read_json

from .files import SCORED, TEXTS
from .plan import RECORD, make_plan
from .settings import BUILTIN, CONF, SQUAD, Settings

DESCRIPTION = """\
Answers to questions that are spans of a text: pretrained masked language models, with the position encodings that they
have, fine-tuned on SQuAD 1.1 or 2.0. Questions to windows of pieces, fairseq-train, predictions in the files that
SQuAD's own scripts read, EM and F1 as they have them, beside answers that need no model and the papers' figures."""

LEGEND = """\
EM, F1: of SQuAD's scripts, in percent. Best F1: of version 2.0, with the threshold of the odds of no answer that is
best on the scored questions themselves, as its script has it; otherwise the threshold is --null-threshold. Comparable:
whether sizes, questions and the numbers of the training are the paper's; corpora of the pretraining cannot be told.
Scored is checkpoint_last.pt. Out of reach: questions whose answers no prediction can be. A model beats a baseline
that is two standard errors above it, 2 sqrt((p (1 - p) + q (1 - q)) / questions) of F1 p and q. Right answers have to
have 100."""

COLUMNS = (
    *("model", "encoding", "EM", "F1", "best F1", "threshold of best F1", "paper's EM", "paper's F1", "comparable"),
    *("beats baselines", "longest window", "questions", "out of reach", "questions of training", "updates", "minutes"),
    "pieces/s",
)


def tell(stage: Stage) -> str:
    """What a finished stage found."""
    if stage.kind == "check":
        found = read_json(stage.outputs[0])
        return f" {found['encoding']}, {found['layers']} layers of {found['dim']}, {found['vocabulary']:,} pieces"
    if stage.kind == "prepare":
        return f" {counted(stage.outputs[0])}"
    if stage.kind == "score":
        found = read_json(stage.outputs[0])
        best = f", at best {found['best_f1']:.2f}" if "best_f1" in found else ""
        return f" EM {found['em']:.2f}, F1 {found['f1']:.2f}{best}"
    if stage.kind == "baselines":
        found = read_json(stage.outputs[0])
        return " F1 " + ", ".join(f"{one['f1']:.2f} ({name})" for name, one in found.items())
    return ""


def counted(folder: Path) -> str:
    record = read_json(folder / RECORD)
    parts = (
        f"{name} {one['questions']:,} of {one['given']:,} questions, {one['windows']:,} windows"
        for name, one in record["splits"].items()
    )
    wrong = problems.counted(record["problems"])
    return "; ".join([*parts, *([wrong] if wrong else [])])


def remarks(settings: Settings, output: Path) -> list[str]:
    return [LEGEND, *(f"{one.label}: {counted(output / 'data-bin' / one.slug)}." for one in settings.models)]


def default_output(settings: Settings) -> str:
    """Another preset, other questions or models, another version, length or seed is another experiment."""
    own = settings.train_file or (settings.data if settings.data not in (SQUAD, BUILTIN) else "")
    name = Path(own).resolve().name.partition(".json")[0] if own else settings.data
    models = in_a_name(settings.checkpoint)
    told = [settings.preset, name, models, settings.version, settings.max_length, settings.segments, settings.seed]
    return f"finetune_squad/{'.'.join(str(one) for one in told if one not in ('', 'none'))}"


def hints(settings: Settings, output: Path, shown: str) -> Hints:
    trained = {model.label: model for model in settings.models}
    rows = [row for row in compared(settings, output) if row["model"] in trained]
    best = max(rows, key=lambda row: float(str(row["F1"])))
    folder = f"{shown}/predictions/{trained[str(best['model'])].slug}"
    script = f"evaluate-v{settings.version}.py"
    dev = f"{shown}/data-bin/{trained[str(best['model'])].slug}/valid.{SCORED}"
    given = f"{dev} {folder}/predictions.json"
    if settings.version == "2.0":  # texts before any threshold: the script applies this one, and looks for the best
        given = f"{dev} {folder}/{TEXTS} --na-prob-file {folder}/null_odds.json"
        given += f" --na-prob-thresh {settings.null_threshold}"
    return {f"SQuAD's own script says the same of {best['model']}:": f"python {script} {given}"}


FINETUNE_SQUAD = Recipe(
    name="finetune_squad",
    description=DESCRIPTION,
    settings=Settings,
    conf=CONF,
    preset="small",
    plan=make_plan,
    results=compared,
    tell=tell,
    hints=hints,
    environment=Settings.variables,
    slots=Settings.slots,
    remarks=remarks,
    default_output=default_output,
    examples=(
        "--preset smoke --output /tmp/smoke",
        "--preset small --checkpoint learned/checkpoint_last.pt,shaw/checkpoint_last.pt --train-file train.json.gz "
        "--dev-file dev.json.gz",
        "--preset m1-m4 --checkpoint m4/checkpoint_last.pt",
        "--preset m1-m4-576 --checkpoint m4.clip=256/checkpoint_last.pt --launch torchrun --processes 8",
        "--preset m4m --version 2.0 --checkpoint m4m/checkpoint_last.pt --dry-run",
        "--preset small --max-length 576 --checkpoint learned/checkpoint_last.pt "
        "--pos-enc-args extend=interpolate,extend_to=576",
    ),
    columns=COLUMNS,
    figure="curves.png",
    files=("curves.png", "predictions/", "checkpoints/"),
    plain={"smoke": {}, "m1-m4": {"checkpoint": "MODEL"}},
)

if __name__ == "__main__":
    sys.exit(main(FINETUNE_SQUAD, sys.argv[1:]))
