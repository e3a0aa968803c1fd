"""Train question generation; `recipes/question_generation/run.sh` starts this program."""

from __future__ import annotations

import sys
from pathlib import Path

from recipes.lib import problems
from recipes.lib.command import main
from recipes.lib.recipe import Hints, Recipe, compared, from_anywhere
from recipes.lib.stages import Stage, read_json

from .plan import Planner, make_plan
from .settings import CONF, RECORD, Settings

DESCRIPTION = """\
Train models that generate a question from an answer and its context. The encoder can be pretrained or trained from
scratch. The decoder can copy words from the context and uses any position encoding. The recipe prepares the questions,
trains a model for each encoding, and generates questions with checkpoint_best.pt. The report compares the ROUGE-L,
BLEU-4 and chrF of the generated questions with those of two baselines."""

LEGEND = """\
ROUGE-L: F1 in percent between a generated question and the best of its references, over lower-cased words (for Chinese,
characters) including punctuation. Beta 1.2: ROUGE-L with an F-score for beta = 1.2, which gives more weight to recall
and is usual for image captions. Paper: ROUGE-L that Qu et al. 2021 (LFHC and GCDF) report for SQuAD and CMRC 2018 with
pretrained encoders. The paper does not state how it splits text into words. Only runs with the paper's encoders, data
sets and model sizes are comparable with the paper. Distinct: number of different questions divided by the number of
questions. First and last ROUGE-L: ROUGE-L of greedily decoded questions at the first and the last validation during
training. Copy gate: mean probability with which the model copies a word from the source, measured on the validation set
at the best update. Unknown words copied: fraction of the generated pieces that are not in the dictionary. With several
seeds, scores are means over the seeds, and sd is the standard deviation of ROUGE-L. The column p shows the p-value of
Welch's t-test between the ROUGE-L of the row's model and of the first model, after Holm's correction. Diverged: update,
loss and (with several seeds) seed of each training run that diverged; its model is not scored."""

MAIN = {
    "model": "model",
    "ROUGE-L": "ROUGE-L (%)",
    "sd": "standard deviation over seeds",
    "seeds": "seeds",
    "paper": "ROUGE-L in the paper (%)",
    "p": "p",
    "diverged": "diverged",
    "parameters": "parameters",
}
COLUMNS = (
    *("model", "ROUGE-L", "sd", "seeds", "p", "paper", "beta 1.2", "BLEU-4", "chrF", "distinct", "beats baselines"),
    *("diverged", "first ROUGE-L", "last ROUGE-L"),
    *("copy gate", "unknown words copied", "best update", "updates", "parameters", "minutes", "tokens/s"),
    *("signature of BLEU", "signature of chrF"),
)


def tell(stage: Stage) -> str:
    """Return a short result of a finished stage for the screen."""
    if stage.kind == "prepare":
        return f" {counted(stage.outputs[0])}"
    if stage.kind == "score":
        scores = read_json(stage.outputs[1])
        return f" ROUGE-L {100 * scores['rouge_l']:.2f}, BLEU-4 {scores['bleu']:.2f}, distinct {scores['distinct']:.0%}"
    if stage.kind == "baselines":
        scores = read_json(stage.outputs[0])
        return " ROUGE-L " + ", ".join(f"{100 * facts['rouge_l']:.2f} ({name})" for name, facts in scores.items())
    return ""


def counted(folder: Path) -> str:
    """Return the number of questions in a prepared folder, and how bad questions were handled."""
    record = read_json(folder / RECORD)
    parts = (f"{name} {split['items']:,} of {split['given']:,} questions" for name, split in record["splits"].items())
    bad = problems.counted(record["problems"])
    return f"{', '.join(parts)}, {record['dictionary']:,} symbols in the dictionary" + (f"; {bad}" if bad else "")


def remarks(settings: Settings, output: Path) -> list[str]:
    data = Path(settings.dataset) if settings.prepared else output / "data-bin"
    return [LEGEND, f"Questions: {counted(data)}.", "gallery.md shows twenty generated questions and their references."]


def default_output(settings: Settings) -> str:
    """Return the output folder's name, which contains dataset, encoder, architecture and seed."""
    questions, encoder = (Path(word).resolve().name for word in (settings.dataset, settings.encoder))
    return f"question_generation/{questions}.{encoder}.{settings.arch}.{settings.seed}"


def hints(settings: Settings, output: Path) -> Hints:
    rows = [row for row in compared(settings, output) if row["checkpoint"]]
    if not rows:
        return {}
    best = max(rows, key=lambda row: row["ROUGE-L"])
    title = f"Generate questions with {best['model']}, one for each line of FILE:"
    command = Planner(settings, output, str(output)).interactive(best["checkpoint"])
    return {title: from_anywhere(settings, command)}


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
        "--preset paper-cmrc --encoder chinese-roberta-wwm-ext --seeds 1,2",
    ),
    main=MAIN,
    columns=COLUMNS,
    figure="curves.png",
    files=("curves.png", "gallery.md", "questions/", "checkpoints/"),
    plain={"smoke": {}, "paper": {"encoder": "ENCODER"}},
)

if __name__ == "__main__":
    sys.exit(main(QUESTION_GENERATION, sys.argv[1:]))
