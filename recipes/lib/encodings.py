"""The position encodings that a recipe compares, as its user names them: `rope`, `learned+t5`, `shaw[clip=16]`."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

from .recipe import ROOT
from .stages import read_json
from .values import Refused, nearest

T = TypeVar("T")
#: written by `python -m fairseq_posenc docs`, which a new encoding calls for anyway
FACTS = ROOT / "recipes" / "lib" / "encodings.json"
REGISTRY = ROOT / "fairseq_posenc" / "encodings" / "registry.py"


@dataclass(frozen=True)
class Encoding:
    label: str  # as it was asked for; tables and figures show it
    name: str  # for --pos-enc
    args: str  # for --pos-enc-args

    @property
    def slug(self) -> str:
        """Its name in paths and stages: `shaw.clip=16`."""
        return re.sub(r"[\[,]", ".", self.label).replace("]", "")

    @property
    def names(self) -> list[str]:
        """Of a composition's members; else its own."""
        return self.name.split("+")

    @property
    def remembers(self) -> bool:
        """It has positions for earlier segments; a composition has some where all its members have."""
        return all(facts(name)["memory"] for name in self.names)

    def takes(self, option: str) -> bool:
        """It has this option, which --pos-enc-args sets."""
        return any(option in facts(name)["options"] for name in self.names)

    def flags(self) -> list[str]:
        return ["--pos-enc", self.name, *(["--pos-enc-args", self.args] if self.args else [])]


@dataclass(frozen=True)
class Stacks:
    """An encoding of the encoder's and another of the decoder's: `rope/t5`."""

    encoder: Encoding
    decoder: Encoding

    @property
    def label(self) -> str:
        return f"{self.encoder.label}/{self.decoder.label}"

    @property
    def slug(self) -> str:
        """Its name in paths and stages: `rope--t5`."""
        return f"{self.encoder.slug}--{self.decoder.slug}"

    def flags(self) -> list[str]:
        flags: list[str] = []
        for side, one in (("encoder", self.encoder), ("decoder", self.decoder)):
            flags += [f"--pos-enc-{side}", one.name]
            flags += [f"--pos-enc-{side}-args", one.args] if one.args else []
        return flags


Either = Encoding | Stacks


def parse(label: str) -> Encoding:
    """What `NAME` or `NAME[OPTION=VALUE,...]` means.

    Raises:
        Refused: an unknown name, with the nearest known one, or brackets that do not close.
    """
    label = label.replace(" ", "")
    found = re.fullmatch(r"([^\[\]]+)(?:\[([^\[\]]+)\])?", label)
    if not found:
        raise Refused(f"--pos-enc {label}: write NAME or NAME[OPTION=VALUE,...], in quotes")
    encoding = Encoding(label, found[1], found[2] or "")
    for name in encoding.names:
        if name not in known():
            raise Refused(f"--pos-enc {label}: no position encoding '{name}'{nearest(name, known())}")
    return encoding


def parse_all(labels: list[str]) -> list[Encoding]:
    if not labels:
        raise Refused("--pos-enc is empty: name at least one encoding")
    return [parse(label) for label in dict.fromkeys(labels)]


def parse_either(label: str) -> Either:
    """As `parse`, or `ENCODER'S/DECODER'S`.

    Raises:
        Refused: as `parse`, or more than two.
    """
    parts = label.replace(" ", "").split("/")
    if len(parts) > 2:
        raise Refused(f"--pos-enc {label}: one for both stacks, or ENCODER/DECODER")
    found = [parse(part) for part in parts]
    return found[0] if len(set(found)) == 1 else Stacks(*found)


def parse_stacks(labels: list[str]) -> list[Either]:
    """Of models with two stacks."""
    if not labels:
        raise Refused("--pos-enc is empty: name at least one encoding")
    return list(dict.fromkeys(parse_either(label) for label in labels))


@cache
def known() -> tuple[str, ...]:
    """The names of the registry, read and not imported: --dry-run works without torch."""
    for node in ast.parse(REGISTRY.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == ["_ENCODINGS"]:
            return tuple(ast.literal_eval(node.value))
    raise RuntimeError(f"{REGISTRY} has no _ENCODINGS")


def facts(name: str) -> dict[str, Any]:
    """What an encoding has: `memory` (of earlier segments) and `options`.

    Raises:
        Refused: the file is older than the encoding.
    """
    if name not in _facts():
        raise Refused(f"{FACTS.relative_to(ROOT)} lacks '{name}': write it anew by python -m fairseq_posenc docs")
    found: dict[str, Any] = _facts()[name]
    return found


def published(figures: Mapping[str, T], encoding: Either) -> T | None:
    """What a paper has for this encoding, by labels; the order of options does not count."""
    if isinstance(encoding, Stacks):  # no paper has two
        return None
    for label, found in figures.items():
        other = parse(label)
        if other.name == encoding.name and sorted(other.args.split(",")) == sorted(encoding.args.split(",")):
            return found
    return None


def with_option(option: str) -> list[str]:
    """The encodings that have it."""
    return [name for name, of in _facts().items() if option in of["options"]]


@cache
def _facts() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = read_json(FACTS)
    return found
