"""The papers' EM and F1 on SQuAD's development sets (METHODS.md 6.A and 6.B), in percent."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from recipes.lib.departures import of_flags, of_settings
from recipes.lib.encodings import parse, published
from recipes.lib.settings import read_preset

if TYPE_CHECKING:
    from .settings import Settings

PRESETS = Path(__file__).parent / "conf"  # of each paper one that is called as it is
#: what a preset says besides the flags of fairseq-train; the length of windows chooses the figure
PROTOCOL = ("epochs", "warmup", "stride", "separators", "longest_question", "longest_answer", "null_threshold")


#: EM and F1, by version and longest window, then by encoding
Table = Mapping[tuple[str, int], Mapping[str, tuple[float | None, float]]]


class Paper(NamedTuple):
    """layers, dim: of its models. others: by name, figures of models that differ from its own in more than encoding:
    what they went on from, or other text."""

    layers: int
    dim: int
    figures: Table
    others: Mapping[str, Table] = MappingProxyType({})


#: questions of the published files, by version: training and development
QUESTIONS = {"1.1": (87_599, 10_570), "2.0": (130_319, 11_873)}

_CLIPS = {
    "m4[clip=2]": (82.17, 89.19),
    "m4[clip=4]": (82.44, 89.37),
    "m4[clip=8]": (82.64, 89.59),
    "m4[clip=16]": (83.42, 90.18),
    "m4[clip=32]": (83.58, 90.30),
    "m4[clip=64]": (83.40, 90.21),
    "m4[clip=128]": (83.20, 90.03),
    "m4[clip=256]": (83.59, 90.54),
    "m4[clip=512]": (83.63, 90.53),
}
#: Huang et al. 2020, tables 2, 4 and 5: BERT base from scratch; the code's README for 384
_M1_M4: Table = {
    ("1.1", 512): {
        "learned": (81.58, 88.59),
        "shaw": (82.38, 89.37),
        "m1": (80.82, 87.96),
        "m2": (81.44, 88.86),
        "m3": (83.71, 90.50),
        "m4": (83.63, 90.53),
        **_CLIPS,
    },
    ("1.1", 384): {"m4": (None, 90.34)},
    ("1.1", 576): {"m4[clip=256]": (83.80, 90.71)},
    ("1.1", 640): {"m4[clip=256]": (83.97, 90.68)},
    ("1.1", 704): {"m4[clip=256]": (83.44, 90.32)},
}
#: Devlin et al. 2019, beside them: with next sentences and segments
_BERT: Table = {("1.1", 512): {"learned+segments-input": (80.8, 88.5)}}
#: section 4.4: gone on from BERT large with masks of whole words, which has segments
_M1_M4_LARGE: Table = {
    ("1.1", 512): {"learned+segments-input": (86.91, 93.15), "m4+segments-input": (87.51, 93.55)},
    ("1.1", 576): {"m4+segments-input": (87.40, 93.48)},
    ("1.1", 640): {"m4+segments-input": (87.57, 93.49)},
    ("1.1", 704): {"m4+segments-input": (87.16, 93.47)},
}
#: the papers of M4M, small scale: F1 only
_M4M_SMALL: Table = {
    ("1.1", 512): {
        "learned": (None, 87.08),
        "shaw": (None, 88.62),
        "m2": (None, 87.26),
        "m4": (None, 89.36),
        "deberta": (None, 88.84),
        "m4m": (None, 89.45),
        "m4[reset=vector]": (None, 88.43),
        "learned+m4m": (None, 88.68),
        "m4[scale=1]": (None, 89.36),
        "m4[scale=2]": (None, 88.96),
        "m4[scale=3]": (None, 89.20),
        "m4[scale=4]": (None, 89.36),
        "m4[scale=6]": (None, 88.95),
        "m4[scale=9]": (None, 88.65),
        "m4[share=none]": (None, 88.50),
    }
}
#: the same, gone on from RoBERTa; RoBERTa itself; gone on with C4
_M4M: Table = {
    ("1.1", 512): {"learned": (86.10, 92.31), "m4m": (86.44, 92.52)},
    ("2.0", 512): {"learned": (80.67, 83.69), "m4m": (80.88, 84.00)},
}
_ROBERTA: Table = {("1.1", 512): {"learned": (85.95, 92.12)}, ("2.0", 512): {"learned": (79.99, 83.10)}}
_C4: Table = {("1.1", 512): {"m4m": (86.54, 92.64)}, ("2.0", 512): {"m4m": (81.65, 84.51)}}
_M4M_LARGE: Table = {("1.1", 512): {"m4m": (89.21, 94.78)}, ("2.0", 512): {"m4m": (85.47, 88.34)}}
_ROBERTA_LARGE: Table = {("1.1", 512): {"learned": (89.13, 94.63)}, ("2.0", 512): {"learned": (84.66, 87.62)}}

PAPERS = {
    "m1-m4": Paper(12, 768, _M1_M4, {"BERT": _BERT}),
    "m1-m4-large": Paper(24, 1024, _M1_M4_LARGE),
    "m4m-small": Paper(12, 768, _M4M_SMALL),
    "m4m": Paper(12, 768, _M4M, {"roberta-base itself": _ROBERTA, "on C4": _C4}),
    "m4m-large": Paper(24, 1024, _M4M_LARGE, {"roberta-large itself": _ROBERTA_LARGE}),
}

#: as a row of the recipe's table has it: a number, or several with what they are of
Figure = float | str | None


def figures(paper: str, version: str, longest: int, label: str) -> tuple[Figure, Figure]:
    """EM and F1 of an encoding; None where the paper has none. A checkpoint does not tell which of several it is.

    Args:
        paper: of `PAPERS`, or none. label: as `m4[clip=2]`.
    """
    if paper not in PAPERS:
        return None, None
    tables = {"": PAPERS[paper].figures, **PAPERS[paper].others}
    found = {name: published(table.get((version, longest), {}), parse(label)) for name, table in tables.items()}
    some = {name: one for name, one in found.items() if one}
    return _shown({name: one[0] for name, one in some.items()}), _shown({name: one[1] for name, one in some.items()})


def _shown(found: Mapping[str, float | None]) -> Figure:
    """The paper's own first; `86.1; 85.95 (roberta-base itself)`."""
    if not any(found):
        return found.get("")
    return "; ".join(f"{one:g} ({name})" if name else f"{one:g}" for name, one in found.items())


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
