"""Write the scores of fine-tuned models for the report, with the papers' numbers, what differs, and notes."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median
from typing import NamedTuple

from fairseq_posenc.metrics.squad import margin

from . import published
from .columns import Scores, data_of, main_columns, more_columns, record, slug
from .question_scores import GOLD

STRANGE = 0.05  # share of unknown pieces above which a score means little


class Trial(NamedTuple):
    """Describe a training run: its model and task, its seed, and its learning rate and number of epochs."""

    name: str
    encoding: str
    seed: int
    item: str
    hyperparameters: str
    failed: str = ""  # why it did not train to its end


class Outcome(NamedTuple):
    """Hold the scores of a training run by split, or the reason why it has none."""

    trial: Trial
    scores: Scores
    failed: str = ""


Group = list[Outcome]  # training runs that differ only in their seeds


class Table:
    """Collect the models' scores, and write them into a folder that recipes/lib/report.py reads.

    Attributes:
        models: Lines of models.tsv: name, encoding, seed and column of each score.
        behind: The results that do not beat their baseline by two standard errors.
        chosen: The hyperparameters of each model, if several were tried.
    """

    def __init__(self, folder: Path, run: Path, papers: str) -> None:
        self.folder, self.run, self.papers = folder, run, papers
        self.baselines = json.loads((run / "baselines.json").read_text("utf-8"))
        self.models, self.behind, self.chosen = list[str](), list[str](), list[str]()
        self.columns: dict[str, tuple[str, Path]] = {}  # the task and the prepared folder of each
        self.rows: dict[str, dict[str, dict[str, float]]] = {}  # of the baselines
        (folder / "scores").mkdir()

    def add(self, item: str, label: str, group: Group, *, several: bool = False) -> None:
        """Add the training runs of a model on a task, one for each seed."""
        data = data_of(self.run, item, label)
        known = self.baselines[item]["scores"]
        best = {name: main_columns(data, item, scores, self.papers) for name, scores in known.items()}
        for name, row in best.items():
            self.rows.setdefault(name, {}).update({column: {"score": score} for column, score in row.items()})
        columns = [*best[next(iter(best))]]
        self.columns |= dict.fromkeys(columns, (item, data))
        finished = [one for one in group if not one.failed]
        scores = {one.trial: main_columns(data, item, one.scores, self.papers) for one in finished}
        for one in group:
            more = more_columns(item, one.scores, self.papers) if not one.failed else {}
            for column in columns:
                # the report finds the log of a training by the name of its first column
                name = one.trial.name if column == columns[0] else f"{one.trial.name}.{slug(column)}"
                self.models.append(f"{name}\t{label}\t{one.trial.seed}\t{column}")
                text = one.failed or json.dumps(
                    {"score": scores[one.trial][column], **(more if column == columns[0] else {})}
                )
                file = self.folder / "scores" / f"{name}.{'failed' if one.failed else 'json'}"
                file.write_text(f"{text}\n", "utf-8")
        if several and finished:
            self.chosen.append(f"{label} on {', '.join(columns)}: {group[0].trial.hyperparameters}")
        margins = main_columns(data, item, self.margins(item, finished[0]), self.papers) if finished else {}
        for column in margins:
            constant = max(row[column] for name, row in best.items() if name != GOLD)
            if median(row[column] for row in scores.values()) <= constant + margins[column]:
                self.behind.append(f"{label} on {column}")

    def margins(self, item: str, one: Outcome) -> Scores:
        """Return by how much each score must be higher than that of the best baseline: two standard errors."""
        if "margins" in self.baselines[item]:
            margins: Scores = self.baselines[item]["margins"]
            return margins
        known = {name: own for name, own in self.baselines[item]["scores"].items() if name != GOLD}
        return {
            split: {
                name: max(margin(own[name], other[split][name], own["total"]) for other in known.values())
                for name in ("em", "f1")
            }
            for split, own in one.scores.items()
        }

    def write(self) -> None:
        """Write everything but the scores: models.tsv, baselines.json, paper.json, differs.txt and notes.md."""
        facts = json.loads((self.run / "models.json").read_text("utf-8"))
        data = [folder for folder in sorted((self.run / "data").iterdir()) if folder.is_dir()]
        notes = [f"- {folder.name}: {counted(folder)}." for folder in data]
        notes += [f"- Chosen on the development data: {text}." for text in self.chosen]
        if self.behind:
            notes.append(f"- These results do not beat the baseline by two standard errors: {'; '.join(self.behind)}.")
        files = {
            "models.tsv": self.models,
            "notes.md": notes,
            "differs.txt": published.differences(self.papers, facts, self.columns),
            "baselines.json": [json.dumps(self.rows, ensure_ascii=False)],
            "paper.json": [
                json.dumps(published.numbers(self.papers, facts, [*self.columns], data), ensure_ascii=False)
            ],
        }
        for name, lines in files.items():
            (self.folder / name).write_text("".join(f"{line}\n" for line in lines), "utf-8")


def counted(folder: Path) -> str:
    """Return a summary of a prepared folder: its rows or questions, what was cut or left out, and unknown pieces."""
    facts, parts = record(folder), list[str]()
    for split, own in facts["splits"].items():
        used = own["items"] if "items" in own else own["questions"]
        unknown = own.get("unknown", own.get("unknown pieces", 0)) / max(own["pieces"], 1)
        parts.append(f"{split}: {used:,} of {own['given']:,} used")
        if "windows" in own:
            mean, long = (own[name] / used for name in ("pieces without windows", "sequences over 512 pieces"))
            parts[-1] += f" in {own['windows']:,} windows ({mean:.1f} pieces on average, {long:.1%} over 512)"
        parts[-1] += f", {own['cut']:,} cut to {facts['longest']} pieces" if own.get("cut") else ""
        parts[-1] += f", {unknown:.2%} of the pieces unknown to the model" if unknown else ""
        parts[-1] += " (too many: the score means little)" if unknown > STRANGE else ""
    for kind, actions in facts["problems"].items():
        parts.append(f"{kind}: {' and '.join(f'{number:,} {action}' for action, number in actions.items())}")
    return "; ".join(parts)
