"""Measure the cost of each encoding: parameters, time of a training step, and speed and memory of translation.

All checkpoints take turns on the same batch in one process, so that other work on the machine slows them equally. In
each turn, the time of a checkpoint is divided by the time of the first checkpoint. The median over the turns is
reported.

All hypotheses have the mean length of the references, because an encoding would look slow if the hypotheses of its
model were longer.
"""

from __future__ import annotations

import argparse
import json
import shlex
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import torch
from fairseq import checkpoint_utils, options, utils
from fairseq.data import data_utils
from fairseq.dataclass.utils import convert_namespace_to_omegaconf

import fairseq_posenc.models  # noqa: F401  registers the architectures and the types that checkpoints may contain
from recipes.lib.flags import PLUGIN
from recipes.lib.package import write_whole
from recipes.lib.translation import memory
from recipes.lib.translation.memory import Memory

SECONDS = 12  # default time for the training steps of all encodings together, and again for their translations
LEAST_TURNS = 5
LONGEST_BATCH = 64  # maximum number of sentences in the batch
UNLIMITED = 10_000  # a model that reports more positions has no limit of its own
Step = Callable[[], None]


@dataclass
class Loaded:
    model: torch.nn.Module
    config: Any
    task: Any


def load(checkpoint: Path, decoding: list[str]) -> Loaded:
    """Load a checkpoint, and return the model with its configuration and fairseq task.

    Args:
        checkpoint: Path of the checkpoint.
        decoding: Flags of fairseq-generate. The flag --lenpen-form is ignored; it would not change time or memory.
    """
    models, config, task = checkpoint_utils.load_model_ensemble_and_task([str(checkpoint)])
    command = ["data-bin", "--path", str(checkpoint), *PLUGIN, *decoding]
    arguments = options.parse_args_and_arch(options.get_generation_parser(), command)
    config.generation = convert_namespace_to_omegaconf(arguments).generation
    return Loaded(models[0], config, task)


def words(batch: dict[str, Any], dictionary: Any) -> int:
    """Return the number of source words (not subword pieces) in the batch."""
    pieces = dictionary.string(batch["net_input"]["src_tokens"], extra_symbols_to_ignore={dictionary.pad()})
    joined = pieces.replace("@@ ", "")
    return joined.count("\u2581") or len(joined.split())


def middle_batch(config: Any, task: Any) -> dict[str, Any]:
    """Divide the validation set into batches with the --max-tokens of training, and return the middle batch."""
    task.load_dataset("valid")
    dataset = task.dataset("valid")
    batches = data_utils.batch_by_size(
        dataset.ordered_indices(), dataset.num_tokens, max_tokens=config.dataset.max_tokens
    )
    middle = batches[len(batches) // 2]  # batches are sorted by length, so this one is typical
    return dict(dataset.collater([dataset[index] for index in middle[:LONGEST_BATCH]]))


def training_step(loaded: Loaded, batch: dict[str, Any]) -> Step:
    criterion = loaded.task.build_criterion(loaded.config.criterion)
    optimizer = torch.optim.Adam(loaded.model.parameters(), lr=1e-6)

    def step() -> None:
        loaded.model.train()
        loss, size, _ = criterion(loaded.model, batch)
        optimizer.zero_grad()
        (loss / size).backward()
        optimizer.step()

    return step


def length(batch: dict[str, Any]) -> int:
    """Return the mean length of the references in pieces, without </s>."""
    return max(1, round(batch["ntokens"] / len(batch["target"])) - 1)


def translation_step(loaded: Loaded, batch: dict[str, Any]) -> Step:
    """Return a function that translates the batch; every hypothesis has the mean length of the references."""
    decoding = loaded.config.generation
    decoding.min_len = decoding.max_len_b = length(batch)
    decoding.max_len_a, decoding.match_source_len = 0, False
    generator = loaded.task.build_generator([loaded.model], decoding)

    def step() -> None:
        loaded.model.eval()
        with torch.no_grad():
            loaded.task.inference_step(generator, [loaded.model], batch)

    return step


def timed(step: Step) -> float:
    wait_for_gpu()
    started = time.perf_counter()
    step()
    wait_for_gpu()
    return time.perf_counter() - started


def wait_for_gpu() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def turns(steps: Mapping[str, Step], seconds: float) -> list[dict[str, float]]:
    """Return the duration of each model's step in seconds, for each turn."""
    for step in steps.values():  # the first step also allocates memory, so it is not timed
        step()
    seconds_by_turn: list[dict[str, float]] = []
    names = list(steps)
    started = time.perf_counter()
    while len(seconds_by_turn) < LEAST_TURNS or time.perf_counter() - started < seconds:
        names.append(names.pop(0))  # every encoding is sometimes the first of a turn
        turn = {name: timed(steps[name]) for name in names}
        seconds_by_turn.append({name: turn[name] for name in steps})
    return seconds_by_turn


def compared(turns: list[dict[str, float]], words: int) -> dict[str, tuple[float | None, float | None]]:
    """Return each model's words per second, and its time relative to the first model, as medians over the turns."""
    names = list(turns[0])
    first = names[0]
    return {
        name: (words / median(turn[name] for turn in turns), median(turn[name] / turn[first] for turn in turns))
        for name in names
    }


def translation_memory(checkpoint: Path, decoding: list[str], gpu: bool) -> Memory | None:
    """Return the memory that a model needs to translate the timed batch, or None if this memory cannot be measured."""
    print(f"measuring the memory of {checkpoint.parent.name}/{checkpoint.name} ...", flush=True)
    loaded = load(checkpoint, decoding)
    batch = middle_batch(loaded.config, loaded.task)
    if not gpu:
        return memory.of_process(translation_step(loaded, batch))
    loaded.model.cuda()
    try:
        return memory.of_gpu(translation_step(loaded, utils.move_to_cuda(batch)))
    except torch.OutOfMemoryError as error:
        print(
            f"{checkpoint}: the memory was not measured, because the model does not fit into the GPU's memory: {error}"
        )
        return None


def memories(checkpoints: Mapping[str, Path], decoding: list[str], gpu: bool) -> dict[str, Memory | None]:
    """Return the memory that each model needs to translate. On a CPU, call this function before the process computes
    anything, because a forked process would wait forever for threads that only its parent process has.
    """
    if gpu:
        return {name: translation_memory(path, decoding, gpu) for name, path in checkpoints.items()}
    return {name: memory.forked(translation_memory, path, decoding, gpu) for name, path in checkpoints.items()}


def memory_columns(used: Memory | None, first: Memory | None) -> dict[str, float | None]:
    return {
        "translation_peak_mb": used.peak if used else None,
        "translation_extra_mb": used.extra if used else None,
        "translation_memory_ratio": used.peak / first.peak if used and first else None,
    }


def positions(model: Any) -> list[int | None]:
    """Return the number of positions that a model has for source and target; None means no limit."""
    return [None if limit > UNLIMITED else int(limit) for limit in model.max_positions()]


def measure(
    checkpoints: Mapping[str, Path], decoding: list[str], gpu: bool, seconds: float
) -> dict[str, dict[str, Any]]:
    """Return the cost of every checkpoint; times are None if the models together do not fit into the GPU's memory.

    The speed of all models is measured for `seconds` in translation, and again in training.
    """
    used = memories(checkpoints, decoding, gpu)
    models = {name: load(path, decoding) for name, path in checkpoints.items()}
    sizes = {name: sum(weight.numel() for weight in loaded.model.parameters()) for name, loaded in models.items()}
    first = next(iter(models.values()))
    batch = middle_batch(first.config, first.task)
    count = words(batch, first.task.source_dictionary)
    unmeasured: dict[str, tuple[float | None, float | None]] = dict.fromkeys(models, (None, None))
    translation = training = unmeasured
    try:
        if gpu:
            batch = utils.move_to_cuda(batch)
            for loaded in models.values():
                loaded.model.cuda()
        print("measuring the speed of translation ...", flush=True)  # the screen shows these lines
        steps = {name: translation_step(model, batch) for name, model in models.items()}
        translation = compared(turns(steps, seconds), count)
        print("measuring the speed of training ...", flush=True)
        steps = {name: training_step(model, batch) for name, model in models.items()}
        training = compared(turns(steps, seconds), count)
    except torch.OutOfMemoryError as error:
        print(f"Times were not measured, because {len(models)} models do not fit into the GPU's memory: {error}")
    return {
        name: {
            "parameters": sizes[name],
            "parameters_added": sizes[name] - next(iter(sizes.values())),
            "training_words_per_second": training[name][0],
            "training_time_ratio": training[name][1],
            "translation_words_per_second": translation[name][0],
            "translation_time_ratio": translation[name][1],
            "positions": positions(models[name].model),
            **memory_columns(used[name], next(iter(used.values()))),
        }
        for name in models
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    option = parser.add_argument
    text = "Name and path of a trained checkpoint; missing files are skipped. The first existing file is the baseline."
    option("--checkpoint", action="append", required=True, metavar="NAME:FILE", help=text)
    option(
        "--generate", default="", metavar="FLAGS", help="Flags of fairseq-generate, written as a single quoted string."
    )
    option("--output", type=Path, required=True, metavar="FILE", help="JSON file for the results.")
    option("--cpu", action="store_true", help="Use the CPU even if there is a GPU.")
    text = "Time of measuring the translations of all models, and again their training steps, in seconds."
    option("--seconds", type=int, default=SECONDS, metavar="N", help=f"{text} Default: {SECONDS}.")
    arguments = parser.parse_args()
    named = {name: Path(path) for name, _, path in (word.partition(":") for word in arguments.checkpoint)}
    missing = [name for name, path in named.items() if not path.exists()]
    for name in missing:
        print(f"{name} is not measured, because it has no checkpoint {named.pop(name)}.")
    gpu = torch.cuda.is_available() and not arguments.cpu
    measured = measure(named, shlex.split(arguments.generate), gpu, arguments.seconds) if named else {}
    write_whole(arguments.output, json.dumps(measured, indent=1))


if __name__ == "__main__":
    main()
