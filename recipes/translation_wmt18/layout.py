"""Directions, models, and where a run keeps what belongs to each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from recipes.lib.encodings import Either
from recipes.lib.stages import Stage
from recipes.lib.values import Refused

LANGUAGE = r"[A-Za-z]{2,}([_-][A-Za-z0-9]+)*"


@dataclass(frozen=True)
class Direction:
    """What is translated into what."""

    source: str
    target: str

    @property
    def label(self) -> str:
        return f"{self.source}-{self.target}"

    @property
    def pair(self) -> frozenset[str]:
        """Its languages: both directions of a pair share its text."""
        return frozenset((self.source, self.target))

    def flags(self) -> tuple[str, ...]:
        """For fairseq's commands."""
        return ("--source-lang", self.source, "--target-lang", self.target)


def parse_direction(label: str) -> Direction:
    """What `en-de` means.

    Raises:
        Refused: not two language codes.
    """
    source, hyphen, target = label.partition("-")
    if not hyphen or "-" in target:
        raise Refused(f"--direction {label}: write SOURCE-TARGET, en-de say; with other hyphens --source-lang")
    return checked(Direction(source, target))


def checked(direction: Direction) -> Direction:
    """The same.

    Raises:
        Refused: no language codes, or twice the same.
    """
    for language in (direction.source, direction.target):
        if not re.fullmatch(LANGUAGE, language):
            raise Refused(f"'{language}' is no language code: en, de, zh, pt_BR, ...")
    if direction.source == direction.target:
        raise Refused(f"--source-lang and --target-lang are both {direction.source}")
    return direction


@dataclass(frozen=True)
class Variant:
    """A model: an encoding, and the seed of its training; `first`: the seed that names nothing."""

    encoding: Either
    seed: int
    first: int

    @property
    def slug(self) -> str:
        """Its name in paths and stages."""
        return self.encoding.slug + ("" if self.seed == self.first else f".seed={self.seed}")


@dataclass(frozen=True)
class Place:
    """Where a run, or of several directions one, keeps its files; `shown`: as commands name the run's folder."""

    output: Path
    shown: str
    inner: str = ""  # a direction's folder, where there are several

    def path(self, *parts: str) -> Path:
        return self.output.joinpath(*([self.inner] if self.inner else []), *parts)

    def named(self, *parts: str) -> str:
        """The same as commands name it."""
        return "/".join([self.shown, *([self.inner] if self.inner else []), *parts])

    def stage(self, kind: str, variant: str = "") -> str:
        """`train:shaw`, or of several directions `train:en-de.shaw`."""
        marks = ".".join(mark for mark in (self.inner, variant) if mark)
        return f"{kind}:{marks}" if marks else kind

    def runs(
        self,
        kind: str,
        command: Sequence[str],
        outputs: Sequence[str],
        after: Iterable[Stage] = (),
        inputs: Iterable[Path] = (),
        *,
        variant: str = "",
        identity: Sequence[str] = (),
        resumes: bool = False,
    ) -> Stage:
        """Return a stage of this place.

        Args:
            outputs: relative to this place.
            identity: what decides the result, where not all of the command does.
        """
        return Stage(
            self.stage(kind, variant),
            tuple(command),
            tuple(map(self.path, outputs)),
            tuple(after),
            tuple(inputs),
            resumes,
            tuple(identity),
        )
