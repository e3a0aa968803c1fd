"""Provide a tiny corpus, and call fairseq's commands in this process, because a new process costs seconds."""

from __future__ import annotations

import contextlib
import copy
import functools
import gc
import importlib
import io
import multiprocessing
import os
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterable, Sequence
from multiprocessing.process import BaseProcess
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any
from unittest import mock

import fairseq.dataclass.utils
import fairseq_cli.train
import torch
from fairseq import checkpoint_utils, options, tasks, utils
from fairseq.data import Dictionary
from fairseq.data.indexed_dataset import make_builder
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.distributed import utils as distributed
from fairseq.logging import metrics
from fairseq.trainer import Trainer
from hydra import compose
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import DictConfig, OmegaConf, ValueNode
from torch import nn
from torch.utils.data.dataloader import _MultiProcessingDataLoaderIter

from fairseq_posenc.compat.batches import stop_reading

ROOT = Path(__file__).resolve().parents[2]
PLUGIN = ROOT / "fairseq_posenc"

WORDS = 12
PAD = 1
SIZES = {"train": 240, "valid": 11, "test": 13}  # not multiples of 8, because fairseq drops the remaining sentences

TINY = """--arch posenc_transformer_tiny --encoder-embed-dim 16 --encoder-ffn-embed-dim 16 --max-source-positions 24
    --max-target-positions 24 --dropout 0""".split()
STOCK = [word.replace("posenc_transformer_tiny", "transformer_tiny") for word in TINY]
TASK = STOCK_TASK = "--task translation -s en -t de".split()
RECIPE = """--optimizer adam --lr 0.01 --max-tokens 120 --seed 3 --cpu --log-format none --num-workers 0
    --data-buffer-size 0 --required-batch-size-multiple 1""".split()


def table(file: str, name: str) -> dict[str, Any]:
    """Return a table of a .toml file of this folder, whose rows are the cases of a test."""
    tables: dict[str, Any] = tomllib.loads((Path(__file__).parent / file).read_text("utf-8"))
    return tables[name]


def write_corpus(folder: Path) -> Path:
    """Write pairs of random words and the same words reversed, binarised as fairseq-preprocess does."""
    folder.mkdir(parents=True)
    dictionary = Dictionary()
    for number in range(WORDS):
        dictionary.add_symbol(f"w{number}")
    random = torch.Generator().manual_seed(0)
    for language in ("en", "de"):
        dictionary.save(str(folder / f"dict.{language}.txt"))
    for split, size in SIZES.items():
        lengths = torch.randint(2, 10, (size,), generator=random).tolist()
        lines = [torch.randint(4, 4 + WORDS, (length,), generator=random).tolist() for length in lengths]
        binarise(folder / f"{split}.en-de.en", lines, dictionary)
        binarise(folder / f"{split}.en-de.de", [line[::-1] for line in lines], dictionary)
    return folder


def binarise(path: Path, lines: Iterable[Sequence[int]], dictionary: Dictionary) -> None:
    """Write lines of ids as fairseq-preprocess does, each with </s> at its end."""
    builder = make_builder(f"{path}.bin", "mmap", len(dictionary))
    for line in lines:
        builder.add_item(torch.tensor([*line, dictionary.eos()]))
    builder.finalize(f"{path}.idx")


# -- fairseq in this process ------------------------------------------------------------------------------


def parse(
    arguments: Sequence[Any], parser: Callable[[], Any] = options.get_training_parser, arch: str | None = None
) -> Any:
    """Return the configuration for a command line."""
    argument_parser = parser()
    if arch:  # as in fairseq_cli/generate.py
        argument_parser.add_argument("--arch", default=arch)
    return convert_namespace_to_omegaconf(
        options.parse_args_and_arch(argument_parser, [str(word) for word in arguments])
    )


def composed(name: str, overrides: list[str], strict: bool) -> DictConfig:
    """Compose a configuration as Hydra does, in a quarter of the time; Hydra would take most of the time of a short
    training.

    Hydra loads the chosen groups (`model=posenc_transformer`), then sets single values (`common.seed=3`). The groups
    are loaded once for each choice of them, and each value is parsed once. Defaults are not set again.
    """
    groups = tuple(override for override in overrides if "." not in override.partition("=")[0])
    defaults = composed_groups(name, groups)
    values = [parsed_value(override) for override in overrides if override not in groups]
    config = copy.deepcopy(defaults)
    ConfigLoaderImpl._apply_overrides_to_config([value for value in values if not is_set(defaults, value)], config)
    return config


def is_set(config: DictConfig, override: Any) -> bool:
    """Return whether the configuration has this value already: most options of a command line are defaults."""
    node: Any = config
    for key in override.key_or_group.split("."):
        node = node._content.get(key) if isinstance(node, DictConfig) and isinstance(node._content, dict) else None
    value, now = override.value(), node._value() if isinstance(node, ValueNode) else override
    return type(now) is type(value) and isinstance(value, bool | int | float | str | None) and now == value


@functools.cache
def composed_groups(name: str, groups: tuple[str, ...]) -> DictConfig:
    """Compose the configuration of these groups, with their default values."""
    config = compose(name, overrides=list(groups))
    OmegaConf.set_struct(config, True)
    return config


@functools.cache
def parsed_value(override: str) -> Any:
    """Parse `key=value` by Hydra's grammar."""
    return OverridesParser.create().parse_override(override)


fairseq.dataclass.utils.compose = composed  # shared by all tests of this process


def command_line(
    data: Path,
    *arguments: Any,
    model: Sequence[Any] = TINY,
    task: Sequence[Any] = TASK,
    recipe: Sequence[Any] = RECIPE,
) -> list[str]:
    """Return the arguments of fairseq-train for a tiny model; without `--save-dir` nothing is saved."""
    save = [] if "--save-dir" in arguments else ["--no-save"]
    checks = [] if "--valid-subset" in arguments else ["--disable-validation"]
    words = [data, "--user-dir", PLUGIN, *task, *recipe, *save, *checks, *model, *arguments]
    return [str(word) for word in words]


class Run(Trainer):
    """Train as fairseq does, and record the loss of every update."""

    last: Run

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.losses: list[float] = []
        Run.last = self

    def _reduce_and_log_stats(self, logging_outputs: Any, sample_size: Any, grad_norm: Any = None) -> Any:
        if grad_norm is not None:
            self.losses.append(float(sum(output["loss"] for output in logging_outputs) / sample_size))
        return super()._reduce_and_log_stats(logging_outputs, sample_size, grad_norm)


def train(data: Path, *arguments: Any, **parts: Sequence[Any]) -> Run:
    """Run fairseq-train with the arguments of `command_line`, and return the unrounded loss of each update."""
    return trained(command_line(data, *arguments, **parts))


def trained(words: Sequence[str], start: Callable[..., Any] = lambda cfg, main: main(cfg)) -> Run:
    """Run fairseq-train with these arguments; `start` calls its main function.

    Even with --no-save, fairseq writes to --save-dir: a file that shows whether it can, and crash.pt if a step fails.
    """
    # fairseq would compare with the best score of an earlier training in this process, and write no checkpoint_best.pt.
    vars(checkpoint_utils.save_checkpoint).pop("best", None)
    with tempfile.TemporaryDirectory() as folder, mock.patch.object(fairseq_cli.train, "Trainer", Run):
        cfg = parse(["--save-dir", folder, *words])  # a later --save-dir takes its place
        try:
            start(cfg, fairseq_cli.train.main)
        finally:
            end_reading()
    return Run.last


def end_reading() -> None:
    """End the threads and the worker processes that read data, as at the end of a process.

    The garbage collector would wait five seconds for each worker.
    """
    stop_reading()
    if multiprocessing.active_children():
        for item in gc.get_objects():
            if type(item) is _MultiProcessingDataLoaderIter:  # isinstance would follow weak references that are gone
                item._shutdown_workers()


def built(data: Path, *arguments: Any, seed: int = 5, **parts: Sequence[Any]) -> tuple[Any, Any]:
    """Return an untrained model in evaluation mode, and its task, for the arguments of `command_line`."""
    return built_of(command_line(data, *arguments, **parts), seed)


def built_of(words: Sequence[str], seed: int) -> tuple[Any, Any]:
    """Return an untrained model in evaluation mode, and its task, for these arguments."""
    cfg = parse(words)
    utils.import_user_module(cfg.common)
    task = tasks.setup_task(cfg.task)
    torch.manual_seed(seed)
    return task.build_model(cfg.model).eval(), task


def batches(
    task: Any, split: str = "test", *, size: int = 64, seed: int = 1, longest: Any = (24, 24)
) -> list[dict[str, Any]]:
    """Return the batches of a split with `size` sentences each."""
    task.load_dataset(split)
    iterator = task.get_batch_iterator(
        dataset=task.dataset(split),
        max_sentences=size,
        max_positions=longest,
        required_batch_size_multiple=1,
        seed=seed,
    )
    return list(iterator.next_epoch_itr(shuffle=False))


def move(model: nn.Module, seed: int = 0) -> nn.Module:
    """Move every parameter away from its initial value, because tables that are zero or small would hide mistakes."""
    random = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.3 * torch.randn(parameter.shape, generator=random)
    return model


# -- several processes ------------------------------------------------------------------------------------

TWO = (
    """--ddp-backend legacy_ddp --distributed-no-spawn --distributed-world-size 2 --distributed-backend gloo""".split()
)


def forked(run: Callable[..., Any], *arguments: Any) -> BaseProcess:
    """Run a function in a fork of this process, which needs no imports, and return the fork."""
    child = multiprocessing.get_context("fork").Process(target=run, args=arguments)
    child.start()
    return child


def logged() -> dict[str, float]:
    """Return what --pos-enc-log-interval has logged last about layer 1 of the encoder and of the decoder."""
    values = metrics.get_smoothed_values("train_inner")
    return {name: value for name, value in values.items() if name.endswith("coder_1")}


def two_processes(folder: Path, words: Sequence[str]) -> list[dict[str, Any]]:
    """Run a training in two processes, and return what each of them learned and logged."""
    folder.mkdir(exist_ok=True)
    both = [*words, *TWO, "--distributed-init-method", f"file://{folder}/processes", "--distributed-rank"]

    def train(rank: int) -> None:
        run = trained([*both, str(rank)], distributed.call_main)
        learned = {"losses": run.losses, "model": run.get_model().state_dict(), "logged": logged()}
        torch.save(learned, folder / f"rank{rank}.pt")

    children = [forked(train, rank) for rank in range(2)]
    for child in children:
        child.join()
        assert child.exitcode == 0
    return [torch.load(folder / f"rank{rank}.pt") for rank in range(2)]


# -- commands ---------------------------------------------------------------------------------------------


def printed(main: Callable[..., Any], *arguments: Any) -> tuple[str, Any]:
    """Return what a command of fairseq prints to stdout in this process, and its result."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        result = main(*arguments)
    return out.getvalue(), result


#: By command of fairseq that loads a checkpoint, the parser of its options.
PARSERS = {
    "generate": options.get_generation_parser,
    "interactive": options.get_interactive_generation_parser,
    "validate": options.get_validation_parser,
    "eval_lm": options.get_eval_lm_parser,
}


def evaluate(command: str, data: Path, checkpoint: Any, *more: Any) -> tuple[str, Any]:
    """Run a command of `PARSERS` on a checkpoint, and return what it prints to stdout and its result."""
    words = [data, "--user-dir", PLUGIN, "--path", checkpoint, "--cpu", "--num-workers", 0, *more]
    words, parser = [str(word) for word in words], PARSERS[command]
    arguments = [parse(words, parser, arch="wav2vec2")]
    if command == "validate":  # as in its cli_main
        arguments.append(options.parse_args_and_arch(parser(), words, suppress_defaults=True))
    return printed(importlib.import_module(f"fairseq_cli.{command}").main, *arguments)


def environment(*, package: bool, **more: str) -> dict[str, str]:
    """Return the environment of a new process: one thread, with or without the package on the path."""
    inherited = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return {**inherited, "OMP_NUM_THREADS": "1", **({"PYTHONPATH": str(ROOT)} if package else {}), **more}


def script(name: str) -> list[str]:
    """Return the path of a fairseq command that belongs to the Python of the tests."""
    return [sys.executable, "-m", f"fairseq_cli.{name}"]


def run(command: Sequence[Any], *, package: bool = True, check: bool = True, **options: Any) -> CompletedProcess[str]:
    """Run a command in a new process. If it fails, the error shows its last lines."""
    words = [str(word) for word in command]
    options = {"env": environment(package=package), **options}
    done = subprocess.run(words, capture_output=True, text=True, check=False, **options)
    assert not check or done.returncode == 0, done.stderr[-4000:]
    return done
