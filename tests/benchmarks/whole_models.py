"""Train whole models with fairseq-train on random text, and report words per second, peak memory and loss.

    python tests/benchmarks/whole_models.py --device cuda --compile 8 --output results/models
    python tests/benchmarks/whole_models.py --tasks translation --models stock none 'shaw[clip=64]'

`stock` is fairseq's own model. The models are the base sizes on a GPU (bfloat16) and tiny ones on a CPU, where the
command only shows that everything works. The words per second are the median after the first third of the updates,
because torch compiles in the first updates. A run that was stopped goes on where it stopped.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import io
import json
import logging
import os
import re
import statistics
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # because this file is a script, too

import torch

from tests.benchmarks.results import Results, parsed, parser
from tests.benchmarks.steps import checked

ROOT = Path(__file__).resolve().parents[2]
MODELS = ("stock", "none", "shaw", "shaw[clip=64]", "m4[clip=64]", "t5", "rope", "m3", "deberta")
KEYS, COLUMNS = ("task", "model", "updates"), ("task", "model", "words/s", "relative", "peak GiB", "loss", "path")
WORDS, LINES = 30_000, 6_000
COMMON = """--optimizer adam --lr 1e-4 --lr-scheduler fixed --clip-norm 1.0 --seed 1 --num-workers 0 --log-format json
    --disable-validation --no-progress-bar""".split()


TASKS: dict[str, dict[str, str]] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def arguments(task: Mapping[str, str], model: str, data: Path, on_gpu: bool) -> list[str]:
    """Return the arguments of fairseq-train for a model."""
    flags = f"{task['flags']} {task['base' if on_gpu else 'tiny']} {'--bf16' if on_gpu else '--cpu'}"
    if model == "stock":
        return [str(data), "--arch", task["stock"], *f"{task['task']} {flags}".split(), *COMMON]
    words = f"{task.get('task_of_ours', task['task'])} {flags}".split()
    return [str(data), "--arch", task["ours"], *words, *COMMON, "--pos-enc", model]


def main(argv: Sequence[str] | None = None) -> int:
    """Train the models, and print a table or JSON."""
    args = _parsed(argv)
    results = Results(args.output, "models", args.device, KEYS)
    rows = [dict(zip(KEYS, (task, model, args.updates), strict=True)) for task in args.tasks for model in args.models]
    plan = [row for row in rows if not results.has(row)]
    if args.compile:
        with ThreadPoolExecutor(args.compile) as pool:
            list(pool.map(partial(compile_first, args.device), [row for row in plan if row["model"] != "stock"]))
    with tempfile.TemporaryDirectory() as temporary:
        data = write_texts(Path(temporary))
        for row in plan:
            print(f"{row['task']} {row['model']}", file=sys.stderr, flush=True)
            results.add({**row, **trained(row, data, on_gpu=args.device == "cuda")})
    stock = {row["task"]: row["words/s"] for row in results.rows if row["model"] == "stock"}
    for row in results.rows:
        base = stock.get(row["task"])
        row["relative"] = row["words/s"] / base if base and row["words/s"] else None
    results.show(COLUMNS, args.json)
    problems = [f"{row['task']} {row['model']}: {row['error']}" for row in results.rows if row["error"]]
    print(*problems, sep="\n", end="\n" * bool(problems), file=sys.stderr)
    return int(bool(problems))


def _parsed(argv: Sequence[str] | None) -> argparse.Namespace:
    command = parser(__doc__)
    add = command.add_argument
    add("--tasks", nargs="+", choices=tuple(TASKS), default=list(TASKS), help="Kinds of models. Default: all.")
    add("--models", nargs="+", metavar="NAME", default=list(MODELS), help=f"Default: {' '.join(MODELS)}.")
    add("--updates", type=int, metavar="N", help="Updates of each model. Default: 90 on a GPU, 6 on a CPU.")
    args = parsed(command, argv)
    args.updates = args.updates or (90 if args.device == "cuda" else 6)
    try:
        args.models = [model if model == "stock" else checked(model, "--models") for model in args.models]
    except ValueError as error:
        command.error(str(error))
    return args


def write_texts(folder: Path) -> Path:
    """Write random texts as fairseq-preprocess does: pairs of sentences of many lengths, and one text."""
    from fairseq.data import Dictionary
    from fairseq.data.indexed_dataset import make_builder

    dictionary = Dictionary()
    for number in range(WORDS):
        dictionary.add_symbol(f"w{number}", n=WORDS - number)
    for name in ("dict.txt", "dict.a.txt", "dict.b.txt"):
        dictionary.save(str(folder / name))
    random = torch.Generator().manual_seed(0)
    lengths = (torch.randn(LINES, generator=random).mul(0.6).add(3.2).exp().long().clamp(2, 200)).tolist()
    for name in ("train", "train.a-b.a", "train.a-b.b"):
        builder = make_builder(str(folder / f"{name}.bin"), "mmap", len(dictionary))
        for length in lengths:
            words = torch.randint(4, len(dictionary), (length,), generator=random)
            builder.add_item(torch.cat([words, torch.tensor([dictionary.eos()])]).int())
        builder.finalize(str(folder / f"{name}.idx"))
    return folder


def compile_first(device: str, row: Mapping[str, Any]) -> None:
    """Train a model for a few updates in a process, which fills torch's cache."""
    words = ["--device", device, "--tasks", row["task"], "--models", row["model"], "--updates", "12"]
    subprocess.run([sys.executable, __file__, *words], check=False, stdout=subprocess.DEVNULL)


def trained(row: Mapping[str, Any], data: Path, *, on_gpu: bool) -> dict[str, Any]:
    """Train a model in this process, and return what was measured."""
    torch._dynamo.reset()
    gc.collect()
    if on_gpu:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    updates = row["updates"]
    words = [*arguments(TASKS[row["task"]], row["model"], data, on_gpu), "--user-dir", str(ROOT / "fairseq_posenc")]
    words += ["--no-save", "--max-update", str(updates), "--log-interval", str(max(1, updates // 9))]
    log, error = logged(words)
    lines = [json.loads(line) for line in re.findall(r'\{"epoch".*\}', log)]
    lines = [line for line in lines if "wps" in line and "num_updates" in line]
    speeds = [float(line["wps"]) for line in lines if int(line["num_updates"]) > updates // 3]
    return {
        "words/s": statistics.median(speeds) if speeds else None,
        "peak GiB": torch.cuda.max_memory_allocated() / 2**30 if on_gpu else None,
        "loss": float(lines[-1]["loss"]) if lines else None,
        "path": next(iter(re.findall(r"attention path of .*?: (.*)", log)), None),
        "error": error,
    }


def logged(words: list[str]) -> tuple[str, str]:
    """Run fairseq-train in this process, and return what it logs and its error or an empty text."""
    from fairseq_cli import train

    log, root = io.StringIO(), logging.getLogger()
    handler, level, error = logging.StreamHandler(log), root.level, ""
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    try:
        with mock.patch.object(sys, "argv", ["fairseq-train", *words]), contextlib.redirect_stdout(sys.stderr):
            train.cli_main()
    except (Exception, SystemExit) as stop:  # noqa: BLE001 - it is the result
        error = f"{type(stop).__name__}: {stop}"
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
    return log.getvalue(), error


if __name__ == "__main__":
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
    sys.exit(main())
