"""The EM and F1 that the papers print for SQuAD's development sets, and what keeps a run from being compared."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from recipes.lib.departures import of_flags, of_settings
from recipes.lib.encodings import parse, published
from recipes.lib.package import figures as printed
from recipes.lib.settings import read_preset

if TYPE_CHECKING:
    from .settings import Settings

PRESETS = Path(__file__).parent / "conf"  # of each paper one that is called as it is
#: what a preset says besides the flags of fairseq-train; the length of windows chooses the figure
PROTOCOL = ("epochs", "warmup", "stride", "separators", "longest_question", "longest_answer", "null_threshold")


class Paper(NamedTuple):
    """Name the models whose figures stand beside a run's.

    Args:
        layers: layers of its models.
        dim: width of its models.
        name: the paper, as in the package's tables.
        model: its own models, as the tables call them.
        others: models that differ from its own in more than the encoding, in what they went on from or in their text:
            the name that is shown, and what the tables call them.
    """

    layers: int
    dim: int
    name: str
    model: str
    others: Mapping[str, str] = MappingProxyType({})


#: questions of the published files, by version: training and development
QUESTIONS = {"1.1": (87_599, 10_570), "2.0": (130_319, 11_873)}
UNSET = {"clip": 512}  # no less than n: nothing is clipped
OF_BASE = {"roberta-base itself": "roberta-base", "on C4": "from roberta-base, on C4"}
PAPERS = {
    "m1-m4": Paper(12, 768, "M1-M4", "BERT-base", {"BERT": "BERT-base (Devlin et al., 2018)"}),
    "m1-m4-large": Paper(24, 1024, "M1-M4", "BERT-large"),
    "m4m-small": Paper(12, 768, "M4M", "RoBERTa-base"),
    "m4m": Paper(12, 768, "M4M", "from roberta-base", OF_BASE),
    "m4m-large": Paper(24, 1024, "M4M", "from roberta-large", {"roberta-large itself": "roberta-large"}),
}


def has_figures(paper: str, version: str, longest: int) -> bool:
    """Return whether a paper of `PAPERS` prints figures of its own models with windows of this length."""
    theirs = PAPERS[paper]
    return bool(printed(theirs.name, column=f"SQuAD{version} F1", model=theirs.model, length=longest))


def figures(paper: str, version: str, longest: int, label: str) -> tuple[float | str | None, float | str | None]:
    """Return EM and F1 of an encoding; None where the paper has none.

    A checkpoint does not tell which of several models it is, so there may be several: `86.1; 85.95 (roberta-base
    itself)`.

    Args:
        paper: of `PAPERS`, or none.
        label: the encoding, as `m4[clip=2]`.
    """
    if paper not in PAPERS:
        return None, None
    theirs, encoding = PAPERS[paper], parse(label)

    def shown(score: str) -> float | str | None:
        column = f"SQuAD{version} {score}"
        found = {
            name: published(printed(theirs.name, column=column, model=model, length=longest), encoding, UNSET)
            for name, model in {"": theirs.model, **theirs.others}.items()
        }
        numbers = {name: number for name, number in found.items() if number is not None}
        if not any(numbers):
            return numbers.get("")
        return "; ".join(f"{number:g} ({name})" if name else f"{number:g}" for name, number in numbers.items())

    return shown("EM"), shown("F1")


def differences(
    paper: str, version: str, model: dict[str, Any], given: tuple[int, int], used: tuple[int, int] | None = None
) -> list[str]:
    """Why figures are not comparable with the paper's, in a few words each; `departures` are further ones.

    Args:
        model: its layers and dim. given: questions of training and development. used: those that are not left out.
    """
    if paper not in PAPERS:
        return []
    theirs = PAPERS[paper]
    told = []
    if (model["layers"], model["dim"]) != (theirs.layers, theirs.dim):
        told.append(f"{model['layers']} layers of {model['dim']}, not {theirs.layers} of {theirs.dim}")
    if given != QUESTIONS[version]:
        told.append(f"{_and(given)} questions, not {_and(QUESTIONS[version])}")
    if used and used != given:
        told.append(f"{_and((given[0] - used[0], given[1] - used[1]))} of them left out")
    return told


def _and(numbers: tuple[int, int]) -> str:
    """Of training and of development."""
    return " and ".join(f"{number:,}" for number in numbers)


def departures(settings: Settings) -> list[str]:
    """In what a run departs from the preset of its paper: what that states, and its authors' code where it does not."""
    if settings.paper not in PAPERS:
        return []
    preset = read_preset(PRESETS / f"{settings.paper}.toml")
    usual = {name: getattr(type(settings), name, None) for name in PROTOCOL}
    told = of_settings({name: preset.get(name.replace("_", "-"), usual[name]) for name in PROTOCOL}, settings)
    told += of_flags(preset["train"], settings.train)
    theirs = preset["batches"] * preset["train"]["batch-size"]
    ours = settings.batches * settings.number("batch-size", 0)
    return told + ([f"{ours} windows an update, not {theirs}"] if ours != theirs else [])
