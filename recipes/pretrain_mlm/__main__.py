"""Pretrain masked language models; `recipes/pretrain_mlm/run.sh` starts this program."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from recipes.lib.command import main
from recipes.lib.recipe import Hints, Recipe, compared, from_anywhere
from recipes.lib.stages import Stage, read_json

from .plan import make_plan
from .settings import CONF, RECORD, Settings

DESCRIPTION = """\
Pretrain masked language models from raw text. The recipe prepares shards of full sentences, trains with dynamic or
whole-word masking, and reports the loss on held-out documents. All encodings are trained on the same shards and then
compared."""

LEGEND = """\
Loss: cross-entropy per masked subword piece of the validation text, in bits and in nats. All models predict the same
masked pieces, in float32. Left the plateau: first update after which the training loss stays at least half a bit below
the unigram loss (the loss of a model that only knows the frequencies of pieces). Accuracy: fraction of the masked
pieces that the model predicts correctly. Training loss: last loss in the training log, which is computed with dropout.
Paper: training loss in section 5.2 of the M4M paper, which does not state the unit. Section 5.2 reports three models:
one without positions, one with positions within sentences (both after 500,000 updates), and RoBERTa-base. With several
seeds, losses, perplexity and accuracy are means over the seeds, and sd is the standard deviation of the loss in bits.
The column p shows the p-value of Welch's t-test between the losses of the row's encoding and of the first encoding,
after Holm's correction. Diverged: update, loss and (with several seeds) seed of each training run that diverged; its
model is not evaluated. Pieces/s: training speed; other processes on the machine lower it."""

MAIN = {
    "encoding": "encoding",
    "loss, bits": "loss (bits per masked piece)",
    "sd": "standard deviation over seeds",
    "seeds": "seeds",
    "training loss, nats": "training loss (nats)",
    "paper": "training loss in the paper",
    "p": "p",
    "diverged": "diverged",
    "parameters": "parameters",
}
COLUMNS = (
    *("encoding", "loss, bits", "sd", "seeds", "p", "loss, nats", "training loss, nats", "paper"),
    *("perplexity", "accuracy"),
    *("left the plateau", "diverged", "updates", "parameters", "minutes", "pieces/s"),
)


def tell(stage: Stage) -> str:
    """Return the short result that the screen shows after a finished stage."""
    if stage.kind == "corpus":
        return f" {counted(stage.outputs[0])}"
    if stage.kind == "import":
        report = read_json(stage.outputs[0] / "report.json")
        names = {"dropped": "dropped weights", "made": "new weights"}
        parts = (f"{text}: {', '.join(report[name]) or 'none'}" for name, text in names.items())
        return f" {'; '.join([*parts, *report['notes']])}"
    if stage.kind == "unigrams":
        return f" loss of a model that only knows piece frequencies: {read_json(stage.outputs[0])['bits']:.2f} bits"
    if stage.kind == "evaluate":
        scores = read_json(stage.outputs[0])
        return f" loss {scores['bits']:.3f} bits, accuracy {scores['accuracy']:.1%} on masked pieces"
    return ""


def counted(folder: Path) -> str:
    """Return the number of documents and pieces of a prepared corpus."""
    counts = read_json(folder / RECORD)["counts"]
    parts = (f"{name} {counts[name]['documents']:,} documents, {counts[name]['pieces']:,} pieces" for name in SPLITS)
    return "; ".join(parts)


SPLITS = ("train", "valid")


def remarks(settings: Settings, output: Path) -> list[str]:
    data = Path(settings.corpus) if settings.prepared else output / "data"
    plateau = read_json(output / "unigrams.json")["bits"]
    plateau_line = f"A model that only knows the frequencies of pieces has a loss of {plateau:.2f} bits."
    lines = [LEGEND, f"Text: {counted(data)}. {plateau_line}"]
    for encoding in settings.encodings:
        lines += started(encoding.label, output / "imported" / encoding.slug)
    return lines


def started(label: str, folder: Path) -> list[str]:
    """Return a list with a line about the dropped and the new weights, or an empty list if nothing was imported."""
    if not folder.exists():
        return []
    report = read_json(folder / "report.json")
    dropped = "; ".join(f"{name} ({why})" for name, why in report["dropped"].items()) or "none"
    new = "; ".join(f"{name} ({how})" for name, how in report["made"].items()) or "none"
    first = f"{label} started from the pretrained model. Dropped weights: {dropped}. New weights: {new}."
    return [" ".join([first, *report["notes"]])]


def default_output(settings: Settings) -> str:
    """Return the output folder's name, which contains corpus, architecture, sequence length and seed."""
    corpus = Path(settings.corpus).resolve().name
    return f"pretrain_mlm/{corpus}.{settings.arch}.{settings.length}.{settings.seed}"


def hints(settings: Settings, output: Path) -> Hints:
    rows = [row for row in compared(settings, output) if row["loss, bits"] is not None]
    if not rows:
        return {}
    best = min(rows, key=lambda row: row["loss, bits"])
    slug = best["checkpoints"][0]
    export = ["python", "-m", "fairseq_posenc", "export-hf", str(output / "checkpoints" / slug / "checkpoint_last.pt")]
    export += ["--output", str(output / "exported" / slug)]
    title = f"Export {best['encoding']} for PyTorch and Hugging Face:"
    return {title: from_anywhere(settings, shlex.join(export))}


PRETRAIN_MLM = Recipe(
    name="pretrain_mlm",
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
        "--preset smoke --pos-enc none,shaw --output /tmp/smoke",
        "--preset small --corpus DIR --pos-enc 'learned,t5,shaw[clip=16]'",
        "--preset m4m-small --corpus books_wiki --books BOOKS --tokenizer-path data/raw/gpt2-bpe --pos-enc m4m "
        "--launch torchrun --processes 8 --precision bf16",
        "--preset m1-m4-warm-start --corpus books_wiki --books BOOKS --init-from BERT",
        "--preset diet-english --books BOOKS --executor slurm --prepare.slurm-partition cpu --dry-run",
    ),
    main=MAIN,
    columns=COLUMNS,
    figure="curves.png",
    files=("curves.png", "checkpoints/"),
    plain={"smoke": {}, "m1-m4": {"books": "BOOKS"}},
)

if __name__ == "__main__":
    sys.exit(main(PRETRAIN_MLM, sys.argv[1:]))
