"""The translation recipe; `recipes/translation_wmt18/run.sh` calls it in the right environment."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from recipes.lib.command import main
from recipes.lib.recipe import Hints, Recipe, Row
from recipes.lib.stages import Stage

from .plan import Planner, make_plan
from .settings import CONF, Settings

DESCRIPTION = """\
Translation, from raw parallel text to sacreBLEU: subwords, fairseq-train, averaged checkpoints, beam search, scores on
the raw references. With several encodings they share the prepared text and are compared: BLEU with its signature, chrF,
parameters, words per second, and sacrebleu's paired bootstrap against the first."""

COLUMNS = (
    *("encoding", "BLEU", "±", "p", "chrF", "parameters", "words/s, training", "time of a step"),
    *("words/s, translation", "time of translation", "signature of BLEU", "signature of chrF"),
)


def results(settings: Settings, output: Path) -> list[Row]:
    rows: list[Row] = json.loads((output / "comparison.json").read_text(encoding="utf-8"))
    return rows


def tell(stage: Stage) -> str:
    if stage.kind != "score":
        return ""
    found = json.loads(stage.outputs[1].read_text(encoding="utf-8"))
    return f" BLEU {found['bleu']:.1f} {found['signature']}, chrF {found['chrf']:.1f}"


def hints(settings: Settings, output: Path, shown: str) -> Hints:
    """How to translate with what was trained: with the best of the comparison."""
    best = max(results(settings, output), key=lambda row: float(str(row["BLEU"])))
    encoding = next(one for one in settings.encodings if one.label == best["encoding"])
    title = f"Translate raw text, a sentence a line, with {encoding.label} (from the repository's root, .venv active):"
    return {title: Planner(settings, output, shown).interactive(encoding)}


TRANSLATION = Recipe(
    name="translation_wmt18",
    description=DESCRIPTION,
    settings=Settings,
    conf=CONF,
    preset="base",
    plan=make_plan,
    results=results,
    tell=tell,
    hints=hints,
    environment=Settings.variables,
    examples=(
        "--preset smoke --pos-enc none,shaw --output /tmp/smoke",
        "--preset small --corpus FOLDER --source-lang de --target-lang en --pos-enc 'sinusoidal,rope,shaw[clip=16]'",
        "--preset small --corpus FOLDER --subwords fastbpe --pos-enc t5 --seed 2 --output results/t5-2",
        "--launch torchrun --processes 8 --batches 8 --precision bf16 --pos-enc rope --dry-run",
        "--stage train:shaw --stop-stage score:shaw --pos-enc none,shaw --preset small --corpus FOLDER",
    ),
    columns=COLUMNS,
    figure="bleu.png",
    files=("bleu.png", "translations/"),
)

if __name__ == "__main__":
    sys.exit(main(TRANSLATION, sys.argv[1:]))
