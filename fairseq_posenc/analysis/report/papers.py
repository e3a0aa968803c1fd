"""Collect the papers' tables that recipes reproduce: each number with our score or the command that computes it."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ...core.options import describe
from ...encodings import get
from ...encodings.building import parse
from ...encodings.registry import kind_of
from ...papers.matching import PRETRAINED, are_those_of, option_values
from ...papers.reading import Figure, every
from ..results import Score, is_number
from .runs import Entry


class Target(NamedTuple):
    """Describe which recipe reproduces a number of a paper, and which columns hold our score and the paper's number.

    Args:
        recipe: Folder in recipes/.
        task: Task of the row, as the main table shows it; empty if any task will do.
        score: Column of our score.
        paper: Column in which the recipe writes the paper's number, if it can be compared with our score.
        arguments: Arguments of the recipe.
    """

    recipe: str
    task: str
    score: str
    paper: str
    arguments: list[str]

    @property
    def command(self) -> str:
        """Return the command that computes our score."""
        return shlex.join([f"recipes/{self.recipe}/run.sh", *self.arguments])


class PaperCell(NamedTuple):
    """Hold a paper's number with our score or, if there is none, with the command that computes our score."""

    printed: str
    ours: Score | None
    differs: str
    command: str


class PaperTable(NamedTuple):
    """Hold a table of a paper: its title, its columns, and its rows, keyed by their names and conditions."""

    title: str
    columns: list[str]
    rows: dict[str, dict[str, PaperCell]]

    @property
    def filled(self) -> int:
        """Return how many cells have a score of a recipe run."""
        return sum(cell.ours is not None for row in self.rows.values() for cell in row.values())


GLUE = ("MNLI-m", "QQP", "QNLI", "SST-2", "CoLA", "STS-B", "MRPC", "RTE")
#: Presets of recipes/finetune_glue by the models of the papers.
SENTENCES = {
    "BERT-base": "paper",
    "RoBERTa-base": "paper-m4m",
    "from roberta-base": "paper-m4m",
    "BERT-base, English": "paper-diet",
}
#: Presets of recipes/finetune_squad by paper and model.
SQUAD = {
    ("M1-M4", "BERT-base"): "m1-m4",
    ("M1-M4", "BERT-large"): "m1-m4-large",
    ("M4M", "RoBERTa-base"): "m4m-small",
    ("M4M", "from roberta-base"): "m4m",
    ("M4M", "from roberta-large"): "m4m-large",
}
#: Stands for a pretrained checkpoint of the user in a command; it decides the encoding of a fine-tuned model.
MODEL = "MODEL"
#: Stands for a folder of the user with one file per book in a command.
BOOKS = "BOOKS"


def paper_tables(entries: Sequence[Entry]) -> list[PaperTable]:
    """Return the papers' tables that the recipes of the runs reproduce."""
    recipes = {entry.recipe for entry in entries}
    tables: dict[str, PaperTable] = {}
    for figure in every():
        target = target_of(figure)
        if target is None or target.recipe not in recipes:
            continue
        title = f"{figure.paper}, {figure.table} ({figure.unit})"
        table = tables.setdefault(title, PaperTable(title, [], {}))
        if figure.column not in table.columns:
            table.columns.append(figure.column)
        table.rows.setdefault(_row_name(figure), {})[figure.column] = _cell(figure, target, entries)
    return sorted(tables.values(), key=lambda table: table.filled == 0)  # those with our numbers first


def _row_name(figure: Figure) -> str:
    shown = [figure.conditions[name] for name in ("model", "segments", "length") if name in figure.conditions]
    return ", ".join([f"{figure.row}: {figure.encoding}", *shown])


def _cell(figure: Figure, target: Target, entries: Iterable[Entry]) -> PaperCell:
    entry = next((entry for entry in entries if _repeats(entry, figure, target)), None)
    if entry is None:
        return PaperCell(figure.printed, None, "", target.command)
    differs = entry.facts.get("differs from the paper") or entry.facts.get("comparable") or ""
    text = ", ".join(differs) if isinstance(differs, list) else str(differs)
    return PaperCell(figure.printed, entry.scores[target.score], text.removeprefix("no: "), "")


def _repeats(entry: Entry, figure: Figure, target: Target) -> bool:
    """Return whether a row of results reproduces this number of a paper.

    The recipe must have written the number into this row, which it does if the texts are those of the paper. The
    encoding and its options must be those of the paper's row.
    """
    if entry.recipe != target.recipe or target.score not in entry.scores:
        return False
    if target.task and not f"{entry.task},".casefold().startswith(f"{target.task},".casefold()):
        return False
    if not _same_segments(entry, figure):
        return False
    label = str(entry.facts.get("encoding") or _pretrained(entry) or entry.label)
    return figure.value in _scores(entry.facts.get(target.paper)) and _same_encoding(label, figure)


def _scores(reported: Any) -> list[float]:
    """Return the paper's scores in a row of results, which has one score or a list of the scores of several models."""
    if isinstance(reported, list):
        return [figure["score"] for figure in reported]
    return [reported] if is_number(reported) else []


def _same_segments(entry: Entry, figure: Figure) -> bool:
    """Return whether the run and the paper's row have the same segment encoding.

    The column `encoding` of a row names the segment encoding, too. A row of a fine-tuned model names only the
    pretrained model's encoding, and has a column `segments`.
    """
    wanted = figure.conditions.get("segments")
    return not (wanted and _pretrained(entry)) or wanted in str(entry.facts.get("segments") or "").split("/")


def _same_encoding(label: str, figure: Figure) -> bool:
    """Return whether a label and a paper's row have the same encoding with the same values of all options."""
    try:
        ours, theirs = parse(label), parse(figure.encoding)
    except ValueError:  # a model without a position encoding of this package, or with different ones in its two stacks
        return False
    unset = {} if (figure.paper, figure.table) in PLACES else PRETRAINED
    printed, own = (option_values(spec.options, _options, unset) for spec in (theirs, ours))
    return ours.names == theirs.names and are_those_of(figure.paper, printed, own)


def _options(name: str) -> dict[str, object]:
    """Return the options of an encoding and their defaults."""
    return {option["name"]: option["default"] for option in describe(get(kind_of(name)).Options)}


def _pretrained(entry: Entry) -> str:
    """Return the encoding of the pretrained model, which fine-tuning may have changed; empty if it is unknown."""
    pretrained = entry.facts.get("pretrained")
    return str(pretrained.get("encoding") or "") if isinstance(pretrained, dict) else ""


def target_of(figure: Figure) -> Target | None:
    """Return how a recipe reproduces a number of a paper; None if no recipe reproduces it."""
    if not figure.encoding or figure.value is None:
        return None
    place = PLACES.get((figure.paper, figure.table))
    return place(figure) if place else _fine_tuned(figure)


def _translation(figure: Figure) -> Target:
    arguments = ["--preset", "table4-vaswani", "--direction", figure.column, "--pos-enc", figure.encoding]
    return Target("translation_wmt18", figure.column, "BLEU", "paper", arguments)


def _classified(figure: Figure) -> Target:
    arguments = ["--preset", "paper", "--tasks", figure.column, "--pos-enc", figure.encoding]
    return Target("text_classification", figure.column, "score", "paper", arguments)


def _asked(figure: Figure) -> Target:
    preset = {"SQuAD": "paper", "CMRC": "paper-cmrc"}[figure.column]
    arguments = ["--preset", preset, "--encoder", MODEL, "--pos-enc", figure.encoding]
    return Target("question_generation", figure.column, "ROUGE-L", "paper", arguments)


def _modelled(figure: Figure) -> Target | None:
    if not figure.column.startswith("memory "):  # the best memory length is that of another column
        return None
    length = figure.column.removeprefix("memory ")
    arguments = ["--preset", "wt103", "--mem-eval", length, "--pos-enc", figure.encoding]
    return Target("lm_wikitext103", f"wikitext103, {figure.column}", "perplexity", "paper", arguments)


def _pretrained_from_scratch(figure: Figure) -> Target:
    arguments = ["--preset", "m4m-unsuccessful", "--books", BOOKS, "--pos-enc", figure.encoding]
    return Target("pretrain_mlm", "", "training loss, nats", "paper", arguments)


def _fine_tuned(figure: Figure) -> Target | None:
    model, segments = (figure.conditions.get(name, "") for name in ("model", "segments"))
    common = ["--pos-enc", figure.encoding, "--pretrained", MODEL, "--segments", segments]
    if figure.column in GLUE and model in SENTENCES:
        task = "MNLI" if figure.column == "MNLI-m" else figure.column
        arguments = ["--preset", SENTENCES[model], "--tasks", task, *common]
        return Target("finetune_glue", task, "score", "paper", arguments)
    name, _, score = figure.column.partition(" ")
    if name.startswith("SQuAD") and (preset := SQUAD.get((figure.paper, model))):
        length = figure.conditions.get("length", "512")
        arguments = ["--preset", preset, "--version", name.removeprefix("SQuAD"), "--length", length, *common]
        return Target("finetune_squad", "", score, f"paper's {score}", arguments)
    if model == "BERT-base, 100 languages" and name in ("XNLI", "XQuAD", "MLQA", "TyDiQA"):
        arguments = ["--preset", "paper", "--tasks", name, *common]
        return Target("finetune_xtreme", name, score or "score", f"paper's {score}" if score else "paper", arguments)
    return None


PLACES: Mapping[tuple[str, str], Callable[[Figure], Target | None]] = {
    ("DIET", "Table 4"): _translation,
    ("LFHC", "Table 1"): _classified,
    ("LFHC", "Table 5"): _classified,
    ("LFHC", "Table 2"): _asked,
    ("LFHC", "Table 6"): _asked,
    ("LFHC", "Table 3"): _modelled,
    ("LFHC", "Table 7"): _modelled,
    ("M4M", "Section 5.2"): _pretrained_from_scratch,
    # numbers of parameters, speeds and hyperparameters are not scores of runs
    ("LFHC", "Table 4"): lambda figure: None,
    ("DIET", "Table 7"): lambda figure: None,
}
