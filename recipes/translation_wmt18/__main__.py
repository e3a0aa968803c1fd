"""Define the translation recipe; `recipes/translation_wmt18/run.sh` starts this module."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from recipes.lib.command import main
from recipes.lib.recipe import ROOT, Hints, Recipe, Row, compared
from recipes.lib.report import table
from recipes.lib.stages import Stage, read_json

from .layout import Place
from .plan import Planner, make_plan
from .published import differences
from .settings import CONF, SPLITS, Settings

DESCRIPTION = """\
Train translation models from raw parallel text and score them with sacreBLEU. The stages learn subwords, train with
fairseq-train and average checkpoints. Later stages translate with beam search, and score the translations against the
raw references. All encodings use the same prepared text and are compared with the first encoding. The report shows BLEU
with its signature and sacrebleu's paired bootstrap test, chrF, parameters, words per second and memory."""

LEGEND = """\
± is half the width of BLEU's 95 % bootstrap interval. p is the p-value of the paired bootstrap test between the BLEU of
a row and that of the first row of the same direction. With several seeds, BLEU, ± and chrF are means, sd is the
standard deviation of BLEU, and p is the largest p-value. The column `diverged` shows the update and loss at which
training runs diverged; the models of these runs are not scored. Parameters is the number of parameters of the whole
model. Words/s is the number of source words per second for one validation batch, in float32 on one device. The models
take turns in one process while their time is measured. Times are relative to the model of the first row; the table
shows medians over all turns of a model. While time and memory are measured, all models generate translations of the
same length (the mean length of the references); otherwise a model that ends its sentences earlier would look faster. MB
is the memory of a process that translates a validation batch, including the model: resident memory on a CPU, allocated
memory on a GPU. The column `memory of translation` shows the MB of a row divided by the MB of the first row."""

MAIN = {
    "direction": "direction",
    "encoding": "encoding",
    "BLEU": "sacreBLEU",
    "sd": "standard deviation over seeds",
    "seeds": "seeds",
    "paper": "BLEU in the paper",
    "p": "p",
    "diverged": "diverged",
    "parameters": "parameters",
}
COLUMNS = (
    *("direction", "encoding", "BLEU", "sd", "seeds", "paper", "±", "p", "chrF", "diverged", "parameters"),
    *("words/s, training", "time of a step", "words/s, translation", "time of translation"),
    *("MB, translation", "memory of translation", "signature of BLEU", "signature of chrF"),
)


def tell(stage: Stage) -> str:
    """Return a short result of a finished stage, which the screen shows."""
    if stage.kind in ("corpus", "subwords"):
        return f" {counted(stage.outputs[0])}"
    if stage.kind == "score":
        scores = read_json(stage.outputs[1])
        if scores["bleu"] is None:
            return f" no score, because the model refused {len(scores['refused']):,} sentences"
        return f" BLEU {scores['bleu']:.1f}, chrF {scores['chrf']:.1f} ({scores['signature']})"
    return ""


def counted(folder: Path) -> str:
    """Return how many pairs a prepared folder has, and how many were left out and why."""
    counts = read_json(folder / "counts.json")
    parts = ["pairs: " + ", ".join(f"{split} {counts[split]['pairs']:,}" for split in SPLITS)]
    chosen = [(split, counts[split]) for split in SPLITS if counts[split].get("longer")]
    parts += [f"{count['longer']:,} {split} pairs longer than {count['longest']} words" for split, count in chosen]
    left, why = counts["train"]["left out"], counts["train"].get("because", "too long or without a piece")
    parts += [f"{left:,} training pairs left out ({why})"] if left else []
    return "; ".join(parts)


def remarks(settings: Settings, output: Path) -> list[str]:
    planner = Planner(settings, output, "")
    lines = [LEGEND, paper_note(settings)]
    for text in planner.texts.values():
        raw, subwords = (text.place.path(name) for name in ("raw", "subwords"))
        pair = f" ({text.direction.label})" if text.place.inner else ""
        lines.append(f"Text{pair}: {counted(raw)}. After encoding in subwords: {counted(subwords)}.")
    for models in planner.models.values() if settings.length_bounds else ():
        lines += by_length(models.direction.label, models.place)
    return lines


def paper_note(settings: Settings) -> str:
    source = "The column `paper` has BLEU on newstest2018 from Table 4 of Chen et al. 2021 (DIET)."
    if not (departs := differences(settings)):
        return source
    if "text" in departs:
        source = "Chen et al. 2021 (DIET) use other text than this run, so the column `paper` is empty."
    return f"{source} This run cannot be compared with the paper, because it differs in: {', '.join(departs)}."


def by_length(direction: str, place: Place) -> list[str]:
    """Return the report's lines about BLEU by source length for a direction: a table and a figure."""
    lengths = read_json(place.path("lengths.json"))
    rows: list[Row] = [
        {"BLEU by source length in words": name}
        | {f"{row['words']} (n = {row['sentences']:,})": shown(row) for row in rows}
        for name, rows in lengths["systems"].items()
    ]
    reasons = [f"`{name}` refused sentences, because it {reason}." for name, reason in lengths["reasons"].items()]
    figure = "/".join([*([place.inner] if place.inner else []), "lengths.png"])
    return [
        f"BLEU of {direction} by length (± half the width of the 95 % bootstrap interval):",
        table(rows),
        *reasons,
        f"![BLEU by length]({figure})",
    ]


def shown(row: Row) -> str:
    if row["bleu"] is None:
        return f"{row['refused']} refused"
    return f"{row['bleu']:.1f}" + ("" if row["±"] is None else f" ± {row['±']:.1f}")


def default_output(settings: Settings) -> str:
    """Return the output folder's name, which contains corpus, direction, architecture, maximum length and seed."""
    corpus = Path(settings.corpus).resolve().name
    directions = "+".join(direction.label for direction in settings.directions)
    longest = f".{settings.train_longest_words}-words" if settings.train_longest_words else ""
    return f"translation_wmt18/{corpus}.{directions}.{settings.arch}{longest}.{settings.seed}"


def best(settings: Settings, output: Path, direction: str) -> str | None:
    """Return the encoding with the highest BLEU, or None if no encoding has a score."""
    own = {encoding.label for encoding in settings.encodings}
    rows = [row for row in compared(settings, output) if row["direction"] == direction and row["encoding"] in own]
    scored = {row["encoding"]: row["BLEU"] for row in rows if row["BLEU"] is not None}
    return max(scored, key=lambda label: scored[label]) if scored else None


def trained_as(settings: Settings, output: Path, direction: str, label: str) -> str:
    """Return the name of an encoding's first model that did not diverge."""
    rows = [row for row in compared(settings, output) if (row["direction"], row["encoding"]) == (direction, label)]
    return str(rows[0]["checkpoint"])


def hints(settings: Settings, output: Path) -> Hints:
    """Return the commands that translate with the best model of each direction."""
    commands: Hints = {}
    planner = Planner(settings, output, str(output))
    for direction, models in planner.models.items():
        if (label := best(settings, output, direction)) is None:
            continue
        note = f" ({direction})" if models.place.inner else ""
        slug = trained_as(settings, output, direction, label)  # the first model may have diverged
        seed = next(variant.seed for variant in settings.variants if variant.slug == slug)
        chosen = [*(["--direction", direction] if note else []), "--pos-enc", label]
        chosen += ["--seed", str(seed)] if seed != settings.variants[0].seed else []
        script = shlex.join([str(ROOT / "recipes/translation_wmt18/translate.sh"), "--run", str(output), *chosen])
        title = f"Translate raw text with {label}{note}, one sentence per line:"
        commands[title] = f"{script} < FILE"
    return commands


TRANSLATION = Recipe(
    name="translation_wmt18",
    description=DESCRIPTION,
    settings=Settings,
    conf=CONF,
    preset="base",
    plan=make_plan,
    results=compared,
    tell=tell,
    hints=hints,
    remarks=remarks,
    default_output=default_output,
    examples=(
        "--preset smoke --pos-enc none,shaw --output /tmp/smoke",
        "--preset small --corpus DIR --direction de-en --pos-enc 'sinusoidal,rope,shaw[clip=16],rope/t5'",
        "--preset small --corpus DIR --subwords fastbpe --pos-enc t5 --seed 2 --output results/t5-2",
        "--preset short --corpus DIR --seeds 1,2 --output results/en-de",
        "--preset short --corpus DIR --direction de-en,en-cs,cs-en --pos-enc sinusoidal,rope --beside results/en-de",
        "--preset short --corpus DIR --pos-enc none,rope --train.max-update 200 --train.warmup-updates 100",
        "--preset lengths --corpus DIR --train-longest-words 12",
        "--preset table4-shaw --direction en-de,de-en,en-cs,cs-en --launch torchrun --processes 8 --dry-run",
        "--launch torchrun --processes 8 --batches 8 --precision bf16 --pos-enc rope --dry-run",
        "--stage train:shaw --stop-stage score:shaw --pos-enc none,shaw --preset small --corpus DIR",
    ),
    main=MAIN,
    columns=COLUMNS,
    forms=dict.fromkeys(("BLEU", "sd", "paper", "±", "chrF"), ".2f"),
    figure="bleu.png",
    files=("bleu.png", "translations/"),
    plain={"smoke": {}, "table4-shaw": {}},
)

if __name__ == "__main__":
    sys.exit(main(TRANSLATION, sys.argv[1:]))
