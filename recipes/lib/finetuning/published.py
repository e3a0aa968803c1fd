"""Look up the papers' numbers for fine-tuned models, and list how the data and the models differ from the papers'."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from fairseq_posenc.papers.matching import PRETRAINED
from fairseq_posenc.papers.reading import Figure, figures
from recipes.lib.encodings import published

from .columns import record, xnli_splits
from .tasks import QUESTIONS, SQUAD, TASKS

BASE, LARGE = (12, 768), (24, 1024)  # layers and width of the papers' models
XNLI_LANGUAGES = 15
AVERAGE = "average"


def numbers(
    papers: str, facts: Mapping[str, Any], columns: list[str], data: Iterable[Path]
) -> dict[str, dict[str, dict[str, str]]]:
    """Return the papers' numbers by column and label, as text that names the model if there are several.

    Args:
        papers: Papers and the models in their tables, such as `M4M/from roberta-base;M4M/roberta-base`.
        facts: Encoding and segment encoding of each model, keyed by its label.
        columns: Columns of the report's table.
        data: Prepared folders.
    """
    length = max(record(folder)["longest"] for folder in data)
    return {
        column: {label: {"score": cell(papers, own, label, column, columns, length)} for label, own in facts.items()}
        for column in (*columns, AVERAGE)
    }


def cell(papers: str, own: Mapping[str, str], label: str, column: str, columns: list[str], length: int) -> str:
    """Return the numbers that the papers print for a model in a column; empty if there are none."""
    texts = []
    for entry in filter(None, papers.split(";")):
        paper, _, model = entry.partition("/")
        for encoding, segments in ((own["encoding"], own["segments"]), (label, "none")):
            printed = [
                figure
                for figure in figures(paper, column=column, model=model)
                if figure.conditions.get("segments", "none") == segments and fits(figure, columns, length)
            ]
            if figure := published(printed, encoding, PRETRAINED):
                notes = [model] * (";" in papers) + ["test set"] * figure.of_test_set
                texts.append(f"{figure.printed} ({', '.join(notes)})" if notes else figure.printed)
                break
    return "; ".join(texts)


def fits(figure: Figure, columns: list[str], length: int) -> bool:
    """Return whether a number of SQuAD is for windows of this length, and an average is over the same columns."""
    if figure.column == AVERAGE:
        return {other.column for other in figures(figure.paper, table=figure.table)} - {AVERAGE} == set(columns)
    return not figure.column.startswith("SQuAD") or figure.conditions.get("length") == str(length)


def differences(papers: str, facts: Mapping[str, Any], columns: Mapping[str, tuple[str, Path]]) -> list[str]:
    """Return how models and data differ from the papers', as lines of text, or of COLUMN, a tab and text.

    The pretraining corpora are not compared, because a checkpoint does not name its corpus.

    Args:
        papers: Papers and models, as in `numbers`.
        facts: Sizes of each model, keyed by its label.
        columns: Task and prepared folder of each column.
    """
    layers, dim = LARGE if "large" in papers else BASE
    sizes = {
        (own["layers"], own["dim"]): None for own in facts.values() if (own["layers"], own["dim"]) != (layers, dim)
    }
    lines = [f"{own} layers of width {width}, not {layers} of width {dim}" for own, width in sizes]
    for column, (item, folder) in columns.items():
        texts = of_rows(item, folder) if item in TASKS else of_questions(item, folder, column.partition(" ")[0])
        lines += [f"{column}\t{text}" for text in texts]
    return lines if papers else []


def of_rows(item: str, folder: Path) -> list[str]:
    """Return how the rows of a task differ from the published ones. XNLI has one number for all languages."""
    facts, wanted = record(folder), TASKS[item].rows
    labelled = {split: own for split, own in facts["splits"].items() if own["labelled"]}
    texts = []
    for split, own in labelled.items():
        number = wanted.get(split, wanted.get(split.partition("-")[0]))
        if number and own["given"] != number:
            texts.append(f"{own['given']:,} rows of {split}, not {number:,}")
    if left := sum(actions.get("left out", 0) for actions in facts["problems"].values()):
        texts.append(f"{left:,} rows left out")
    if item == "XNLI":
        scored = xnli_splits({split: own for split, own in labelled.items() if split != "train"})
        texts += [] if len(scored) == XNLI_LANGUAGES else [f"{len(scored)} of {XNLI_LANGUAGES} languages"]
        texts += [] if all(split.startswith("test-") for split in scored.values()) else ["scores of development sets"]
    return texts


def of_questions(item: str, folder: Path, name: str) -> list[str]:
    """Return how the training questions and the questions of SQuAD or of a set of XTREME differ from the published."""
    own = record(folder)
    training, development = SQUAD[own["version"]]
    wanted = {"train": training, **(QUESTIONS.get(name) or {"valid": development})}
    splits = {"train": own["splits"]["train"], **own["splits"]}
    if name in QUESTIONS:
        splits = {"train": splits["train"], **record(folder.with_name(folder.name.replace(item, name, 1)))["splits"]}
    texts = [f"no {split} questions" for split in wanted if split not in splits]
    for split in wanted.keys() & splits.keys():
        given, used = splits[split]["given"], splits[split]["questions"]
        texts += [] if given == wanted[split] else [f"{given:,} {split} questions, not {wanted[split]:,}"]
        texts += [] if used == given else [f"{given - used:,} {split} questions left out"]
    return sorted(texts)
