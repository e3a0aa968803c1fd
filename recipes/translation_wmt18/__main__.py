"""The translation recipe; `recipes/translation_wmt18/run.sh` calls it in the right environment."""

from __future__ import annotations

import sys
from pathlib import Path

from recipes.lib.command import main
from recipes.lib.recipe import Hints, Recipe, compared
from recipes.lib.stages import Stage, read_json

from .plan import Planner, make_plan
from .settings import CONF, SPLITS, Settings

DESCRIPTION = """\
Translation, from raw parallel text to sacreBLEU: subwords, fairseq-train, averaged checkpoints, beam search, scores on
the raw references. With several encodings they share the prepared text and are compared: BLEU with its signature, chrF,
parameters, words per second, and sacrebleu's paired bootstrap against the first."""

LEGEND = """\
±: half of BLEU's 95 % bootstrap interval. p: paired bootstrap of BLEU against the first row. Parameters: of the whole
model. Words/s: source words of one validation batch, all models in turns in one process on one device in float32; time:
against the first row, the median of the turns."""

COLUMNS = (
    *("encoding", "BLEU", "±", "p", "chrF", "parameters", "words/s, training", "time of a step"),
    *("words/s, translation", "time of translation", "signature of BLEU", "signature of chrF"),
)


def tell(stage: Stage) -> str:
    """What a finished stage found."""
    if stage.kind in ("corpus", "subwords"):
        return f" {counted(stage.outputs[0])}"
    if stage.kind == "score":
        found = read_json(stage.outputs[1])
        return f" BLEU {found['bleu']:.1f} {found['signature']}, chrF {found['chrf']:.1f}"
    return ""


def counted(folder: Path) -> str:
    counts = read_json(folder / "counts.json")
    sizes = ", ".join(f"{split} {counts[split]['pairs']:,}" for split in SPLITS)
    left, why = counts["train"]["left out"], counts["train"].get("because", "over-long or without a piece")
    return f"pairs: {sizes}" + (f"; {left:,} left out of training ({why})" if left else "")


def remarks(settings: Settings, output: Path) -> list[str]:
    return [LEGEND, f"Text: {counted(output / 'raw')}. In subwords: {counted(output / 'subwords')}."]


def default_output(settings: Settings) -> str:
    """Another corpus, direction or size is another experiment."""
    corpus = Path(settings.corpus).resolve().name
    return f"translation_wmt18/{corpus}.{settings.source_lang}-{settings.target_lang}.{settings.arch}.{settings.seed}"


def hints(settings: Settings, output: Path, shown: str) -> Hints:
    """How to translate with what was trained: with the best of the comparison."""
    best = max(compared(settings, output), key=lambda row: float(str(row["BLEU"])))
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
    results=compared,
    tell=tell,
    hints=hints,
    environment=Settings.variables,
    slots=Settings.slots,
    remarks=remarks,
    default_output=default_output,
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
