"""Write results.md, results.json and results.html: the models' scores, what papers report, and how to repeat the run.

python -m recipes.lib.report --run DIR --metric BLEU --paper DIET --table 'Table 4' --column ITEM --like table4-vaswani

Each metric gets its mean over the seeds, the 95 % interval of the mean, and the p-value of Welch's t-test against the
first encoding, with Holm's correction for the number of encodings.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from statistics import mean, median, stdev
from typing import Any

from fairseq_posenc.core.training_log import read_losses, read_parameters
from fairseq_posenc.papers.reading import figures

from . import curves, departures, pages, runs
from .encodings import published
from .machine import machine, versions
from .significance import holm, interval, welch

Row = dict[str, Any]
PRECISE = 4  # decimals of the scores of single seeds


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    result = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    one, file = result.add_argument, partial(result.add_argument, type=Path, metavar="FILE")
    many = partial(result.add_argument, action="append", default=[])
    one("--run", type=Path, required=True, metavar="DIR", help="Output folder of the recipe.")
    file("--models", help="Table of the models (default: models.tsv in the run).")
    one("--scores", type=Path, metavar="DIR", help="Folder with the scores (default: scores in the run).")
    many("--metric", required=True, metavar="TITLE[=KEY]", help="Score to report; the first is the main one.")
    many("--detail", metavar="TITLE[=KEY]", help="Score for the second table; KEY may have a *.")
    one("--item", default="task", metavar="TITLE", help="Heading of the items.")
    one("--average", action="store_true", help="Add a row for the average over all items.")
    one("--lower", action="store_true", help="Lower scores are better.")
    one("--range", metavar="LOW..HIGH", help="Possible scores (default: 0..100, or 0.. with --lower).")
    one("--digits", type=int, default=2, metavar="N", help="Number of decimals.")
    one("--centre", choices=["mean", "median"], default="mean", help="What a score is over the seeds.")
    one("--within", default="±", metavar="KEY", help="Score that is half the width of a single seed's interval.")
    one("--p", metavar="TITLE=KEY", help="Column with the largest p-value of any seed, which a step has computed.")
    one("--paper", metavar="NAME", help="Paper whose numbers stand beside ours.")
    many("--table", metavar="NAME", help="Table of the paper.")
    many("--column", metavar="[TITLE=]NAME", help="Its column (for a metric or an item); ITEM or METRIC: of that name.")
    many("--condition", metavar="NAME=VALUE", help="Condition of the paper's number.")
    file("--paper-numbers", help='JSON: {"ITEM": {"ENCODING": {"METRIC": "TEXT"}}}.')
    many("--like", metavar="[ITEM=]PRESET", help="Preset that reproduces the paper's table.")
    many("--same", metavar="NAME", help="Setting or flag that need not be that of --like.")
    one("--intervals", action="store_true", help="How often a run validates and saves must be that of --like, too.")
    file("--differs-also", help="Further differences, one a line; with ITEM and a tab before it, of one item.")
    file("--baselines", help='JSON: {"NAME": {"METRIC": 1.5}} or {"NAME": {"ITEM": {"METRIC": 1.5}}}.')
    many("--note", metavar="TEXT", help="Sentence below the table.")
    file("--notes", help="Markdown below the table.")
    one("--curves", default="loss", metavar="NAME", help="Logged validation score, perplexity or none.")
    file("--floor", help='JSON: {"LABEL": 9.8}: a dashed line among the curves.')
    return result


class Report:
    """Collect the rows of a run: one for each item and encoding.

    Args:
        args: The parsed command line.
        models: The models of the run.
        ours: Settings of the run.
    """

    def __init__(self, args: argparse.Namespace, models: list[runs.Model], ours: departures.Settings) -> None:
        self.args, self.models, self.ours = args, models, ours
        self.metrics = dict(_pair(text) for text in args.metric)
        self.main = next(iter(self.metrics))
        self.scores = list(_by_item(models))
        if args.average:
            self.scores += self._averages()
        self.items = list(dict.fromkeys(item for _, item, _ in self.scores)) or [""]
        self.encodings = list(dict.fromkeys(model.encoding for model in models))
        high = "" if args.lower else "100"
        self.low, self.high = (float(end) if end else float("inf") for end in (args.range or f"0..{high}").split(".."))

    def _averages(self) -> list[tuple[runs.Model, str, runs.Scores]]:
        """Return the averages over the items, for each encoding and seed that has a score in all of them."""
        items = {item for _, item, _ in self.scores}
        groups: dict[tuple[str, int], list[tuple[runs.Model, runs.Scores]]] = {}
        for model, _, values in self.scores:
            if values:
                groups.setdefault((model.encoding, model.seed), []).append((model, values))
        return [
            (group[0][0], "average", {key: mean(values[key] for _, values in group) for key in self.metrics.values()})
            for group in groups.values()
            if len(group) == len(items) and all(key in values for _, values in group for key in self.metrics.values())
        ]

    def rows(self) -> list[Row]:
        """Return the rows of all items, with the baselines after those of their item."""
        baselines = _json(self.args.baselines)
        rows: list[Row] = []
        for item in self.items:
            here = {model.encoding for model, own, _ in self.scores if own == item}
            own = [self._row(item, encoding) for encoding in self.encodings if encoding in here]
            for title in self.metrics:
                each = [row.get(f"{title} of seeds", []) for row in own]
                corrected = [None, *holm([welch(each[0], other) for other in each[1:]])]
                for row, p in zip(own, corrected, strict=True):
                    row["p" if title == self.main else f"p ({title})"] = None if p is None else round(p, 4)
            rows += own
            for name, scores in baselines.items():
                values = scores.get(item, {}) if any(isinstance(value, dict) for value in scores.values()) else scores
                if values:
                    rows.append({self.args.item: item, "model": name, **{key: values.get(key) for key in self.metrics}})
        return rows

    def _row(self, item: str, encoding: str) -> Row:
        chosen = [(model, values) for model, own, values in self.scores if (own, model.encoding) == (item, encoding)]
        row: Row = {self.args.item: item, "encoding": encoding}
        for title, key in self.metrics.items():
            row |= self._score(title, [float(values[key]) for _, values in chosen if _is_number(values.get(key))])
        if len(chosen) == 1:
            row["±"] = chosen[0][1].get(self.args.within)
        if self.args.p:
            title, key = _pair(self.args.p)
            row[title] = max((values[key] for _, values in chosen if values.get(key) is not None), default=None)
        for text in self.args.detail:
            title, pattern = _pair(text)
            known = dict.fromkeys(key for _, _, values in self.scores for key in values if fnmatchcase(key, pattern))
            for key in known if "*" in pattern else [pattern]:
                found = [values[key] for _, values in chosen if _is_number(values.get(key))]
                row[key if "*" in pattern else title] = round(mean(found), self.args.digits) if found else None
        row |= self._papers(item, encoding) | self._costs([model for model, _ in chosen])
        row |= {key: text for _, values in chosen for key, text in values.items() if isinstance(text, str)}
        row["failed"] = "; ".join(f"seed {model.seed}: {model.failed}" for model, _ in chosen if model.failed) or None
        return row

    def _score(self, title: str, scores: list[float]) -> Row:
        """Return the columns of a score: its mean or median over the seeds, its interval, and each seed's score."""
        digits, row = self.args.digits, Row()
        centre = median if self.args.centre == "median" else mean
        row[title] = round(centre(scores), digits) if scores else None
        if self.args.centre == "median" and scores:
            row["mean" if title == "score" else f"mean {title}"] = round(mean(scores), digits)
        if title == self.main:
            row["sd"] = round(stdev(scores), digits) if len(scores) > 1 else None
            row["seeds"] = len(scores)
        ends = interval(scores, self.low, self.high)
        row[f"{title}, 95 % interval"] = ends and [round(end, digits) for end in ends]
        row[f"{title} of seeds"] = [round(score, PRECISE) for score in scores]
        return row

    def _papers(self, item: str, encoding: str) -> Row:
        """Return the paper's numbers for this row, and how the run differs from the paper."""
        row, args = Row(), self.args
        columns = dict(text.partition("=")[::2] for text in args.column)
        last = next((name for name, column in columns.items() if not column), "")
        numbers = _json(args.paper_numbers).get(item, {}).get(encoding, {})
        for title in self.metrics:
            column = columns.get(title) or columns.get(item) or {"ITEM": item, "METRIC": title}.get(last, last)
            conditions = dict(_pair(text) for text in args.condition)
            tables = args.table or [None]
            of_tables = [n for t in tables for n in figures(args.paper, table=t, column=column or None, **conditions)]
            has_column = column or not columns  # with --column ROUGE-L=SQuAD, the paper has no BLEU-4
            figure = published(of_tables, encoding) if args.paper and has_column else None
            row["paper" if title == self.main else f"paper's {title}"] = figure.value if figure else numbers.get(title)
        if any(value is not None for value in row.values()):
            row["differs from the paper"] = self.differs(item)
        return row

    def differs(self, item: str) -> list[str]:
        """Return how the run differs from the preset that reproduces the paper's table."""
        presets = dict(text.rpartition("=")[::2] for text in self.args.like)
        chosen = [presets.get(item, presets.get(""))] if item != "average" else list(presets.values())
        same = [*self.args.same, *([] if self.args.intervals else departures.INTERVALS)]
        found = [text for name in chosen if name for text in departures.differences(self.ours, preset(name), same)]
        found += ["no preset reproduces this number"] * (chosen == [None])
        for line in self.args.differs_also.read_text().splitlines() if self.args.differs_also else []:
            own, tab, text = line.rpartition("\t")
            found += [text] if not tab or own == item else []
        return list(dict.fromkeys(found))

    def _costs(self, models: list[runs.Model]) -> Row:
        """Return the number of parameters, the speed and the duration of the models' trainings, as far as known."""
        logs = [log for model in models if (log := runs.training_log(self.args.run, model.name)).exists()]
        trainings = {step.name: step for step in runs.steps(self.args.run)}
        own = [trainings[f"train:{model.name}"] for model in models if f"train:{model.name}" in trainings]
        speeds = [speed for log in logs if (speed := read_losses(log).speed)]
        return {
            "parameters": read_parameters(logs[0]) if logs else None,
            "words/s, training": round(mean(speeds)) if speeds else None,
            "minutes": round(mean(step.seconds for step in own) / 60, 1) if own else None,
            "command": own[0].command if own else None,
            "commit": own[0].commit if own else None,
        }


def _pair(text: str) -> tuple[str, str]:
    title, _, key = text.partition("=")
    return title, key or title


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _json(path: Path | None) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path else {}
    return content


def _by_item(models: list[runs.Model]) -> Iterator[tuple[runs.Model, str, runs.Scores]]:
    """Yield the scores of each model for each item; a failed model has all items of its kind, without scores."""
    parts: dict[str, dict[str, None]] = {}
    for model in models:
        nested = [key for key, value in model.scores.items() if isinstance(value, dict)]
        parts.setdefault(model.item, {}).update(dict.fromkeys(nested))
    for model in models:
        for key in parts[model.item]:
            if model.failed or key in model.scores:
                yield model, f"{model.item}, {key}" if model.item else key, model.scores.get(key, {})
        if not parts[model.item]:
            yield model, model.item, model.scores


def _legend(model: runs.Model, models: list[runs.Model]) -> str:
    """Return a model's name in figures: its encoding and, where models differ in them, its item and its seed."""
    parts = [model.encoding]
    parts += [model.item] * (len({other.item for other in models}) > 1)
    parts += [f"seed {model.seed}"] * (len({other.seed for other in models}) > 1)
    return ", ".join(parts)


def preset(name: str) -> departures.Settings:
    """Return the settings of a preset, as the recipe itself reads them."""
    command = [f"{os.environ['HERE']}/run.sh", "--preset", name, "--settings"]
    process = subprocess.run(command, capture_output=True, text=True)
    if process.returncode:
        raise SystemExit(f"error: --like {name}: {process.stderr.strip()}")
    return runs.settings(process.stdout)


def main() -> None:
    args = parser().parse_args()
    if (args.paper or args.paper_numbers) and not args.like:
        raise SystemExit("error: a paper's numbers need --like PRESET, so that the table can say what differs.")
    models = runs.models(args.run, args.models, args.scores)
    ours = runs.settings((args.run / "settings.sh").read_text(encoding="utf-8"))
    report = Report(args, models, ours)
    rows = report.rows()
    curves.of_run(args.run, {model.name: _legend(model, models) for model in models}, args.curves, _json(args.floor))
    finished = runs.steps(args.run)
    facts = {
        "recipe": f"recipes/{ours['recipe']}",
        "command": (args.run / "command.sh").read_text(encoding="utf-8").strip(),
        "commit": " then ".join(dict.fromkeys(step.commit for step in finished)),
        "versions": versions(),
        "machine": machine(),
        "seeds": [int(seed) for seed in str(ours["seeds"]).split(",")],
        "settings": {name: _read(value) for name, value in ours.items()},
        "steps": [{"name": step.name, "seconds": step.seconds, "command": step.command} for step in finished],
        "results": rows,
    }
    pages.write(args, facts, list(report.metrics))


def _read(value: str | list[str]) -> object:
    """Return a setting as JSON has it: numbers as numbers, and flags by their names."""
    if isinstance(value, list):
        return {name: _read(text) for name, text in departures.flags(value).items()}
    try:
        return json.loads(value)
    except ValueError:
        return value


if __name__ == "__main__":
    main()
