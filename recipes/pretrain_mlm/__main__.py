"""Pretrain masked language models; `recipes/pretrain_mlm/run.sh` starts this program in the right environment."""

from __future__ import annotations

import sys
from pathlib import Path

from recipes.lib.command import main
from recipes.lib.recipe import Hints, Recipe, compared
from recipes.lib.stages import Stage, read_json

from .plan import make_plan
from .settings import CONF, MADE, Settings

DESCRIPTION = """\
Masked language models from raw text: documents to shards of full sentences, fairseq-train with dynamic or whole-word
masks, the loss on held-out documents. With several encodings they share the shards and are compared."""

LEGEND = """\
Loss: bits (and nats) a masked piece of the validation text, the same masks for all, in float32. Left the plateau: the
update from which on the training loss stays half a bit below what the frequencies of pieces alone give. Accuracy: the
part of the masked pieces that is guessed. Pieces/s: in training, with whatever else ran beside it."""

COLUMNS = (
    *("encoding", "loss, bits", "loss, nats", "perplexity", "accuracy", "left the plateau", "updates"),
    *("parameters", "minutes", "pieces/s"),
)


def tell(stage: Stage) -> str:
    """Return a short result of a finished stage for the screen."""
    if stage.kind == "corpus":
        return f" {counted(stage.outputs[0])}"
    if stage.kind == "import":
        report = read_json(stage.outputs[0] / "report.json")
        parts = (f"{name}: {', '.join(report[name]) or 'nothing'}" for name in ("dropped", "made"))
        return f" {'; '.join([*parts, *report['notes']])}"
    if stage.kind == "unigrams":
        return f" frequencies alone: {read_json(stage.outputs[0])['bits']:.2f} bits"
    if stage.kind == "evaluate":
        found = read_json(stage.outputs[0])
        return f" loss {found['bits']:.3f} bits, {found['accuracy']:.1%} of the masked pieces right"
    return ""


def counted(folder: Path) -> str:
    counts = read_json(folder / MADE)["counts"]
    parts = (f"{name} {counts[name]['documents']:,} documents, {counts[name]['pieces']:,} pieces" for name in SPLITS)
    return "; ".join(parts)


SPLITS = ("train", "valid")


def remarks(settings: Settings, output: Path) -> list[str]:
    data = Path(settings.corpus) if settings.prepared else output / "data"
    plateau = read_json(output / "unigrams.json")["bits"]
    told = [LEGEND, f"Text: {counted(data)}. The frequencies of pieces alone give {plateau:.2f} bits."]
    return told + [note for one in settings.encodings for note in started(one.label, output / "imported" / one.slug)]


def started(label: str, folder: Path) -> list[str]:
    """Return a line about the weights that --init-from dropped and added for an encoding; none without the option."""
    if not folder.exists():
        return []
    report = read_json(folder / "report.json")
    dropped = "; ".join(f"{name} ({why})" for name, why in report["dropped"].items()) or "nothing"
    made = "; ".join(f"{name} ({how})" for name, how in report["made"].items()) or "nothing"
    return [" ".join([f"{label} went on from a model. Dropped: {dropped}. Made: {made}.", *report["notes"]])]


def default_output(settings: Settings) -> str:
    """Return a folder name that differs for every corpus, architecture, sequence length and seed."""
    corpus = Path(settings.corpus).resolve().name
    return f"pretrain_mlm/{corpus}.{settings.arch}.{settings.length}.{settings.seed}"


def hints(settings: Settings, output: Path, shown: str) -> Hints:
    best = min(compared(settings, output), key=lambda row: row["loss, bits"])
    encoding = next(one for one in settings.encodings if one.label == best["encoding"])
    export = f"python -m fairseq_posenc export-hf {shown}/checkpoints/{encoding.slug}/checkpoint_last.pt"
    title = f"For plain torch and Hugging Face, {encoding.label} (from the repository's root, .venv active):"
    return {title: f"{export} --output {shown}/exported/{encoding.slug}"}


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
        "--preset small --corpus FOLDER --pos-enc 'learned,t5,shaw[clip=16]'",
        "--preset m4m-small --corpus books_wiki --books BOOKS --tokenizer-path data/raw/gpt2-bpe --pos-enc m4m "
        "--launch torchrun --processes 8 --precision bf16",
        "--preset m1-m4-warm-start --corpus books_wiki --books BOOKS --init-from BERT",
        "--preset diet-english --books BOOKS --executor slurm --prepare.slurm-partition cpu --dry-run",
    ),
    columns=COLUMNS,
    figure="curves.png",
    files=("curves.png", "checkpoints/"),
    plain={"smoke": {}, "m1-m4": {"books": "BOOKS"}},
)

if __name__ == "__main__":
    sys.exit(main(PRETRAIN_MLM, sys.argv[1:]))
