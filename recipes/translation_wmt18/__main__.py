"""Define the translation recipe; `recipes/translation_wmt18/run.sh` calls this module in the right environment."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from recipes.lib.command import main
from recipes.lib.recipe import Hints, Recipe, Row, compared
from recipes.lib.report import table
from recipes.lib.stages import Stage, read_json

from .layout import Place
from .plan import Planner, make_plan
from .published import differences
from .settings import CONF, SPLITS, Settings

DESCRIPTION = """\
Translation, from raw parallel text to sacreBLEU: subwords, fairseq-train, averaged checkpoints, beam search, scores on
the raw references. With several encodings they share the prepared text and are compared: BLEU with its signature, chrF,
parameters, words per second, memory, and sacrebleu's paired bootstrap against the first."""

LEGEND = """\
±: half of BLEU's 95 % bootstrap interval. p: paired bootstrap of BLEU against the first row of the direction. Of
several seeds: BLEU, ± and chrF are means, sd the standard deviation of BLEU, p the largest. Parameters: of the model.
Words/s: source words of one validation batch, all models in turns in one process on one device in float32; time:
against the first row, the median of the turns. All translate to one length, the references' mean, in as many steps: in
free translation a model that ends its sentences earlier takes less time. MB: of a process that translates this batch
(resident; on a GPU: allocated), model included; memory: against the first row."""

COLUMNS = (
    *("direction", "encoding", "BLEU", "sd", "paper", "±", "p", "chrF", "parameters"),
    *("words/s, training", "time of a step", "words/s, translation", "time of translation"),
    *("MB, translation", "memory of translation", "signature of BLEU", "signature of chrF"),
)


def tell(stage: Stage) -> str:
    """Return the result of a finished stage for its line on the screen."""
    if stage.kind in ("corpus", "subwords"):
        return f" {counted(stage.outputs[0])}"
    if stage.kind == "score":
        found = read_json(stage.outputs[1])
        if found["bleu"] is None:
            return f" no score: {len(found['refused']):,} sentences were refused"
        return f" BLEU {found['bleu']:.1f} {found['signature']}, chrF {found['chrf']:.1f}"
    return ""


def counted(folder: Path) -> str:
    counts = read_json(folder / "counts.json")
    parts = ["pairs: " + ", ".join(f"{split} {counts[split]['pairs']:,}" for split in SPLITS)]
    chosen = [(split, counts[split]) for split in SPLITS if counts[split].get("longer")]
    parts += [f"{one['longer']:,} of {split} longer than {one['longest']} words" for split, one in chosen]
    left, why = counts["train"]["left out"], counts["train"].get("because", "over-long or without a piece")
    parts += [f"{left:,} left out of training ({why})"] if left else []
    return "; ".join(parts)


def remarks(settings: Settings, output: Path) -> list[str]:
    planner = Planner(settings, output, "")
    told = [LEGEND, of_the_paper(settings)]
    for text in planner.texts.values():
        raw, subwords = (text.place.path(name) for name in ("raw", "subwords"))
        pair = f" ({text.direction.label})" if text.place.inner else ""
        told.append(f"Text{pair}: {counted(raw)}. In subwords: {counted(subwords)}.")
    for models in planner.models.values() if settings.length_bounds else ():
        told += by_length(models.direction.label, models.place)
    return told


def of_the_paper(settings: Settings) -> str:
    departs = differences(settings)
    told = "Paper: Table 4 of Chen et al. 2021 (DIET), newstest2018"
    return f"{told}; not comparable with this run, which differs in {', '.join(departs)}." if departs else f"{told}."


def by_length(direction: str, place: Place) -> list[str]:
    """Return the lines of a direction's table of BLEU by length, and of its figure."""
    found = read_json(place.path("lengths.json"))
    rows: list[Row] = [
        {"BLEU by words of the source": name}
        | {f"{row['words']} (n = {row['sentences']:,})": shown(row) for row in rows}
        for name, rows in found["systems"].items()
    ]
    reasons = [f"Refused: `{name}` {reason}." for name, reason in found["reasons"].items()]
    figure = "/".join([*([place.inner] if place.inner else []), "lengths.png"])
    return [f"{direction}, by length:", table(rows), *reasons, f"![BLEU by length]({figure})"]


def shown(row: Row) -> str:
    return f"{row['bleu']:.1f}" if row["bleu"] is not None else f"refused {row['refused']}"


def default_output(settings: Settings) -> str:
    """Return a folder of its own for each corpus, directions, architecture, maximum length and seed."""
    corpus = Path(settings.corpus).resolve().name
    directions = "+".join(one.label for one in settings.directions)
    longest = f".{settings.train_longest_words}-words" if settings.train_longest_words else ""
    return f"translation_wmt18/{corpus}.{directions}.{settings.arch}{longest}.{settings.seed}"


def best(settings: Settings, output: Path, direction: str) -> str | None:
    """Return the encoding with the highest BLEU, or None if no encoding has a score."""
    own = {one.label for one in settings.encodings}
    rows = [row for row in compared(settings, output) if row["direction"] == direction and row["encoding"] in own]
    scored = {row["encoding"]: row["BLEU"] for row in rows if row["BLEU"] is not None}
    return max(scored, key=lambda label: scored[label]) if scored else None


def hints(settings: Settings, output: Path, shown: str) -> Hints:
    """Return the commands that translate with the best model of each direction."""
    found: Hints = {}
    planner = Planner(settings, output, shown)
    for direction, models in planner.models.items():
        if (label := best(settings, output, direction)) is None:
            continue
        way = f" ({direction})" if models.place.inner else ""
        title = f"Translate raw text, a sentence a line, with {label}{way} (from the repository's root, .venv active):"
        variant = next(one for one in models.timed if one.encoding.label == label)
        found[title] = models.served(variant)
        chosen = [*(["--direction", direction] if way else []), "--pos-enc", label]
        script = shlex.join(["recipes/translation_wmt18/translate.sh", "--run", shown, *chosen])
        found[f"The same, every line in its place and those that cannot be translated named{way}:"] = f"{script} < FILE"
    return found


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
        "--preset small --corpus FOLDER --direction de-en --pos-enc 'sinusoidal,rope,shaw[clip=16],rope/t5'",
        "--preset small --corpus FOLDER --subwords fastbpe --pos-enc t5 --seed 2 --output results/t5-2",
        "--preset short --corpus FOLDER --seeds 1,2 --output results/en-de",
        "--preset short --corpus FOLDER --direction de-en,en-cs,cs-en --pos-enc sinusoidal,rope --beside results/en-de",
        "--preset lengths --corpus FOLDER --train-longest-words 12",
        "--preset table4-shaw --direction en-de,de-en,en-cs,cs-en --launch torchrun --processes 8 --dry-run",
        "--launch torchrun --processes 8 --batches 8 --precision bf16 --pos-enc rope --dry-run",
        "--stage train:shaw --stop-stage score:shaw --pos-enc none,shaw --preset small --corpus FOLDER",
    ),
    columns=COLUMNS,
    forms=dict.fromkeys(("BLEU", "sd", "paper", "±", "chrF"), ".2f"),
    figure="bleu.png",
    files=("bleu.png", "translations/"),
    plain={"smoke": {}, "table4-shaw": {}},
)

if __name__ == "__main__":
    sys.exit(main(TRANSLATION, sys.argv[1:]))
