"""What each encoding costs: the parameters that it adds, and the time of a training step against `none`.

The trained checkpoints take turns on the same batch in this one process, so that whatever else the machine does
hits all alike; the ratio is taken within a turn, and its median over the turns.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import torch
from fairseq import checkpoint_utils
from fairseq.data import data_utils

import fairseq_posenc  # noqa: F401  registers the architectures, and what a checkpoint may hold
from recipes.lib.stages import write_atomically

SECONDS = 12.0  # for all encodings together
LEAST_TURNS = 5
Step = Callable[[], None]


def load(checkpoint: Path) -> tuple[torch.nn.Module, Any, Any]:
    models, config, task = checkpoint_utils.load_model_ensemble_and_task([str(checkpoint)])
    return models[0], config, task


def a_batch(config: Any, task: Any) -> dict[str, Any]:
    """The first batch of the validation set with the size limit that training had."""
    task.load_dataset("valid")
    dataset = task.dataset("valid")
    sizes = data_utils.batch_by_size(
        dataset.ordered_indices(), dataset.num_tokens, max_tokens=config.dataset.max_tokens
    )
    middle = sizes[len(sizes) // 2]  # sentences come sorted by length: a typical one
    return dict(dataset.collater([dataset[index] for index in middle]))


def training_step(model: torch.nn.Module, config: Any, task: Any, batch: dict[str, Any]) -> Step:
    criterion = task.build_criterion(config.criterion)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-6)
    model.train()

    def step() -> None:
        loss, size, _ = criterion(model, batch)
        optimizer.zero_grad()
        (loss / size).backward()
        optimizer.step()

    return step


def timed(step: Step) -> float:
    started = time.perf_counter()
    step()
    return time.perf_counter() - started


def ratios(steps: dict[str, Step], seconds: float = SECONDS) -> dict[str, float]:
    for step in steps.values():  # the first step allocates
        step()
    turns: list[dict[str, float]] = []
    names = list(steps)
    started = time.perf_counter()
    while len(turns) < LEAST_TURNS or time.perf_counter() - started < seconds:
        names.append(names.pop(0))  # no encoding is always the first of its turn
        turns.append({name: timed(steps[name]) for name in names})
    return {name: median(turn[name] / turn["none"] for turn in turns) for name in steps}


def measure(checkpoints: dict[str, Path]) -> dict[str, dict[str, float]]:
    steps, sizes = {}, {}
    for name, path in checkpoints.items():
        model, config, task = load(path)
        sizes[name] = sum(weight.numel() for weight in model.parameters())
        steps[name] = training_step(model, config, task, a_batch(config, task))
    found = ratios(steps)
    return {name: {"parameters": sizes[name] - sizes["none"], "speed_ratio": found[name]} for name in steps}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checkpoints", type=Path, required=True, help="folder with a folder an encoding")
    parser.add_argument("--encodings", required=True, help="comma-separated, `none` among them")
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    torch.set_num_threads(1)
    paths = {name: options.checkpoints / name / "checkpoint_last.pt" for name in options.encodings.split(",")}
    write_atomically(options.output, json.dumps(measure(paths), indent=1))


if __name__ == "__main__":
    main()
