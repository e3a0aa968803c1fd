"""Write comparison.json and bleu.png: scores and cost of each encoding, with a significance test against the first."""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from sacrebleu.metrics import CHRF
from sacrebleu.significance import PairedTest

from fairseq_posenc.analysis import scores, style
from fairseq_posenc.analysis.results import score
from recipes.lib.encodings import Either, add_option, parse_stacks
from recipes.lib.lines import read
from recipes.lib.logs import training_log
from recipes.lib.package import Divergence, read_divergence, write_whole
from recipes.lib.recipe import Row
from recipes.lib.records import cost
from recipes.lib.stages import content, read_json
from recipes.lib.translation.score import bleu_of
from recipes.lib.values import Refused

from .finished import Finished, finished
from .layout import Direction, Place, Variant
from .published import paper

Scores = dict[str, dict[str, Any]]  # results by metric
METRICS = ("BLEU", "chrF2")


def bootstrap(translations: dict[str, list[str]], references: list[str], language: str) -> dict[str, Scores]:
    """Compare every system with the first one by sacrebleu's paired bootstrap test.

    The result has the score, interval, p-value and signature of each system, keyed by metric. For translations that
    equal those of the first system, p is set to 1. sacrebleu itself would report a p-value of 0.001, because no
    bootstrap sample has a larger difference.
    """
    metrics = {"BLEU": bleu_of(language), "chrF2": CHRF()}
    signatures, scores = PairedTest(list(translations.items()), metrics, [references], "bs")()
    results = {
        name: {metric: {**vars(scores[metric][number]), "signature": str(signatures[metric])} for metric in metrics}
        for number, name in enumerate(translations)
    }
    first, *others = translations
    for name in others:
        if translations[name] == translations[first]:
            for metric in metrics:
                results[name][metric]["p_value"] = 1.0
    return results


def tested(variants: list[Variant], direction: Direction, place: Place, text: Place) -> dict[str, Scores]:
    """Return the results of one seed's models, by label; models that diverged or refused sentences have no score."""
    finished = [model for model in variants if divergence(place, model) is None]
    refused = {model.slug: read_json(place.path("scores", f"{model.slug}.json")).get("refused") for model in finished}
    whole = [model for model in finished if not refused[model.slug]]
    files = {model.encoding.label: place.path("translations", f"{model.slug}.{direction.target}") for model in whole}
    references = list(read(text.path("raw", f"test.{direction.target}")))
    if not files:
        return {}
    results = bootstrap({label: list(read(path)) for label, path in files.items()}, references, direction.target)
    if variants[0] not in whole:  # no baseline to compare with
        for scores in results.values():
            for metric in METRICS:
                scores[metric]["p_value"] = None
    return results


def divergence(place: Place, variant: Variant) -> Divergence | None:
    """Return how the training of a model diverged, or None if it did not diverge."""
    name = place.stage("train", variant.slug).partition(":")[2]
    return read_divergence(training_log(place.output, name))


def diverged(place: Place, variants: list[Variant]) -> Row:
    """Return how the training runs of an encoding diverged, and the name of its first model that did not diverge."""
    divergences = {variant: divergence(place, variant) for variant in variants}
    mark = "seed {}: {}" if len(variants) > 1 else "{1}"
    texts = [mark.format(variant.seed, text) for variant, text in divergences.items() if text]
    return {
        "diverged": "; ".join(texts) or None,
        "checkpoint": next((variant.slug for variant in variants if not divergences[variant]), None),
    }


def row(encoding: Either, seeds: list[Scores], direction: Direction, differs: list[str]) -> Row:
    """Return the scores of an encoding: means over the seeds, and the largest p-value of any seed."""
    bleu, chrf = ([scores[metric] for scores in seeds] for metric in METRICS)
    return {
        "direction": direction.label,
        "encoding": encoding.label,
        "BLEU": _mean(bleu, "score"),
        "sd": round(stdev(float(score["score"]) for score in bleu), 2) if len(bleu) > 1 else None,
        "paper": None if "text" in differs else paper(encoding, direction.label),
        "differs from the paper": differs,
        "±": _mean(bleu, "ci"),
        "p": _largest(bleu),
        "chrF": _mean(chrf, "score"),
        "p (chrF)": _largest(chrf),
        "BLEU of seeds": [round(float(score["score"]), 2) for score in bleu],
        "p of seeds": [_rounded(score["p_value"], 4) for score in bleu],
        "signature of BLEU": bleu[0]["signature"] if bleu else None,
        "signature of chrF": chrf[0]["signature"] if chrf else None,
    }


def costs(measured: dict[str, Any]) -> Row:
    """Return the cost columns of a model; they are None for a diverged model, which is not measured."""
    return {
        "parameters": measured.get("parameters"),
        "words/s, training": _rounded(measured.get("training_words_per_second")),
        "time of a step": _rounded(measured.get("training_time_ratio"), 2),
        "words/s, translation": _rounded(measured.get("translation_words_per_second")),
        "time of translation": _rounded(measured.get("translation_time_ratio"), 2),
        "MB, translation": _rounded(measured.get("translation_peak_mb")),
        "memory of translation": _rounded(measured.get("translation_memory_ratio"), 3),
        "MB beyond the model": _rounded(measured.get("translation_extra_mb"), 1),
    }


def _mean(scores: list[dict[str, Any]], key: str) -> float | None:
    return round(mean(float(score[key]) for score in scores), 2) if scores else None


def _largest(scores: list[dict[str, Any]]) -> float | None:
    values = [score["p_value"] for score in scores]
    return None if not values or None in values else _rounded(max(values), 4)


def _rounded(value: float | None, digits: int | None = None) -> float | None:
    return None if value is None else round(float(value), digits)


def rows(
    direction: Direction, groups: list[list[Variant]], place: Place, text: Place, differs: list[str], unmeasured: bool
) -> list[Row]:
    """Return one row for each encoding; `groups` holds one group of models per seed."""
    results = [tested(variants, direction, place, text) for variants in groups]
    measured = {} if unmeasured else read_json(place.path("measured.json"))
    lengths = place.path("lengths.json")
    by_length = read_json(lengths)["systems"] if lengths.exists() else {}
    table: list[Row] = []
    for number, first in enumerate(groups[0]):
        label = first.encoding.label
        seeds = [scores[label] for scores in results if label in scores]
        variants = [group[number] for group in groups]
        trained = cost(place.output, *(place.stage("train", variant.slug) for variant in variants))
        facts = {"by length": by_length.get(label), "seeds": len(seeds), **diverged(place, variants)}
        table.append(row(first.encoding, seeds, direction, differs) | costs(measured.get(label, {})) | facts | trained)
    return table


@dataclass(frozen=True)
class Own:
    """Hold the text and the baselines of this run.

    The rows of an earlier run are added to the table only if that run has the same text and baselines.

    Args:
        texts: Folders that contain the text, keyed by pair of languages.
        baselines: Translations by the first encoding for each direction, one file per seed.
    """

    texts: dict[frozenset[str], Place]
    baselines: dict[Direction, list[Path]]

    def refuse(self, earlier: Finished, encoding: str) -> None:
        """Check that the rows of an earlier run can be compared with those of this run.

        Raises:
            SystemExit: The earlier run and this run have different texts or baselines.
        """
        for pair, ours in self.texts.items():
            if (theirs := earlier.text(pair)) is None:
                continue
            for name in (f"{split}.{language}" for split in ("train", "test") for language in sorted(pair)):
                if content(theirs.path("raw", name)) != content(ours.path("raw", name)):
                    problem = f"the earlier run's text raw/{name} differs from the text of this run"
                    raise SystemExit(f"error: --beside {earlier.folder}: {problem}. Leave this folder out.")
        for direction in self.shared(earlier):
            first = earlier.settings.encodings[0].label
            if first != encoding:
                problem = (
                    f"for {direction.label}, the first encoding is {first} in the earlier run, but {encoding} in this "
                    "run"
                )
            elif earlier.baseline(direction) != [content(path) for path in self.baselines[direction]]:
                problem = f"the translations of the encoding {first} for {direction.label} differ between the two runs"
            else:
                continue
            raise SystemExit(f"error: --beside {earlier.folder}: {problem}. Train all encodings in one run.")

    def shared(self, earlier: Finished) -> list[Direction]:
        return [direction for direction in earlier.settings.directions if direction in self.baselines]


def beside(folders: list[Path], own_rows: list[Row], own: Own) -> list[Row]:
    """Return the rows of earlier runs, except for baselines that this run also has.

    Raises:
        SystemExit: A row exists twice or cannot be compared, or a folder has no comparison.json.
    """
    rows = list[Row]()
    known = {(row["direction"], row["encoding"]) for row in own_rows}
    baseline = str(own_rows[0]["encoding"])
    for folder in folders:
        path = folder / "comparison.json"
        if not path.is_file():
            problem = f"{path} does not exist. Give the folder of a finished run of this recipe."
            raise SystemExit(f"error: --beside {folder}: {problem}")
        try:
            earlier = finished(folder, "--beside")
        except Refused as error:
            raise SystemExit(f"error: {error}") from None
        own.refuse(earlier, baseline)
        same = {(direction.label, baseline) for direction in own.shared(earlier)}
        for row in read_json(path):
            name = (row["direction"], row["encoding"])
            if name not in earlier.labels or name in same:
                continue
            where = f"error: --beside {folder}: the row {' '.join(map(str, name))}"
            if row.keys() != own_rows[0].keys():
                raise SystemExit(f"{where} was written by another version of the recipe. Repeat the earlier run.")
            if name in known:
                raise SystemExit(f"{where} is already in the table. Leave this folder out.")
            known.add(name)
            rows.append(row)
    return rows


def draw(rows: list[Row], folder: Path) -> None:
    """Draw the rows that have a score into bleu.png, which has a panel for each direction."""
    items = [score({"recipe": "BLEU"}, row, "BLEU") for row in rows if row["BLEU"] is not None]
    if items:
        style.save(scores.draw(items, baseline=rows[0]["encoding"]), scores.rows(items), folder, "bleu")


def compare(arguments: argparse.Namespace) -> list[Row]:
    """Return the rows of all directions, and the rows of earlier runs."""
    encodings = parse_stacks(arguments.pos_enc)
    groups = [[Variant(encoding, seed, arguments.seed) for encoding in encodings] for seed in arguments.trained_seed]
    directions = [Direction(*languages) for languages in arguments.direction]
    table, own = list[Row](), Own({}, {})
    for direction in directions:
        place = Place(arguments.output, "", direction.label if len(directions) > 1 else "")
        text = own.texts.setdefault(direction.pair, place)
        firsts = [group[0].slug for group in groups]
        own.baselines[direction] = [place.path("translations", f"{slug}.{direction.target}") for slug in firsts]
        table += rows(direction, groups, place, text, arguments.differs, arguments.unmeasured)
    return table + beside(arguments.beside, table, own)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    option = parser.add_argument
    option("--output", type=Path, required=True, metavar="DIR", help="Folder of the run.")
    names, text = ("SOURCE", "TARGET"), "Source and target language of a direction that the run trained."
    option("--direction", nargs=2, action="append", required=True, metavar=names, help=text)
    add_option(parser, "compare with the first one")
    text = "Random seed of the run; file names do not contain this seed."
    option("--seed", type=int, required=True, metavar="N", help=text)
    text = "Random seed with which all encodings were trained."
    option("--trained-seed", type=int, action="append", required=True, metavar="N", help=text)
    text = "Difference between the run and the paper; the option may be repeated."
    option("--differs", action="append", default=[], metavar="NAME", help=text)
    option("--unmeasured", action="store_true", help="Leave out parameters, speed and memory of the models.")
    text = "Folder of an earlier run whose rows are added to the table."
    option("--beside", type=Path, action="append", default=[], metavar="DIR", help=text)
    arguments = parser.parse_args()
    table = compare(arguments)
    draw(table, arguments.output)
    write_whole(arguments.output / "comparison.json", json.dumps(table, indent=1) + "\n")


if __name__ == "__main__":
    main()
