"""Name the logs of the stages, and read the progress of a stage from its log."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from .stages import Stage

TAIL_LINES = 20
HEAD = 1 << 16  # bytes at the beginning of a log, where fairseq-generate writes the size of the test set
SIZE = re.compile(rb"loaded ([\d,]+) examples from")


def log_of(stage: Stage, output: Path) -> Path:
    """Return the log of a stage. `train:shaw` writes logs/shaw.train.log, so the logs of a variant sort together."""
    return output / "logs" / (f"{stage.variant}.{stage.kind}.log" if stage.variant else f"{stage.kind}.log")


def training_log(output: Path, slug: str) -> Path:
    """Return the path of the log that the stage `train:SLUG` writes."""
    return log_of(Stage(f"train:{slug}", (), ()), output)


def tail(log: Path, lines: int = TAIL_LINES) -> str:
    """Return the last lines of a log, or an empty text if there is no log."""
    if not log.exists():
        return ""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - 400 * lines))
        return "\n".join(file.read().decode(errors="replace").splitlines()[-lines:])


def progress(stage: Stage, log: Path) -> str:
    """Return the progress of a stage, such as `train:shaw 320/900 loss 1.23`, from the last JSON line in its log."""
    if stage.kind == "generate":
        done, size = translated(stage, log)
        return f"{stage.name} {done:,}/{size:,} sentences" if size else f"{stage.name} {done:,} sentences"
    if stage.kind != "train":
        bars = [line for line in tail(log, lines=3).splitlines() if line.endswith(("/s]", " ..."))]
        return f"{stage.name} ({bars[-1]})" if bars else stage.name
    facts = _last(log)
    if facts is None:
        return f"{stage.name} starting"
    if not {"loss", "num_updates"} <= facts.keys():  # two processes wrote to the log at the same time
        return stage.name
    loss, updates = facts["loss"], facts["num_updates"]
    flags = _flags(stage)
    goal = f"/{flags['--max-update']}" if "--max-update" in flags else " updates"
    epochs = f" epoch {facts.get('epoch', '?')}/{flags['--max-epoch']}," if "--max-epoch" in flags else ""
    return f"{stage.name}{epochs} {updates}{goal} loss {loss}"


def fraction(stage: Stage, log: Path) -> float | None:
    """Return the finished fraction of a training run or a translation (0 to 1), or None if it is not known."""
    if stage.kind == "generate":
        done, size = translated(stage, log)
        return done / size if size else None
    facts = (_last(log) if stage.kind == "train" else None) or {}
    flags, parts = _flags(stage), list[float]()
    for flag, name in (("--max-update", "num_updates"), ("--max-epoch", "update")):  # `update` counts epochs
        try:
            parts.append(float(facts[name]) / float(flags[flag]))
        except (KeyError, ValueError, ZeroDivisionError):
            continue
    return min(1.0, max(parts)) if parts else None


def translated(stage: Stage, log: Path) -> tuple[int, int]:
    """Return how many sentences fairseq-generate has translated, and how many the set has (0 if not known yet)."""
    files = list(stage.outputs[0].glob("generate-*.txt"))
    done = sum(len(re.findall(rb"^S-", file.read_bytes(), re.MULTILINE)) for file in files)
    if not log.exists():
        return done, 0
    with log.open("rb") as file:
        size = SIZE.search(file.read(HEAD))
    return done, int(size[1].replace(b",", b"")) if size else 0


def _flags(stage: Stage) -> dict[str, str]:
    return dict(zip(stage.command, stage.command[1:], strict=False))


def _last(log: Path) -> dict[str, Any] | None:
    """Return the values in the last training line of the last attempt.

    The result is None if there is no training line, and {} if the last training line is damaged.
    """
    this_attempt = tail(log, lines=60).rpartition("\n$ ")[2]
    lines = [line for line in this_attempt.splitlines() if "| train_inner | {" in line and line.endswith("}")]
    if not lines:
        return None
    try:
        facts: dict[str, Any] = json.loads(lines[-1].split("| train_inner | ")[1])
    except ValueError:
        return {}
    return facts
