"""BLEU of the test set's sentences by their source's length in words: a table, and a figure of it.

Where training had sentences up to some length only, what lies beyond shows whether an encoding extrapolates. A system
that refused sentences, because its positions end, has no score in their lengths; how many it refused is told.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

from matplotlib import pyplot
from matplotlib.axes import Axes

from recipes.lib.curves import save
from recipes.lib.lines import read
from recipes.lib.package import write_whole
from recipes.lib.recipe import Row
from recipes.lib.stages import read_json
from recipes.lib.translation.figure import GREY
from recipes.lib.translation.score import bleu_of


@dataclass(frozen=True)
class Bucket:
    """From `low` words to `high`, which belongs to it; None: without end."""

    low: int
    high: int | None

    @property
    def label(self) -> str:
        if self.high is None:
            return f"{self.low}+"
        return f"{self.low}-{self.high}" if self.low < self.high else str(self.low)

    def holds(self, words: int) -> bool:
        return self.low <= words and (self.high is None or words <= self.high)


def buckets(bounds: list[int]) -> list[Bucket]:
    """Of upper bounds, and one beyond the last."""
    ends = sorted(set(bounds))
    starts = [1, *(end + 1 for end in ends)]
    return [Bucket(low, high) for low, high in zip(starts, [*ends, None], strict=True)]


def members(sources: list[str], bounds: list[int]) -> dict[Bucket, list[int]]:
    """The sentences of each length, by their number; a length that none has is left out."""
    counts = [len(source.split()) for source in sources]
    found = {one: [number for number, words in enumerate(counts) if one.holds(words)] for one in buckets(bounds)}
    return {bucket: numbers for bucket, numbers in found.items() if numbers}


def scored(
    found: list[str], refused: set[int], references: list[str], groups: Mapping[Bucket, list[int]], language: str
) -> list[Row]:
    """Of one system, a row for each length."""
    metric = bleu_of(language)
    rows: list[Row] = []
    for bucket, numbers in groups.items():
        without = len(refused.intersection(numbers))
        bleu = None
        if not without:
            bleu = metric.corpus_score([found[n] for n in numbers], [[references[n] for n in numbers]]).score
        rows.append({"words": bucket.label, "sentences": len(numbers), "bleu": bleu, "refused": without})
    return rows


def averaged(seeds: list[list[Row]]) -> list[Row]:
    """Scores of several trainings: their mean; all refuse the same."""
    return [
        {**same[0], "bleu": None if same[0]["bleu"] is None else round(mean(one["bleu"] for one in same), 2)}
        for same in zip(*seeds, strict=True)
    ]


def draw(systems: Mapping[str, list[Row]], trained: int, beyond: int, path: Path) -> None:
    """Lines over the lengths, dashed where training ended; `beyond`: lengths within training."""
    figure, axes = pyplot.subplots(figsize=(8, 5))
    colours = pyplot.get_cmap("tab10").colors
    first = next(iter(systems.values()))
    for number, (name, rows) in enumerate(systems.items()):
        _line(axes, name, rows, colours[number % len(colours)])
    if trained:
        axes.axvline(beyond - 0.5, color=GREY, linestyle="--", linewidth=1)
        axes.annotate(
            f"trained on {trained} words at most",
            (beyond - 0.5, 1),
            xycoords=("data", "axes fraction"),
            ha="right",
            va="top",
            rotation=90,
            fontsize=8,
        )
    axes.set_xticks(range(len(first)), [f"{row['words']}\nn = {row['sentences']}" for row in first])
    axes.set_xlabel("words of the source")
    axes.set_ylabel("sacreBLEU")
    axes.set_ylim(bottom=0)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8)
    save(figure, path)


def _line(axes: Axes, name: str, rows: list[Row], colour: Any) -> None:
    places = [place for place, row in enumerate(rows) if row["bleu"] is not None]
    refusing = [place for place, row in enumerate(rows) if row["bleu"] is None]
    label = f"{name} (refused: x)" if refusing else name
    axes.plot(places, [rows[place]["bleu"] for place in places], marker="o", label=label, color=colour)
    axes.plot(refusing, [0] * len(refusing), "x", color=colour, clip_on=False, markersize=8)


def reasons(systems: Mapping[str, list[Row]], measured: Mapping[str, Any]) -> dict[str, str]:
    """Why those that refused sentences did."""
    found = {}
    for name, rows in systems.items():
        if any(row["refused"] for row in rows):
            source, target = measured[name]["positions"]
            found[name] = (
                f"has positions for {source or 'any number of'} pieces of the source and {target or 'any number'} of "
                "the target, the ends of the sentences included"
            )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", type=Path, required=True, help="of the test set, raw")
    parser.add_argument("--reference", type=Path, required=True)
    parser.add_argument("--language", required=True, help="of the reference")
    parser.add_argument(
        "--bound", type=int, action="append", required=True, help="the last length of a group, in words"
    )
    parser.add_argument("--trained", type=int, default=0, help="the longest of training, in words")
    parser.add_argument("--translations", type=Path, required=True, help="a folder with NAME.LANGUAGE")
    parser.add_argument("--scores", type=Path, required=True, help="a folder with NAME.json")
    parser.add_argument("--measured", type=Path, required=True, help="what measure.py wrote")
    parser.add_argument(
        "--system", action="append", required=True, metavar="LABEL:NAME", help="a label may have several"
    )
    parser.add_argument("--output", type=Path, required=True, help="without its end: .json and .png are written")
    asked = parser.parse_args()
    references = list(read(asked.reference))
    groups = members(list(read(asked.source)), asked.bound)
    seeds: dict[str, list[list[Row]]] = {}
    for label, _, name in (word.partition(":") for word in asked.system):
        refused = set(read_json(asked.scores / f"{name}.json").get("refused", []))
        lines = list(read(asked.translations / f"{name}.{asked.language}"))
        seeds.setdefault(label, []).append(scored(lines, refused, references, groups, asked.language))
    systems = {label: averaged(rows) for label, rows in seeds.items()}
    within = sum(bucket.high is not None and bucket.high <= asked.trained for bucket in groups)
    draw(systems, asked.trained, within, asked.output.with_name(asked.output.name + ".png"))
    facts = {"trained": asked.trained, "systems": systems, "reasons": reasons(systems, read_json(asked.measured))}
    write_whole(asked.output.with_name(asked.output.name + ".json"), json.dumps(facts, indent=1) + "\n")


if __name__ == "__main__":
    main()
