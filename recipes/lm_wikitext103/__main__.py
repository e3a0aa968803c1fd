"""Define the language model recipe; `recipes/lm_wikitext103/run.sh` starts this module."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

from recipes.lib.command import main
from recipes.lib.encodings import parse
from recipes.lib.flags import PLUGIN
from recipes.lib.planning import flags
from recipes.lib.recipe import Hints, Recipe, Row, compared, from_anywhere
from recipes.lib.stages import Stage, read_json

from .plan import make_plan
from .settings import CONF, Settings

DESCRIPTION = """\
Train word-level language models with Transformer-XL's memory of earlier segments. The recipe prepares the text and
trains a model for each encoding. Afterwards, the recipe computes the perplexity of the test text with several memory
lengths, without training again. All encodings use the same text, so the report can compare their perplexities."""

LEGEND = """\
Perplexity: perplexity per token with the model checkpoint_best.pt. Every token is scored once, including the </s> of
each line. Per word: perplexity per word, computed from the same predictions as the perplexity per token. Paper:
perplexity in Table 3 of the LFHC paper for a model with 16 layers, the same encoding and the same memory; shown only
for WikiText-103's test text. Only models of the paper's size can be compared with the paper. Memory: number of hidden
states of earlier segments that each layer reads. With several seeds, perplexities are means, and sd is the standard
deviation over seeds. The column p shows the p-value of Welch's t-test between the perplexities of the row's encoding
and of the first encoding with the same memory, after Holm's correction. Diverged: update and loss at which a training
run diverged; the model of such a run is not evaluated. Best: whether the encoding has its lowest perplexity with this
memory length. Tokens/s: training speed; other processes on the machine lower it."""

MAIN = {
    "encoding": "encoding",
    "memory": "memory (states)",
    "perplexity": "perplexity per token",
    "sd": "standard deviation over seeds",
    "seeds": "seeds",
    "paper": "perplexity in the paper",
    "p": "p",
    "diverged": "diverged",
    "parameters": "parameters",
}
COLUMNS = (
    *("encoding", "memory", "segment", "perplexity", "sd", "seeds", "p", "per word", "paper", "best"),
    *("diverged", "tokens", "updates", "parameters", "minutes", "tokens/s"),
)


def tell(stage: Stage) -> str:
    """Return the short result that the screen shows after a finished stage."""
    if stage.kind == "prepare":
        return f" {counted(stage.outputs[0])}"
    if stage.kind == "evaluate":
        scores = read_json(stage.outputs[0])
        return f" perplexity {scores['token_ppl']:.2f} per token, {scores['word_ppl']:.2f} per word"
    return ""


def counted(folder: Path) -> str:
    """Return the size of a prepared text. The size is unknown if the user ran fairseq-preprocess directly."""
    if not (folder / "counts.json").is_file():
        return f"{folder.name} (of unknown size, because another program prepared the text)"
    counts = read_json(folder / "counts.json")
    parts = (f"{name} {split['tokens']:,} tokens" for name, split in counts["splits"].items())
    return f"{', '.join(parts)}, {counts['types']:,} types"


def remarks(settings: Settings, output: Path) -> list[str]:
    data = Path(settings.corpus) if settings.prepared else output / "text"
    return [LEGEND, f"Text: {counted(data)}."]


def default_output(settings: Settings) -> str:
    """Return the output folder's name, which contains corpus, architecture, sequence length, memory and seed."""
    corpus = Path(settings.corpus).resolve().name
    return f"lm_wikitext103/{corpus}.{settings.arch}.{settings.length}.{settings.mem_train}.{settings.seed}"


def hints(settings: Settings, output: Path) -> Hints:
    rows = [row for row in compared(settings, output) if row["perplexity"] is not None]
    if not rows:
        return {}
    best = min(rows, key=lambda row: row["perplexity"])
    data = Path(settings.corpus).resolve() if settings.prepared else output / "data-bin"
    words = eval_lm(best, data, output, settings.split, settings.eval_batch)
    if not settings.on_gpu:
        words.append("--cpu")
    checkpoint = output / "checkpoints" / best["checkpoint"] / "checkpoint_best.pt"
    generate = ["python", "-m", "fairseq_posenc", "generate-text", *flags(checkpoint=checkpoint), "--prompt", ""]
    return {
        f"Evaluate {best['encoding']} with fairseq-eval-lm:": from_anywhere(settings, shlex.join(words)),
        f"Let {best['encoding']} write a text, or continue the text after --prompt:": from_anywhere(
            settings, shlex.join(generate)
        ),
    }


def eval_lm(row: Row, data: Path, folder: Path, split: str, streams: int) -> list[str]:
    """Return the fairseq command that evaluates the model of a table row.

    Args:
        row: Row of the table of results in `folder`.
        data: Folder of binary data.
        folder: Folder of the run.
        split: Split to evaluate.
        streams: Number of parallel streams of text in evaluation.
    """
    encoding = parse(row["encoding"])
    command = ["fairseq-eval-lm", str(data), *PLUGIN, "--task", "posenc_lm_memory"]
    command += ["--path", str(folder / "checkpoints" / row["checkpoint"] / "checkpoint_best.pt")]
    command += flags(gen_subset=split, batch_size=streams, eval_mem_length=row["memory"])
    command += flags(eval_segment_length=row["segment"], same_length=bool(row["same length"]))
    if row["options"] != encoding.args:  # the evaluation clamps distances
        command += ["--model-overrides", json.dumps({"pos_enc_args": row["options"]})]
    return command


LM_WIKITEXT103 = Recipe(
    name="lm_wikitext103",
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
        "--preset smoke --pos-enc xl,learned --output /tmp/smoke",
        "--preset small --corpus wikitext-2 --pos-enc 'xl,lfhc[clip=16],learned' --mem-eval 0,150,640",
        "--preset wt103 --corpus wikitext103 --pos-enc xl[biases=tied],gcdf[biases=tied] --precision fp16",
        "--preset wt103-k-shaw --launch torchrun --processes 4 --train.batch-size 15 --batches 4",
        "--preset wt103 --corpus wikitext103 --pos-enc xl --mem-train 150 --mem-eval 150,640 --dry-run",
    ),
    main=MAIN,
    columns=COLUMNS,
    figure="curves.png",
    files=("curves.png", "checkpoints/"),
    plain={"smoke": {}, "wt103": {}},
)

if __name__ == "__main__":
    sys.exit(main(LM_WIKITEXT103, sys.argv[1:]))
