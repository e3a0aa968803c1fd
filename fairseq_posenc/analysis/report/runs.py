"""Read the recipe runs that the report page compares: the rows of their results, their losses and their figures."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from ...core.training_log import Curve, Points, read_losses
from ...encodings.building import parse
from ..results import SCORES, ResultsError, Score, is_number, read, score

#: Scores in the order of the table, the recipes' main scores first.
SHOWN = (*SCORES, "EM", "BLEU-4", "chrF", "training loss")
#: Costs of a training run, with their columns in a row of results.
COSTS = {
    "minutes of training": "minutes",
    "parameters": "parameters",
    "words per second in training": "words/s, training",
}
#: What tells the scores of a model for a task apart, if a row has it.
PARTS = ("evaluation", "copy mechanism")
#: Largest PNG file that is put into the page.
LARGEST_FIGURE = 3_000_000
PNG = b"\x89PNG\r\n\x1a\n"


@dataclass(frozen=True)
class Entry:
    """Hold a row of a recipe run's results.

    Args:
        label: Encoding with its options, as `--pos-enc` takes it, or the name of another model.
        encoding, options: The two parts of the label.
        scores: The scores, keyed by column name; the first is the recipe's main score.
        numbers: The costs in `COSTS`, the numeric options of the encoding and the numeric settings of the run.
        commit: Commit of the code.
        facts: The whole row of results.json.
    """

    run: str
    recipe: str
    task: str
    label: str
    encoding: str
    options: str
    scores: Mapping[str, Score]
    numbers: Mapping[str, float]
    commit: str
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
    label = str(row.get("encoding") or row.get("model") or "unknown")
    settings = facts.get("settings")
    settings = settings if isinstance(settings, dict) else {}
    try:
        spec = parse(label)
        encoding, args, options = spec.name, spec.args or "", [*spec.options.values()]
    except ValueError:  # encodings of two stacks, such as `rope/t5`, or a model without an encoding of this package
        encoding, args, options = label, "", []
    return Entry(
        run=run,
        recipe=facts["recipe"].removeprefix("recipes/"),
        task=_task(settings, row),
        label=label,
        encoding=encoding,
        options=args,
        scores={name: score(row, name) for name in SHOWN if is_number(row.get(name))},
        numbers={
            **_numbers(settings, *options),
            **{label: row[name] for label, name in COSTS.items() if is_number(row.get(name))},
        },
        commit=str(row.get("commit") or facts.get("commit") or ""),
        facts=row,
    )


def _numbers(settings: Mapping[str, Any], *options: Mapping[str, str]) -> dict[str, float]:
    """Return the settings and the options that are numbers."""
    numbers = dict(settings)
    for name, value in (item for each in options for item in each.items()):
        with suppress(ValueError):
            numbers[name] = float(value)
    return {name: value for name, value in numbers.items() if is_number(value)}


def _task(settings: Mapping[str, Any], row: Mapping[str, Any]) -> str:
    """Return the task or data set of a row, and what else tells the scores of a model apart."""
    corpus = Path(str(settings.get("corpus", ""))).name  # a user's own corpus is the path of a folder
    names = (name for name in (row.get("task"), row.get("direction"), corpus) if isinstance(name, str) and name)
    return ", ".join([*islice(names, 1), *(str(row[part]) for part in PARTS if row.get(part))])


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
