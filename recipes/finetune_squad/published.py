"""Look up the EM and F1 that papers report for SQuAD's development sets, and compare runs with papers."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from recipes.lib.encodings import parse, published
from recipes.lib.package import PRETRAINED
from recipes.lib.package import figures as printed
from recipes.lib.reported import Reported


class Paper(NamedTuple):
    """Describe the models of a paper with which a run is compared.

    Args:
        layers: Number of layers of the models.
        dim: Width of the models.
        name: Name of the paper in the tables of the package.
        model: Name of the paper's own models in these tables.
        others: Further models of the paper (other initial weights or another corpus), as a mapping from the name in
            the report to the name in the tables.
    """

    layers: int
    dim: int
    name: str
    model: str
    others: Mapping[str, str] = MappingProxyType({})


#: Number of questions in the published files, by version: training and development.
QUESTIONS = {"1.1": (87_599, 10_570), "2.0": (130_319, 11_873)}
OF_BASE = {"roberta-base itself": "roberta-base", "on C4": "from roberta-base, on C4"}
#: Each paper has a preset of the same name in conf/.
PAPERS = {
    "m1-m4": Paper(12, 768, "M1-M4", "BERT-base", {"BERT": "BERT-base (Devlin et al., 2018)"}),
    "m1-m4-large": Paper(24, 1024, "M1-M4", "BERT-large", {"BERT": "BERT-large (Devlin et al., 2018)"}),
    "m4m-small": Paper(12, 768, "M4M", "RoBERTa-base"),
    "m4m-small-slower": Paper(12, 768, "M4M", "RoBERTa-base, learning rate 2.5e-5"),
    "m4m": Paper(12, 768, "M4M", "from roberta-base", OF_BASE),
    "m4m-large": Paper(24, 1024, "M4M", "from roberta-large", {"roberta-large itself": "roberta-large"}),
}


def has_figures(paper: str, version: str, longest: int) -> bool:
    """Return whether a paper of `PAPERS` reports scores of its own models for windows of this length."""
    entry = PAPERS[paper]
    return bool(printed(entry.name, column=f"SQuAD{version} F1", model=entry.model, length=longest))


def figures(paper: str, version: str, longest: int, label: str) -> tuple[list[Reported], list[Reported]]:
    """Return the EM and F1 that a paper reports for the models that have an encoding.

    Args:
        paper: Key of the paper in `PAPERS`, or `none`.
        version: Version of SQuAD.
        longest: Maximum number of pieces in a window.
        label: Label of the encoding, such as `m4[clip=2]`.
    """
    if paper not in PAPERS:
        return [], []
    entry, encoding = PAPERS[paper], parse(label)

    def reported(score: str) -> list[Reported]:
        tables = {
            name: printed(entry.name, column=f"SQuAD{version} {score}", model=model, length=longest)
            for name, model in {"": entry.model, **entry.others}.items()
        }
        return [
            Reported(score=number, model=name, segments="")
            for name, table in tables.items()
            if (number := published(table, encoding, PRETRAINED)) is not None
        ]

    return reported("EM"), reported("F1")


def differences(
    paper: str, version: str, model: dict[str, Any], total: tuple[int, int], used: tuple[int, int] | None = None
) -> list[str]:
    """Return the differences in model sizes and questions that prevent a comparison with the paper.

    `Settings.departures` returns the differences in settings.

    Args:
        paper: Key of the paper in `PAPERS`, or `none`.
        version: Version of SQuAD.
        model: Sizes of the model: the number of layers as `layers`, and the width as `dim`.
        total: Number of training and development questions in the files.
        used: Number of training and development questions that were used; questions with errors are left out.
    """
    if paper not in PAPERS:
        return []
    entry = PAPERS[paper]
    texts = []
    if (model["layers"], model["dim"]) != (entry.layers, entry.dim):
        texts.append(f"{model['layers']} layers of width {model['dim']}, not {entry.layers} of width {entry.dim}")
    if total != QUESTIONS[version]:
        texts.append(f"{_and(total)} training and development questions, not {_and(QUESTIONS[version])}")
    if used and used != total:
        texts.append(f"{_and((total[0] - used[0], total[1] - used[1]))} training and development questions left out")
    return texts


def _and(numbers: tuple[int, int]) -> str:
    """Return the numbers of training and development questions as text."""
    return " and ".join(f"{number:,}" for number in numbers)
