"""Fine-tune pretrained models on SQuAD; `recipes/finetune_squad/run.sh` starts this program."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from recipes.lib.command import main
from recipes.lib.finetuning.models import in_a_name
from recipes.lib.finetuning.questions.files import SCORED, TEXTS
from recipes.lib.finetuning.questions.report import counted, lengths, tell
from recipes.lib.finetuning.settings import BUILTIN
from recipes.lib.package import figures
from recipes.lib.recipe import Hints, Recipe, compared

from .plan import make_plan
from .settings import CONF, SQUAD, Settings

DESCRIPTION = """\
Fine-tune pretrained masked language models on SQuAD 1.1 or 2.0, whose answers are spans of a text. The models keep the
position encodings of their pretraining. The stages split each question and its text into overlapping windows of subword
pieces, train with fairseq-train and write predictions that SQuAD's own scripts can read. The report shows EM and F1,
computed as in SQuAD's scripts. The report also shows the scores of baselines that need no model and the scores of a
paper."""

LEGEND = """\
EM and F1 are computed as in SQuAD's scripts, in percent. In version 2.0, a question counts as unanswerable if the empty
answer scores more than a threshold above the best span. The column `best F1` uses the threshold with
the highest F1 on the scored questions. The columns EM and F1 use the value of --null-threshold. The column `comparable`
says whether the run and the paper have the same model sizes, questions and training settings. The column `comparable`
ignores the pretraining corpora, because a checkpoint does not name its corpus. The scored checkpoint is
checkpoint_last.pt. The column `out of reach` shows the number of questions that cannot be answered correctly, because
their gold answers are too long or lie in no window. A model beats a baseline if its F1 is higher by more than two
standard errors. Two standard errors are 2 sqrt((p (1 - p) + q (1 - q)) / questions), where p and q are the F1 of the
model and of the baseline. With several seeds, scores are means over the seeds, and sd is the standard deviation of F1.
The column p shows the p-value of Welch's t-test between the F1 of this model and of the first model, after Holm's
correction. For each training run that diverged, the column `diverged` shows the update, the loss and (with several
seeds) the seed. The model of a diverged run is not scored. The row `gold answers` tests the scorer, so its EM and F1
must be 100."""

MAIN = {
    "model": "model",
    "F1": "F1 (%)",
    "sd": "standard deviation over seeds",
    "seeds": "seeds",
    "EM": "EM (%)",
    "paper's F1": "F1 in the paper (%)",
    "paper's EM": "EM in the paper (%)",
    "p": "p",
    "diverged": "diverged",
    "parameters": "parameters",
}
COLUMNS = (
    *("model", "encoding", "EM", "F1", "sd", "seeds", "p", "best F1", "threshold of best F1", "paper's EM"),
    *("paper's F1", "comparable", "beats baselines", "diverged"),
    *("longest window", "questions", "out of reach", "questions of training", "updates", "parameters"),
    *("minutes", "pieces/s"),
)


def remarks(settings: Settings, output: Path) -> list[str]:
    data = output / "data-bin"
    lines = [LEGEND]
    for model in settings.models:
        lines += [f"Prepared questions {model.label}: {counted(data / model.slug)}.", lengths(data / model.slug)]
    paper = {figure.row: figure.printed for figure in figures("M1-M4", table="Section 4.3")}
    if settings.data == SQUAD and settings.version == "1.1":
        means = " and ".join(f"{paper[split]} ({split})" for split in ("training", "development"))
        lines.append(
            f"Huang et al. (2020, section 4.3) report these mean lengths: {means}. Around {paper['over 512']} "
            "exceed 512 pieces."
        )
    return lines


def default_output(settings: Settings) -> str:
    """Return the output folder's name, made of preset, dataset, models, version, length, segment encoding and seed."""
    own = settings.train_file or (settings.data if settings.data not in (SQUAD, BUILTIN) else "")
    name = Path(own).resolve().name.partition(".json")[0] if own else settings.data
    models = in_a_name(settings.checkpoint)
    parts = [settings.preset, name, models, settings.version, settings.max_length, settings.segments, settings.seed]
    return f"finetune_squad/{'.'.join(str(part) for part in parts if part not in ('', 'none'))}"


def hints(settings: Settings, output: Path) -> Hints:
    slugs = {model.label: model.slug for model in settings.models}
    rows = [row for row in compared(settings, output) if row["run"]]
    if not rows:
        return {}
    row = max(rows, key=lambda row: row["F1"])
    best = row["model"]
    folder, dev = output / "predictions" / row["run"], output / "data-bin" / slugs[best] / f"valid.{SCORED}"
    words = ["python", f"evaluate-v{settings.version}.py", str(dev)]
    if settings.version == "2.0":  # the script itself applies our threshold and searches for the best one
        words += [str(folder / TEXTS), "--na-prob-file", str(folder / "null_odds.json")]
        words += ["--na-prob-thresh", str(settings.null_threshold)]
    else:
        words.append(str(folder / "predictions.json"))
    title = f"Compute the scores of {best} with SQuAD's own script; run this command in the script's folder:"
    return {title: shlex.join(words)}


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
    main=MAIN,
    columns=COLUMNS,
    figure="curves.png",
    files=("curves.png", "predictions/", "checkpoints/"),
    plain={"smoke": {}, "m1-m4": {"checkpoint": "MODEL"}},
)

if __name__ == "__main__":
    sys.exit(main(FINETUNE_SQUAD, sys.argv[1:]))
