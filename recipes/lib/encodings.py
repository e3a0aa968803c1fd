"""Parse the position encodings that a user names, such as `rope`, `learned+t5` or `shaw[clip=16]`."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from .package import ENCODINGS, Figure, InputError, are_those_of, kind_of, nearest, option_values, parse_spec
from .recipe import ROOT
from .stages import read_json
from .values import Refused

#: Written by `python docs/_generate`, which must run anyway when an encoding is added.
FACTS = ROOT / "recipes" / "lib" / "encodings.json"
COMMON = ("layers",)  # options of every encoding, which encodings.json does not repeat


@dataclass(frozen=True)
class Encoding:
    """Name a position encoding and its options."""

    label: str  # what the user wrote; tables and figures show it
    name: str  # value of --pos-enc
    args: str  # value of --pos-enc-args

    @property
    def slug(self) -> str:
        """Return the name that the encoding has in paths and stage names, such as `shaw.clip=16`."""
        return re.sub(r"[\[,]", ".", self.label).replace("]", "").replace(":", "_")  # fairseq splits paths at colons

    @property
    def names(self) -> list[str]:
        """Return the names of the combined encodings: `learned` and `t5` for `learned+t5`, `rope` for `rope`.

        The second of two encodings of the same kind has a name such as `rope-2`.
        """
        return self.name.split("+")

    @property
    def remembers(self) -> bool:
        """Return whether all of the combined encodings support the memory of Transformer-XL."""
        return all(facts(name)["memory"] for name in self.names)

    @property
    def stacks(self) -> set[str]:
        """Return the kinds of stacks in which all of the combined encodings work: `encoder`, `decoder` or both."""
        keys = {"encoder": "bidirectional", "decoder": "causal"}
        return {stack for stack, key in keys.items() if all(facts(name)[key] for name in self.names)}

    def takes(self, option: str) -> bool:
        """Return whether the encoding has an option of this name, which --pos-enc-args can set."""
        return any(option in facts(name)["options"] for name in self.names)

    def flags(self) -> list[str]:
        return ["--pos-enc", self.name, *(["--pos-enc-args", self.args] if self.args else [])]


@dataclass(frozen=True)
class Stacks:
    """Name one encoding for the encoder and another for the decoder, such as `rope/t5`."""

    encoder: Encoding
    decoder: Encoding

    @property
    def label(self) -> str:
        return f"{self.encoder.label}/{self.decoder.label}"

    @property
    def slug(self) -> str:
        """Return the name that the two encodings have in paths and stage names, such as `rope--t5`."""
        return f"{self.encoder.slug}--{self.decoder.slug}"

    def flags(self) -> list[str]:
        flags: list[str] = []
        for side, encoding in (("encoder", self.encoder), ("decoder", self.decoder)):
            flags += [f"--pos-enc-{side}", encoding.name]
            flags += [f"--pos-enc-{side}-args", encoding.args] if encoding.args else []
        return flags


Either = Encoding | Stacks


def parse(label: str, flag: str = "--pos-enc") -> Encoding:
    """Return the encoding that is written as `NAME` or `NAME[OPTION=VALUE,...]`, or as several of these joined by `+`.

    The model checks the values of the options when it is built.

    Raises:
        Refused: The name or an option is unknown, or the label has another form. The message names the option `flag`.
    """
    label = label.replace(" ", "")
    try:
        spec = parse_spec(label, None, partial(option_names, flag=flag), flag)
    except InputError as error:
        raise Refused(str(error)) from None
    return Encoding(label, spec.name, spec.args or "")


def option_names(name: str, flag: str = "--pos-enc") -> list[str]:
    """Return the names of an encoding's options.

    Raises:
        InputError: There is no such encoding; the message names the option `flag` of the recipe.
    """
    if kind_of(name) not in ENCODINGS:
        raise InputError(f"{flag}: there is no position encoding '{name}'{nearest(name, ENCODINGS)}")
    return [*facts(name)["options"], *COMMON]


def add_option(parser: argparse.ArgumentParser, purpose: str) -> None:
    """Add the option --pos-enc, which may be repeated, to a module that a stage runs.

    Args:
        parser: Parser of the module.
        purpose: What the module does with the encodings, such as `build`.
    """
    text = f"Encoding to {purpose}; the option may be repeated."
    parser.add_argument("--pos-enc", action="append", required=True, metavar="NAME", help=text)


def labels(encodings: Iterable[Either]) -> list[str]:
    """Return the labels of encodings, which commands and tables contain."""
    return [encoding.label for encoding in encodings]


def parse_all(labels: list[str]) -> list[Encoding]:
    if not labels:
        raise Refused("--pos-enc is empty. Name at least one encoding.")
    return [parse(label) for label in dict.fromkeys(labels)]


def parse_either(label: str) -> Either:
    """Return the encoding that is written as `NAME` for both stacks of a model, or as `ENCODER/DECODER`.

    Raises:
        Refused: The label has more than two encodings, or `parse` refuses one of its encodings.
    """
    parts = label.replace(" ", "").split("/")
    if len(parts) > 2:
        problem = "a model has only an encoder and a decoder"
        raise Refused(f"--pos-enc {label}: {problem}. Write NAME (for both stacks) or ENCODER/DECODER.")
    encodings = [parse(part) for part in parts]
    return encodings[0] if len(set(encodings)) == 1 else Stacks(*encodings)


def parse_stacks(labels: list[str]) -> list[Either]:
    """Return the encodings to compare for models with an encoder and a decoder."""
    if not labels:
        raise Refused("--pos-enc is empty. Name at least one encoding.")
    return list(dict.fromkeys(parse_either(label) for label in labels))


def refuse_misplaced(encodings: Iterable[Either]) -> None:
    """Refuse an encoding that does not work in the encoder, or not in the decoder, that would use it."""
    for chosen in encodings:
        pair = (chosen.encoder, chosen.decoder) if isinstance(chosen, Stacks) else (chosen, chosen)
        for stack, encoding in zip(("encoder", "decoder"), pair, strict=True):
            if stack not in encoding.stacks:
                place = f"--pos-enc {chosen.label}: {encoding.label} does not work in the {stack} of a model"
                if not encoding.stacks:
                    raise Refused(f"{place}, nor in the other stack. Leave it out.")
                example = f"rope/{encoding.label}" if stack == "encoder" else f"{encoding.label}/rope"
                raise Refused(f"{place}. Write ENCODER/DECODER, such as {example}.")


def facts(name: str) -> dict[str, Any]:
    """Return the entry of an encoding in encodings.json: where it works, whether it supports a memory, and its options.

    Args:
        name: Name of the encoding; for `rope-2`, the entry of `rope` is returned.

    Raises:
        Refused: encodings.json has no entry for this encoding.
    """
    kind = kind_of(name)
    if kind not in _facts():
        problem = f"{FACTS.relative_to(ROOT)} has no entry for the encoding '{name}'"
        raise Refused(f"{problem}. To update this file, run `python docs/_generate`.")
    facts_of_encoding: dict[str, Any] = _facts()[kind]
    return facts_of_encoding


def published(
    figures: Iterable[Figure], encoding: Either | None, unset: Mapping[str, object] | None = None
) -> float | None:
    """Return the number that a paper reports for this encoding, or None if the paper does not report it.

    Args:
        figures: Numbers from the tables of the paper.
        encoding: The encoding to look up. `are_those_of` compares the encoding's options with the options in
            the tables.
        unset: The paper's values of the options that have no default.
    """
    if not isinstance(encoding, Encoding):  # no paper uses different encodings in the two stacks
        return None
    ours = options_of(encoding, unset)
    for figure in figures:
        other = parse(figure.encoding) if figure.encoding else None
        if other and other.name == encoding.name and are_those_of(figure.paper, options_of(other, unset), ours):
            return figure.value
    return None


def options_of(encoding: Encoding, unset: Mapping[str, object] | None = None) -> dict[str, str]:
    """Return the values of all options, including defaults, keyed by names such as `m4.clip`."""
    chosen = parse_spec(encoding.name, encoding.args, option_names).options
    return option_values(chosen, lambda name: facts(name)["options"], unset)


def with_option(option: str) -> list[str]:
    """Return the names of the encodings that have an option."""
    return [name for name, entry in _facts().items() if option in entry["options"]]


@cache
def _facts() -> dict[str, dict[str, Any]]:
    facts_by_name: dict[str, dict[str, Any]] = read_json(FACTS)
    return facts_by_name
