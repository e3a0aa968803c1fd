"""Train question generation; `recipes/question_generation/run.sh` starts this program in the right environment."""

from __future__ import annotations

import sys
from pathlib import Path

from recipes.lib import problems
from recipes.lib.command import main
from recipes.lib.recipe import Hints, Recipe, compared
from recipes.lib.stages import Stage, read_json

from .plan import Planner, make_plan
from .settings import CONF, RECORD, Settings

DESCRIPTION = """\
Questions from an answer and its context: a pretrained or new encoder, and a decoder that copies words, with any
position encoding in its self-attention. Questions to pieces, fairseq-train, fairseq-generate, ROUGE-L, BLEU-4 and chrF
of the sources' questions, beside outputs that need no model. Encodings share the questions and are compared."""

LEGEND = """\
ROUGE-L: F1 of words (characters of Chinese, marks too), in lower case, in percent, of a source's question with the best
of its references; beta 1.2: as the captions' evaluation has it. Paper (SQuAD and CMRC 2018): of LFHC and GCDF, with a
pretrained encoder on all of them, its words not stated; other encoders, questions and sizes are not comparable with it.
Distinct: the share of different questions. First and last ROUGE-L: of greedy questions in validation while it was
trained. Copy gate: 1 - g, the mean share of copying in validation at the best update. Unknown words copied: the share
of pieces that are not in the dictionary. Evaluated is checkpoint_best.pt, of the best update."""

COLUMNS = (
    *("model", "ROUGE-L", "paper", "beta 1.2", "BLEU-4", "chrF", "distinct", "beats baselines", "first ROUGE-L"),
    *("last ROUGE-L", "copy gate", "unknown words copied", "best update", "updates", "minutes", "tokens/s"),
    *("signature of BLEU", "signature of chrF"),
)


def tell(stage: Stage) -> str:
    """Return a short result of a finished stage for the screen."""
    if stage.kind == "prepare":
        return f" {counted(stage.outputs[0])}"
    if stage.kind == "score":
        found = read_json(stage.outputs[1])
        return f" ROUGE-L {100 * found['rouge_l']:.2f}, BLEU-4 {found['bleu']:.2f}, distinct {found['distinct']:.0%}"
    if stage.kind == "baselines":
        found = read_json(stage.outputs[0])
        return " ROUGE-L " + ", ".join(f"{100 * one['rouge_l']:.2f} ({name})" for name, one in found.items())
    return ""


def counted(folder: Path) -> str:
    record = read_json(folder / RECORD)
    parts = (f"{name} {one['items']:,} of {one['given']:,} questions" for name, one in record["splits"].items())
    wrong = problems.counted(record["problems"])
    return f"{', '.join(parts)}, {record['dictionary']:,} symbols" + (f"; {wrong}" if wrong else "")


def remarks(settings: Settings, output: Path) -> list[str]:
    data = Path(settings.dataset) if settings.prepared else output / "data-bin"
    return [LEGEND, f"Questions: {counted(data)}.", "Twenty generated questions beside their references: gallery.md."]


def default_output(settings: Settings) -> str:
    """Return a folder name that differs for every dataset, encoder, architecture and seed."""
    questions, encoder = (Path(word).resolve().name for word in (settings.dataset, settings.encoder))
    return f"question_generation/{questions}.{encoder}.{settings.arch}.{settings.seed}"


def hints(settings: Settings, output: Path, shown: str) -> Hints:
    trained = {variant.label: variant for variant in settings.variants}
    rows = [row for row in compared(settings, output) if row["model"] in trained]
    best = max(rows, key=lambda row: row["ROUGE-L"])
    title = f"Ask with {best['model']} (from the repository's root, .venv active):"
    return {title: Planner(settings, output, shown).interactive(trained[best["model"]])}


QUESTION_GENERATION = Recipe(
    name="question_generation",
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
        "--preset smoke --pos-enc shaw,t5 --output /tmp/smoke",
        "--preset small --dataset nqg/ --pos-enc 'xl,gcdf,shaw[clip=8,share=none],lfhc[clip=2],t5' --copy both",
        "--preset small --dataset squad-v1.1/ --train-set du-test-v1.1.json.gz --valid-set dev-v1.1.part1.json.gz",
        "--preset paper --dataset squad --encoder bert-base-cased --pos-enc gcdf --dry-run",
        "--preset paper-cmrc --encoder chinese-roberta-wwm-ext --seed 2",
    ),
    columns=COLUMNS,
    figure="curves.png",
    files=("curves.png", "gallery.md", "questions/", "checkpoints/"),
    plain={"smoke": {}, "paper": {"encoder": "ENCODER"}},
)

if __name__ == "__main__":
    sys.exit(main(QUESTION_GENERATION, sys.argv[1:]))
