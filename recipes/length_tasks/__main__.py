"""Define the recipe of the length tasks; `recipes/length_tasks/run.sh` starts this module."""

from __future__ import annotations

import sys
from pathlib import Path

from recipes.lib.command import main
from recipes.lib.recipe import Recipe, compared
from recipes.lib.stages import Stage, read_json

from .plan import make_plan
from .settings import CONF, ENCODER, Settings
from .tasks.registry import task

DESCRIPTION = """\
Train small models on tasks such as copying, counting, adding and retrieving, and test them on lengths that occur
in training and on greater lengths. All examples are generated from a random seed, so nothing is downloaded."""

LEGEND = """\
Within: percentage of test examples in which the model predicts all tokens of the output (exact match), for lengths up
to the maximum in training. Beyond: exact match for lengths above the maximum in training (scan-template: for commands
with a phrase that is missing in training). Within and beyond are means over seeds, and sd is the standard deviation of
`beyond` over seeds. Solved: number of training runs whose `beyond` is at least 90 %. The columns `p none` and `p rope`
compare each encoding with `none` and with `rope` on the same task: they show the p-value of Welch's t-test between the
values of `beyond`, after Holm's correction. Every training run has the same number of updates, and its last checkpoint
is scored: nothing is chosen by the test set `beyond`. `-random` in the name of an encoding means that the positions are
drawn at random in training (Ruoss et al. 2023). Diverged: update, loss and seed of each training run that diverged."""

MAIN = {
    "task": "task",
    "encoding": "encoding",
    "within": "within (%)",
    "beyond": "beyond (%)",
    "sd": "standard deviation over seeds",
    "seeds": "seeds",
    "solved": "solved",
    "p none": "p none",
    "p rope": "p rope",
    "diverged": "diverged",
}


def tell(stage: Stage) -> str:
    """Return the short result that the screen shows after a finished stage."""
    if stage.kind != "evaluate":
        return ""
    scores = read_json(stage.outputs[0])
    return f" exact match {scores['within']:.1f} % within, {scores['beyond']:.1f} % beyond"


def remarks(settings: Settings, output: Path) -> list[str]:
    """Return the remarks of the report: what the columns mean, and each task's lengths, source and printed result."""
    sentences = [LEGEND]
    for name in settings.tasks:
        of = task(name)
        lengths = f"examples of up to {settings.longest_of(name)} {of.unit}" if of.longest else "the published split"
        sentences.append(f"{name}: the model is a {of.kind}; it is trained on {lengths} ({of.source}).")
        if of.printed:
            sentences.append(f"For {name}, {of.source} report these values of `beyond`: {of.printed}")
    both = ", ".join(name for name in settings.tasks if task(name).kind == "encoder-decoder")
    decoder_only = [model.label for model in settings.models if model.encoding.stacks == {"decoder"}] if both else []
    return sentences + [
        f"{label}: this encoding works in decoders only, so the encoders of {both} use {ENCODER.label}."
        for label in decoder_only
    ]


LENGTH_TASKS = Recipe(
    name="length_tasks",
    description=DESCRIPTION,
    settings=Settings,
    conf=CONF,
    preset="small",
    plan=make_plan,
    results=compared,
    tell=tell,
    remarks=remarks,
    examples=(
        "--preset smoke",
        "--tasks copy,reverse,addition --pos-enc none,alibi,rope,fire --seeds 1,2,3",
        "--tasks recall --pos-enc rope,rope-random --random-range 512",
        "--tasks copy --longest.copy 20 --tested 1,2,5 --train.max-update 5000",
    ),
    main=MAIN,
    columns=(*MAIN, "updates", "parameters", "minutes"),
    figure="lengths.png",
    files=("lengths.png", "tasks.png"),
)

if __name__ == "__main__":
    sys.exit(main(LENGTH_TASKS, sys.argv[1:]))
