"""Write comparison.json and bleu.png: scores and cost of each encoding, and its significance against the first."""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from sacrebleu.metrics import CHRF
from sacrebleu.significance import PairedTest

from recipes.lib.encodings import Either, parse_stacks
from recipes.lib.lines import read
from recipes.lib.package import write_whole
from recipes.lib.recipe import Row
from recipes.lib.records import cost
from recipes.lib.stages import content, read_json
from recipes.lib.translation.figure import Bars, draw_panels
from recipes.lib.translation.score import bleu_of
from recipes.lib.values import Refused

from .finished import Finished, finished
from .layout import Direction, Place, Variant
from .published import paper

Found = dict[str, dict[str, Any]]  # results by metric
METRICS = ("BLEU", "chrF2")


def bootstrap(translations: dict[str, list[str]], references: list[str], language: str) -> dict[str, Found]:
    """Run sacrebleu's paired bootstrap of every system against the first.

    The result has score, interval, p and signature by metric. Translations that equal the first system's get p = 1.
    sacrebleu would report p = 0.001, because its test counts the samples with a larger difference, and here no sample
    differs.
    """
    metrics = {"BLEU": bleu_of(language), "chrF2": CHRF()}
    signatures, scores = PairedTest(list(translations.items()), metrics, [references], "bs")()
    found = {
        name: {metric: {**vars(scores[metric][number]), "signature": str(signatures[metric])} for metric in metrics}
        for number, name in enumerate(translations)
    }
    first, *others = translations
    for name in others:
        if translations[name] == translations[first]:
            for metric in metrics:
                found[name][metric]["p_value"] = 1.0
    return found


def tested(variants: list[Variant], direction: Direction, place: Place, text: Place) -> dict[str, Found]:
    """Return the results of one seed's models, by label; a model that refused sentences has no score."""
    refused = {one.slug: read_json(place.path("scores", f"{one.slug}.json")).get("refused") for one in variants}
    whole = [one for one in variants if not refused[one.slug]]
    files = {one.encoding.label: place.path("translations", f"{one.slug}.{direction.target}") for one in whole}
    references = list(read(text.path("raw", f"test.{direction.target}")))
    if not files:
        return {}
    found = bootstrap({label: list(read(path)) for label, path in files.items()}, references, direction.target)
    if variants[0] not in whole:  # no baseline to compare with
        for one in found.values():
            for metric in METRICS:
                one[metric]["p_value"] = None
    return found


def row(encoding: Either, seeds: list[Found], direction: Direction, differs: str) -> Row:
    """Return the scores of an encoding: means over the seeds, and the largest p of the seeds."""
    bleu, chrf = ([found[metric] for found in seeds] for metric in METRICS)
    scores = [round(float(one["score"]), 2) for one in bleu]
    return {
        "direction": direction.label,
        "encoding": encoding.label,
        "BLEU": _mean(bleu, "score"),
        "sd": round(stdev(float(one["score"]) for one in bleu), 2) if len(bleu) > 1 else None,
        "paper": paper(encoding, direction.label),
        "differs from the paper": differs,
        "±": _mean(bleu, "ci"),
        "p": _largest(bleu),
        "chrF": _mean(chrf, "score"),
        "p (chrF)": _largest(chrf),
        "BLEU of seeds": scores,
        "p of seeds": [_rounded(one["p_value"], 4) for one in bleu],
        "signature of BLEU": bleu[0]["signature"] if bleu else None,
        "signature of chrF": chrf[0]["signature"] if chrf else None,
    }


def costs(measured: dict[str, Any]) -> Row:
    return {
        "parameters": measured["parameters"],
        "words/s, training": _rounded(measured["training_words_per_second"]),
        "time of a step": _rounded(measured["training_time_ratio"], 2),
        "words/s, translation": _rounded(measured["translation_words_per_second"]),
        "time of translation": _rounded(measured["translation_time_ratio"], 2),
        "MB, translation": _rounded(measured["translation_peak_mb"]),
        "memory of translation": _rounded(measured["translation_memory_ratio"], 3),
        "MB beyond the model": _rounded(measured["translation_extra_mb"], 1),
    }


def _mean(found: list[dict[str, Any]], key: str) -> float | None:
    return round(mean(float(one[key]) for one in found), 2) if found else None


def _largest(found: list[dict[str, Any]]) -> float | None:
    values = [one["p_value"] for one in found]
    return None if not values or None in values else _rounded(max(values), 4)


def _rounded(value: float | None, digits: int | None = None) -> float | None:
    return None if value is None else round(float(value), digits)


def rows(direction: Direction, groups: list[list[Variant]], place: Place, text: Place, differs: str) -> list[Row]:
    """Return one row for each encoding; `groups` holds the models of each seed."""
    found = [tested(variants, direction, place, text) for variants in groups]
    measured = read_json(place.path("measured.json"))
    lengths = place.path("lengths.json")
    by_length = read_json(lengths)["systems"] if lengths.exists() else {}
    made: list[Row] = []
    for number, first in enumerate(groups[0]):
        label = first.encoding.label
        seeds = [one[label] for one in found if label in one]
        variants = [one[number] for one in groups]
        trained = cost(place.output, *(place.stage("train", one.slug) for one in variants))
        row_ = row(first.encoding, seeds, direction, differs) | costs(measured[label])
        made.append(row_ | {"by length": by_length.get(label), "seeds": [one.seed for one in variants]} | trained)
    return made


@dataclass(frozen=True)
class Own:
    """The text and the baselines of this run, with which those of earlier runs must agree.

    Args:
        texts: Places of the text, by pair of languages.
        baselines: Translations by the first encoding for each direction, one file per seed.
    """

    texts: dict[frozenset[str], Place]
    baselines: dict[Direction, list[Path]]

    def refuse(self, earlier: Finished, encoding: str) -> None:
        """Check that the rows of an earlier run can be compared with those of this run.

        Raises:
            SystemExit: The earlier run has another text, or its models were compared with another baseline.
        """
        for pair, ours in self.texts.items():
            if (theirs := earlier.text(pair)) is None:
                continue
            for name in (f"{split}.{language}" for split in ("train", "test") for language in sorted(pair)):
                if content(theirs.path("raw", name)) != content(ours.path("raw", name)):
                    raise SystemExit(f"error: --beside {earlier.folder}: its raw/{name} is not the same text as here")
        for direction in self.shared(earlier):
            first = earlier.settings.encodings[0].label
            if first != encoding:
                what = f"{direction.label} was compared with {first}, here with {encoding}"
            elif earlier.baseline(direction) != [content(path) for path in self.baselines[direction]]:
                what = f"its {first} of {direction.label} is another model, or of other seeds, than the one here"
            else:
                continue
            raise SystemExit(f"error: --beside {earlier.folder}: {what}: train those encodings in one run")

    def shared(self, earlier: Finished) -> list[Direction]:
        return [one for one in earlier.settings.directions if one in self.baselines]


def beside(folders: list[Path], made: list[Row], own: Own) -> list[Row]:
    """Return the rows of earlier runs, except their baselines for directions of this run, which equal this run's.

    Raises:
        SystemExit: A row exists twice or cannot be compared, or a folder has no comparison.
    """
    found = list[Row]()
    known = {(row["direction"], row["encoding"]) for row in made}
    baseline = str(made[0]["encoding"])
    for folder in folders:
        path = folder / "comparison.json"
        if not path.is_file():
            raise SystemExit(f"error: {path}: no such file: --beside is for folders of finished runs of this recipe")
        try:
            earlier = finished(folder, "--beside")
        except Refused as error:
            raise SystemExit(f"error: {error}") from None
        own.refuse(earlier, baseline)
        same = {(one.label, baseline) for one in own.shared(earlier)}
        for one in read_json(path):
            name = (one["direction"], one["encoding"])
            if name not in earlier.labels or name in same:
                continue
            if one.keys() != made[0].keys():
                raise SystemExit(f"error: --beside: {one['encoding']} was compared by another version: run it again")
            if name in known:
                raise SystemExit(f"error: --beside: {' '.join(map(str, name))} is there already")
            known.add(name)
            found.append(one)
    return found


def panels(made: list[Row]) -> dict[str, Bars]:
    """Return the bars of the figure by direction, for the rows that have a score."""
    found: dict[str, Bars] = {}
    for one in made:
        if one["BLEU"] is not None:
            bars = found.setdefault(one["direction"], Bars({}, one["encoding"], {}))
            bars.values[one["encoding"]] = one["BLEU"]
            bars.within[one["encoding"]] = one["±"]
    return found


def compare(asked: argparse.Namespace) -> list[Row]:
    """Return the rows of all directions, and those of earlier runs."""
    encodings = parse_stacks(asked.pos_enc)
    groups = [[Variant(one, seed, asked.seed) for one in encodings] for seed in asked.trained_seed]
    directions = [Direction(*languages) for languages in asked.direction]
    made, own = list[Row](), Own({}, {})
    for direction in directions:
        place = Place(asked.output, "", direction.label if len(directions) > 1 else "")
        text = own.texts.setdefault(direction.pair, place)
        firsts = [group[0].slug for group in groups]
        own.baselines[direction] = [place.path("translations", f"{slug}.{direction.target}") for slug in firsts]
        made += rows(direction, groups, place, text, asked.differs)
    return made + beside(asked.beside, made, own)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True, help="the recipe's folder")
    parser.add_argument("--direction", nargs=2, action="append", required=True, metavar=("SOURCE", "TARGET"))
    parser.add_argument("--pos-enc", action="append", required=True, help="the first is compared with")
    parser.add_argument("--seed", type=int, required=True, help="of the run")
    parser.add_argument("--trained-seed", type=int, action="append", required=True)
    parser.add_argument("--differs", default="", help="in what the run departs from the paper's")
    parser.add_argument("--beside", type=Path, action="append", default=[], help="folders of earlier runs")
    asked = parser.parse_args()
    made = compare(asked)
    draw_panels(panels(made), "sacreBLEU, 95 % intervals (dashed: the first)", asked.output / "bleu.png")
    write_whole(asked.output / "comparison.json", json.dumps(made, indent=1) + "\n")


if __name__ == "__main__":
    main()
