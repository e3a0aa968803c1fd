"""The position encodings that a recipe compares, as its user names them: `rope`, `learned+t5`, `shaw[clip=16]`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from .package import ENCODINGS, Figure, nearest
from .recipe import ROOT
from .stages import read_json
from .values import Refused

#: written by `python -m fairseq_posenc docs`, which a new encoding calls for anyway
FACTS = ROOT / "recipes" / "lib" / "encodings.json"


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
        if name not in ENCODINGS:
            raise Refused(f"--pos-enc {label}: no position encoding '{name}'{nearest(name, ENCODINGS)}")
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


def facts(name: str) -> dict[str, Any]:
    """What an encoding has: `memory` (of earlier segments) and `options` with their defaults.

    Raises:
        Refused: the file is older than the encoding.
    """
    if name not in _facts():
        raise Refused(f"{FACTS.relative_to(ROOT)} lacks '{name}': write it anew by python -m fairseq_posenc docs")
    found: dict[str, Any] = _facts()[name]
    return found


def published(
    figures: Iterable[Figure], encoding: Either | None, unset: Mapping[str, object] | None = None
) -> float | None:
    """Return the one of a paper's figures that is of this encoding; None where there is none.

    Encodings are the same if their options work alike: defaults count, and the order does not.

    Args:
        unset: what options that are not set come to in the paper's models.
    """
    if not isinstance(encoding, Encoding):  # no paper has two
        return None
    wanted = options_of(encoding, unset)
    for figure in figures:
        other = parse(figure.encoding) if figure.encoding else None
        if other and other.name == encoding.name and options_of(other, unset) == wanted:
            return figure.value
    return None


def options_of(encoding: Encoding, unset: Mapping[str, object] | None = None) -> dict[str, str]:
    """Every option of every member as `m4.clip`, with what holds: what was asked for, or the default."""
    found = {
        f"{name.replace('-', '_')}.{option}": (unset or {}).get(option) if default is None else default
        for name in encoding.names
        for option, default in facts(name)["options"].items()
    }
    for part in filter(None, encoding.args.split(",")):
        key, _, value = part.partition("=")
        key = key.replace("-", "_")
        owned = [one for one in found if key in (one, one.rpartition(".")[2])]
        found |= dict.fromkeys(owned or [key], value)
    return {name: _plain(value) for name, value in found.items()}


def _plain(value: object) -> str:
    """As `1` for 1.0, and `layer_wise` for layer-wise: one spelling of what is the same."""
    text = str(value).lower().replace("-", "_")
    try:
        return f"{float(text):g}"
    except ValueError:
        return text


def with_option(option: str) -> list[str]:
    """The encodings that have it."""
    return [name for name, of in _facts().items() if option in of["options"]]


@cache
def _facts() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = read_json(FACTS)
    return found
