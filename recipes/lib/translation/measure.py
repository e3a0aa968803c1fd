"""What each encoding costs: its parameters, the time of a training step, speed and memory of translation.

The trained checkpoints take turns on the same batch in this one process, so that whatever else the machine does hits
all alike. Ratios to the first are taken within a turn, and are medians over the turns.

All translate to one length, the references' mean: models that end their sentences at another length take another number
of steps, and an encoding would be blamed for it.
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

import fairseq_posenc  # noqa: F401  registers the architectures, and what a checkpoint may hold
from recipes.lib.flags import PLUGIN
from recipes.lib.package import write_whole
from recipes.lib.translation import memory
from recipes.lib.translation.memory import Memory

SECONDS = 12.0  # for all encodings together, training and translation each
LEAST_TURNS = 5
LONGEST_BATCH = 64  # sentences translated in a turn
UNLIMITED = 10_000  # positions; a model that says more has no limit of its own
Step = Callable[[], None]


@dataclass
class Loaded:
    model: torch.nn.Module
    config: Any
    task: Any


def load(checkpoint: Path, decoding: list[str]) -> Loaded:
    """`decoding`: flags of fairseq-generate; the form of the length penalty is left out, which costs nothing."""
    models, config, task = checkpoint_utils.load_model_ensemble_and_task([str(checkpoint)])
    words = ["data-bin", "--path", str(checkpoint), *PLUGIN, *decoding]
    asked = options.parse_args_and_arch(options.get_generation_parser(), words)
    config.generation = convert_namespace_to_omegaconf(asked).generation
    return Loaded(models[0], config, task)


def words(batch: dict[str, Any], dictionary: Any) -> int:
    """Of the batch's sources, as people count them."""
    pieces = dictionary.string(batch["net_input"]["src_tokens"], extra_symbols_to_ignore={dictionary.pad()})
    joined = pieces.replace("@@ ", "")
    return joined.count("\u2581") or len(joined.split())


def a_batch(config: Any, task: Any) -> dict[str, Any]:
    """The middle batch of the validation set, with the size limit that training had."""
    task.load_dataset("valid")
    dataset = task.dataset("valid")
    batches = data_utils.batch_by_size(
        dataset.ordered_indices(), dataset.num_tokens, max_tokens=config.dataset.max_tokens
    )
    middle = batches[len(batches) // 2]  # sentences come sorted by length: a typical one
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
    """Pieces of the mean reference, without the end of the sentence."""
    return max(1, round(batch["ntokens"] / len(batch["target"])) - 1)


def translation_step(loaded: Loaded, batch: dict[str, Any]) -> Step:
    """Every hypothesis as long as the mean reference."""
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


def turns(steps: Mapping[str, Step], seconds: float = SECONDS) -> list[dict[str, float]]:
    """The seconds of each step, turn by turn."""
    for step in steps.values():  # the first step allocates
        step()
    found: list[dict[str, float]] = []
    names = list(steps)
    started = time.perf_counter()
    while len(found) < LEAST_TURNS or time.perf_counter() - started < seconds:
        names.append(names.pop(0))  # no encoding is always the first of its turn
        turn = {name: timed(steps[name]) for name in names}
        found.append({name: turn[name] for name in steps})
    return found


def compared(found: list[dict[str, float]], words: int) -> dict[str, tuple[float | None, float | None]]:
    """Words a second, and the time against the first, each the median over the turns."""
    names = list(found[0])
    first = names[0]
    return {
        name: (words / median(turn[name] for turn in found), median(turn[name] / turn[first] for turn in found))
        for name in names
    }


def translation_memory(checkpoint: Path, decoding: list[str], gpu: bool) -> Memory | None:
    """Of a model that is alone; of the same batch as the times."""
    one = load(checkpoint, decoding)
    batch = a_batch(one.config, one.task)
    if not gpu:
        return memory.of_process(translation_step(one, batch))
    one.model.cuda()
    try:
        return memory.of_gpu(translation_step(one, utils.move_to_cuda(batch)))
    except torch.OutOfMemoryError as error:
        print(f"not measured: {checkpoint}: {error}")
        return None


def memories(checkpoints: Mapping[str, Path], decoding: list[str], gpu: bool) -> dict[str, Memory | None]:
    """On a CPU to be called before this process has computed anything: its threads would be missed in a fork."""
    if gpu:
        return {name: translation_memory(path, decoding, gpu) for name, path in checkpoints.items()}
    return {name: memory.forked(translation_memory, path, decoding, gpu) for name, path in checkpoints.items()}


def of_memory(found: Memory | None, first: Memory | None) -> dict[str, float | None]:
    return {
        "translation_peak_mb": found.peak if found else None,
        "translation_extra_mb": found.extra if found else None,
        "translation_memory_ratio": found.peak / first.peak if found and first else None,
    }


def positions(model: Any) -> list[int | None]:
    """Of the source and of the target; None where there is no limit."""
    return [None if limit > UNLIMITED else int(limit) for limit in model.max_positions()]


def measure(checkpoints: Mapping[str, Path], decoding: list[str], gpu: bool) -> dict[str, dict[str, Any]]:
    """Of every checkpoint; the times are None where all of them together do not fit into memory."""
    found = memories(checkpoints, decoding, gpu)
    models = {name: load(path, decoding) for name, path in checkpoints.items()}
    sizes = {name: sum(weight.numel() for weight in one.model.parameters()) for name, one in models.items()}
    first = next(iter(models.values()))
    batch = a_batch(first.config, first.task)
    number = words(batch, first.task.source_dictionary)
    none: dict[str, tuple[float | None, float | None]] = dict.fromkeys(models, (None, None))
    translation = training = none
    try:
        if gpu:
            batch = utils.move_to_cuda(batch)
            for one in models.values():
                one.model.cuda()
        translation = compared(turns({name: translation_step(one, batch) for name, one in models.items()}), number)
        training = compared(turns({name: training_step(one, batch) for name, one in models.items()}), number)
    except torch.OutOfMemoryError as error:
        print(f"not measured: {len(models)} models do not fit into the memory of the GPU: {error}")
    return {
        name: {
            "parameters": sizes[name],
            "parameters_added": sizes[name] - next(iter(sizes.values())),
            "training_words_per_second": training[name][0],
            "training_time_ratio": training[name][1],
            "translation_words_per_second": translation[name][0],
            "translation_time_ratio": translation[name][1],
            "positions": positions(models[name].model),
            **of_memory(found[name], next(iter(found.values()))),
        }
        for name in models
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--checkpoint", action="append", required=True, metavar="NAME:FILE", help="the first is compared with"
    )
    parser.add_argument("--generate", default="", metavar="FLAGS", help="of fairseq-generate, as one word")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--cpu", action="store_true", help="also where there is a GPU")
    asked = parser.parse_args()
    named = {name: Path(path) for name, _, path in (word.partition(":") for word in asked.checkpoint)}
    gpu = torch.cuda.is_available() and not asked.cpu
    write_whole(asked.output, json.dumps(measure(named, shlex.split(asked.generate), gpu), indent=1))


if __name__ == "__main__":
    main()
