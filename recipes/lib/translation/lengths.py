"""Compute BLEU by the length of the source in words, as a table and a figure.

If training used short sentences only, BLEU on longer sentences shows whether an encoding extrapolates. A system that
has too few positions refuses long sentences. For lengths with refused sentences, the table shows the number of refused
sentences instead of BLEU.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

from recipes.lib.curves import draw_groups
from recipes.lib.lines import read
from recipes.lib.package import write_whole
from recipes.lib.recipe import Row
from recipes.lib.stages import read_json
from recipes.lib.translation.score import bleu_of, with_interval


@dataclass(frozen=True)
class Bucket:
    """Hold a range of lengths from `low` to `high` words, inclusive; None means no upper bound."""

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
    """Return the buckets (ranges of lengths) with these upper bounds, and one bucket for all longer sentences."""
    ends = sorted(set(bounds))
    starts = [1, *(end + 1 for end in ends)]
    return [Bucket(low, high) for low, high in zip(starts, [*ends, None], strict=True)]


def members(sources: list[str], bounds: list[int]) -> dict[Bucket, list[int]]:
    """Return the sentence numbers (from 0) in each bucket that has sentences."""
    counts = [len(source.split()) for source in sources]
    groups = {
        bucket: [number for number, words in enumerate(counts) if bucket.holds(words)] for bucket in buckets(bounds)
    }
    return {bucket: numbers for bucket, numbers in groups.items() if numbers}


def scored(
    translations: list[str], refused: set[int], references: list[str], groups: Mapping[Bucket, list[int]], language: str
) -> list[Row]:
    """Return one row per bucket with the BLEU of a system and the 95 % interval of this BLEU over the sentences.

    The interval is None if the bucket has a single sentence.
    """
    metric = bleu_of(language)
    rows: list[Row] = []
    for bucket, numbers in groups.items():
        missing = len(refused.intersection(numbers))
        bleu = within = None
        if not missing:
            bleu, within = with_interval(metric, [translations[n] for n in numbers], [references[n] for n in numbers])
        rows.append({"words": bucket.label, "sentences": len(numbers), "bleu": bleu, "±": within, "refused": missing})
    return rows


def averaged(seeds: list[list[Row]]) -> list[Row]:
    """Return the mean scores and intervals of several training runs, which all refuse the same sentences."""
    return [
        {**rows[0], **{name: _mean(row[name] for row in rows) for name in ("bleu", "±")}}
        for rows in zip(*seeds, strict=True)
    ]


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return round(mean(known), 2) if known else None


def draw(systems: Mapping[str, list[Row]], trained: int, within: int, path: Path) -> None:
    """Draw a line of BLEU by length with intervals for each system, and a dashed line at the longest training length.

    Args:
        systems: Rows of each system, keyed by its label.
        trained: Maximum length of a training sentence in words; if it is 0, no dashed line is drawn.
        within: Number of buckets with lengths that occur in training.
        path: PNG file to write.
    """
    first = next(iter(systems.values()), [])
    groups = [f"{row['words']}\nn = {row['sentences']}" for row in first]
    scores = {name: [row["bleu"] for row in rows] for name, rows in systems.items()}
    limit = (f"trained on at most {trained} words", within) if trained else None
    widths = {name: [row["±"] for row in rows] for name, rows in systems.items()}
    draw_groups(groups, scores, ("length of the source in words", "sacreBLEU"), path, limit=limit, within=widths)


def reasons(systems: Mapping[str, list[Row]], measured: Mapping[str, Any]) -> dict[str, str]:
    """Return why systems refused sentences, keyed by system, as texts such as `has positions for 20 source pieces`."""
    texts = {}
    for name, rows in systems.items():
        if any(row["refused"] for row in rows):
            if name not in measured:
                texts[name] = "does not have enough positions for long sentences"
                continue
            source, target = measured[name]["positions"]
            texts[name] = (
                f"has positions for {source or 'any number of'} source pieces and {target or 'any number of'} target "
                "pieces, including </s>"
            )
    return texts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    option = parser.add_argument
    option("--source", type=Path, required=True, metavar="FILE", help="Raw source text of the test set.")
    option("--reference", type=Path, required=True, metavar="FILE", help="Raw references of the test set.")
    option("--language", required=True, metavar="NAME", help="Language code of the references.")
    option(
        "--bound",
        type=int,
        action="append",
        required=True,
        metavar="N",
        help="Upper bound, in words, of a bucket (a range of lengths); the option may be repeated.",
    )
    text = "Maximum length of a training sentence in words (0: no limit)."
    option("--trained", type=int, default=0, metavar="N", help=text)
    option(
        "--translations", type=Path, required=True, metavar="DIR", help="Folder with the translations of the systems."
    )
    option("--scores", type=Path, required=True, metavar="DIR", help="Folder with the scores of the systems.")
    text = "Output of recipes.lib.translation.measure; it has the number of positions of each system."
    option("--measured", type=Path, metavar="FILE", help=text)
    text = (
        "Label of a system and name of its model. The scores of systems with the same label are averaged; "
        "models without scores are skipped."
    )
    option("--system", action="append", required=True, metavar="LABEL:NAME", help=text)
    option(
        "--output",
        type=Path,
        required=True,
        metavar="FILE",
        help="Path of the two output files, without the endings .json and .png.",
    )
    arguments = parser.parse_args()
    references = list(read(arguments.reference))
    groups = members(list(read(arguments.source)), arguments.bound)
    seeds: dict[str, list[list[Row]]] = {}
    for label, _, name in (word.partition(":") for word in arguments.system):
        file = arguments.scores / f"{name}.json"
        if not file.exists():
            print(f"{name} is left out, because it has no {file}.")
            continue
        refused = set(read_json(file).get("refused", []))
        lines = list(read(arguments.translations / f"{name}.{arguments.language}"))
        seeds.setdefault(label, []).append(scored(lines, refused, references, groups, arguments.language))
    systems = {label: averaged(rows) for label, rows in seeds.items()}
    within = sum(bucket.high is not None and bucket.high <= arguments.trained for bucket in groups)
    draw(systems, arguments.trained, within, arguments.output.with_name(arguments.output.name + ".png"))
    why = reasons(systems, read_json(arguments.measured) if arguments.measured else {})
    facts = {"trained": arguments.trained, "systems": systems, "reasons": why}
    write_whole(arguments.output.with_name(arguments.output.name + ".json"), json.dumps(facts, indent=1) + "\n")


if __name__ == "__main__":
    main()
