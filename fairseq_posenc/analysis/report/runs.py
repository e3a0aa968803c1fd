"""Read the recipe runs that the report page compares: the rows of their results, their losses and their figures."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...core.training_log import Curve, Points, read_losses
from ...encodings.building import parse
from ..results import SCORES, ResultsError, Score, is_number, read, score

#: Scores in the order of the table, the recipes' main scores first.
SHOWN = (*SCORES, "EM", "BLEU-4", "chrF", "training loss")
SPEEDS = {"words/s, training": "words/s", "pieces/s": "pieces/s", "tokens/s": "tokens/s"}
MEMORY = ("MB, translation",)
#: Scores that mean the same have one title.
SAME = {"bleu": "BLEU"}
#: Where a row, or else the settings of its run, names the task.
TASK = ("task", "direction", "dataset", "corpus")
#: What else tells the scores of a model apart, if a row has it.
PARTS = ("language", "evaluation", "copying")
#: Largest PNG file that is put into the page.
LARGEST_FIGURE = 3_000_000
PNG = b"\x89PNG\r\n\x1a\n"


def title_of(column: str) -> str:
    """Return the title that the page shows for a column of scores."""
    return SAME.get(column, column)


@dataclass(frozen=True)
class Entry:
    """Hold a row of a recipe run's results.

    Args:
        label: Encoding with its options, as `--pos-enc` takes it, or the name of another model.
        encoding, options: The two parts of the label.
        scores: The scores, keyed by column name.
        speed: Training speed in units of `speed_unit`.
        memory: Peak memory in MB.
        step: Time per training update, divided by the time with the run's first encoding.
        numbers: The numeric options of the encoding and settings of the run.
        command: Command of the training run.
        facts: The whole row of results.json.
    """

    run: str
    recipe: str
    task: str
    label: str
    encoding: str
    options: str
    scores: Mapping[str, Score]
    parameters: float | None
    speed: float | None
    speed_unit: str
    step: float | None
    memory: float | None
    minutes: float | None
    numbers: Mapping[str, float]
    commit: str
    command: str
    facts: Mapping[str, Any]

    @property
    def slug(self) -> str:
        """Return the name of the model in the file names of the run."""
        return re.sub(r"[\[,]", ".", self.label).replace("]", "").replace("/", "--")

    @property
    def main(self) -> Score | None:
        """Return the recipe's main score; None if the row has no score."""
        return next(iter(self.scores.values()), None)


@dataclass(frozen=True)
class Losses:
    """Hold the losses of a training run; `entries` are the indices of its rows among the rows of all recipe runs."""

    run: str
    recipe: str
    name: str
    curve: Curve
    entries: list[int]


@dataclass(frozen=True)
class Run:
    """Hold a run of a recipe: its name, folder and results.json, its rows and losses, and the paths of its figures."""

    name: str
    folder: Path
    facts: Mapping[str, Any]
    entries: list[Entry]
    losses: list[Losses]
    figures: list[Path]


def read_runs(paths: Iterable[Path]) -> list[Run]:
    """Read the results of recipe runs. A path is the folder of a run or its results.json.

    A run that several paths name is read once.

    Raises:
        ResultsError: A path is not the result of a recipe.
    """
    folders = list(dict.fromkeys((path if path.is_dir() else path.parent).resolve() for path in paths if read(path)))
    runs: list[Run] = []
    for folder, name in zip(folders, _names(folders), strict=True):
        facts = read(folder)
        entries = [_entry(name, facts, row) for row in facts["results"]]
        first = sum(len(run.entries) for run in runs)
        losses = list(_losses(folder, name, facts["recipe"], entries, first))
        runs.append(Run(name, folder, facts, entries, losses, _figures(folder)))
    return runs


def _names(folders: list[Path]) -> list[str]:
    """Return a different name for each folder: the last parts of its path, and no more of them than necessary."""
    for parts in range(1, max((len(folder.parts) for folder in folders), default=1)):
        names = ["/".join(folder.parts[-parts:]) for folder in folders]
        if len(set(names)) == len(names):
            return names
    return [str(folder) for folder in folders]


def _entry(run: str, facts: Mapping[str, Any], row: Mapping[str, Any]) -> Entry:
    recipe = facts["recipe"].removeprefix("recipes/")
    label = str(row.get("encoding") or row.get("model") or "unknown")
    encoding, options = _parts(label)
    speed = next((name for name in SPEEDS if is_number(row.get(name))), None)
    return Entry(
        run=run,
        recipe=recipe,
        task=_task(facts, row),
        label=label,
        encoding=encoding,
        options=options,
        scores={
            name: score(facts, row, name)._replace(column=title_of(name)) for name in SHOWN if is_number(row.get(name))
        },
        parameters=_number(row.get("parameters")),
        speed=_number(row.get(speed or "")),
        speed_unit=SPEEDS.get(speed or "", ""),
        step=_number(row.get("time of a step", row.get("speed_ratio"))),
        memory=next((_number(row[name]) for name in MEMORY if is_number(row.get(name))), None),
        minutes=_number(row.get("minutes")),
        numbers=_numbers(facts, label),
        commit=str(row.get("commit") or facts.get("commit") or ""),
        command=str(row.get("command") or ""),
        facts=row,
    )


def _parts(label: str) -> tuple[str, str]:
    """Return the encoding and the options of a label; a label that is not one encoding has no options."""
    try:
        spec = parse(label)
    except ValueError:  # encodings of two stacks, such as `rope/t5`, or a model without an encoding of this package
        return label, ""
    return spec.name, spec.args or ""


def _numbers(facts: Mapping[str, Any], label: str) -> dict[str, float]:
    """Return the numeric settings of a run and the numeric options that a label sets, by their names."""
    settings = facts.get("settings")
    numbers = dict(settings) if isinstance(settings, dict) else {}
    with suppress(ValueError):  # encodings of two stacks, or a model without an encoding of this package
        for options in parse(label).options.values():
            for name, value in options.items():
                with suppress(ValueError):
                    numbers[name] = float(value)
    return {name: value for name, value in numbers.items() if is_number(value)}


def _number(value: Any) -> float | None:
    return value if is_number(value) else None


def _task(facts: Mapping[str, Any], row: Mapping[str, Any]) -> str:
    settings = facts.get("settings")
    places = (row, settings if isinstance(settings, dict) else {})
    names = [
        Path(place[name]).name if name == "corpus" else place[name]  # a user's own corpus is the path of a folder
        for place in places
        for name in TASK
        if place.get(name) and isinstance(place[name], str)
    ]
    parts = [*names[:1], *(str(row[name]) for name in PARTS if row.get(name))]
    return ", ".join([*parts, *(f"memory {row['memory']}" for _ in "1" if is_number(row.get("memory")))])


def _losses(folder: Path, run: str, recipe: str, entries: list[Entry], first: int) -> Iterable[Losses]:
    for log in sorted(folder.glob("logs/*.train.log")):
        name = log.name.removesuffix(".train.log")
        slugs = [entry.slug for entry in entries if f".{entry.slug}." in f".{name}."]
        longest = max(slugs, key=len, default=None)  # shaw.clip=4.s1 is of shaw[clip=4], not of shaw
        rows = [first + number for number, entry in enumerate(entries) if longest in (None, entry.slug)]
        try:
            curve = read_losses(log)
        except (LookupError, ValueError) as error:
            raise ResultsError(
                f"{log} is not a log of fairseq-train ({error}). Move this file out of the folder."
            ) from error
        if curve.train or curve.valid:
            yield Losses(run, recipe.removeprefix("recipes/"), name, curve, rows)


def thinned(points: Points, most: int = 150) -> Points:
    """Return at most `most` evenly spaced points of a curve, including its last point."""
    every = -(-len(points) // most) or 1
    return points[::-1][::every][::-1]


def _figures(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.glob("*.png")) if _is_png(path)]


def _is_png(path: Path) -> bool:
    if not path.is_file() or path.stat().st_size > LARGEST_FIGURE:
        return False
    with path.open("rb") as file:
        return file.read(len(PNG)) == PNG
