"""Define directions and models, and the paths of their files in a run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from recipes.lib.encodings import Either
from recipes.lib.stages import Stage
from recipes.lib.values import Refused

CHANGE = "Give two codes such as en and pt_BR with --direction, or with --source-lang and --target-lang."
LANGUAGE = r"[A-Za-z]{2,}([_-][A-Za-z0-9]+)*"


@dataclass(frozen=True)
class Direction:
    """Name a direction of translation: its source and target language."""

    source: str
    target: str

    @property
    def label(self) -> str:
        return f"{self.source}-{self.target}"

    @property
    def pair(self) -> frozenset[str]:
        """Return both languages as a set; en-de and de-en use the same text."""
        return frozenset((self.source, self.target))

    def flags(self) -> tuple[str, ...]:
        """Return the languages as flags of fairseq's commands."""
        return ("--source-lang", self.source, "--target-lang", self.target)


def parse_direction(label: str) -> Direction:
    """Return the direction of a label such as `en-de`.

    Raises:
        Refused: The label does not consist of two language codes.
    """
    source, hyphen, target = label.partition("-")
    if not hyphen or "-" in target:
        problem = "write SOURCE-TARGET, for example en-de"
        raise Refused(f"--direction {label}: {problem}. For codes with hyphens use --source-lang and --target-lang.")
    return checked(Direction(source, target))


def checked(direction: Direction) -> Direction:
    """Check the languages of a direction, and return the direction unchanged.

    Raises:
        Refused: The source or target is not a language code, or source and target are the same.
    """
    for language in (direction.source, direction.target):
        if not re.fullmatch(LANGUAGE, language):
            raise Refused(f"Direction {direction.label}: '{language}' is not a language code. {CHANGE}")
    if direction.source == direction.target:
        raise Refused(f"Direction {direction.label}: source and target language must differ. {CHANGE}")
    return direction


@dataclass(frozen=True)
class Variant:
    """Name a model: its encoding and the seed of its training.

    Args:
        encoding: Position encoding of the model.
        seed: Random seed of the training.
        first: Random seed of the run; names do not contain this seed.
    """

    encoding: Either
    seed: int
    first: int

    @property
    def slug(self) -> str:
        """Return the name of the model in paths and stages."""
        return self.encoding.slug + ("" if self.seed == self.first else f".seed={self.seed}")


@dataclass(frozen=True)
class Place:
    """Locate the folder of a run, or of one direction if the run has several directions.

    Args:
        output: Folder of the run.
        shown: Name of the run's folder in commands.
        inner: Subfolder of the direction; empty if the run has only one direction.
    """

    output: Path
    shown: str
    inner: str = ""

    def path(self, *parts: str) -> Path:
        return self.output.joinpath(*([self.inner] if self.inner else []), *parts)

    def named(self, *parts: str) -> str:
        """Return a path in this folder, in the form that commands contain."""
        return "/".join([self.shown, *([self.inner] if self.inner else []), *parts])

    def stage(self, kind: str, variant: str = "") -> str:
        """Return the name of a stage: `train:shaw`, or with several directions `train:en-de.shaw`."""
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
        """Return a stage that writes into this folder.

        Args:
            kind: Kind of the stage, the first part of its name.
            command: Words of the command.
            outputs: Paths that the stage writes, relative to this folder.
            after: Stages that must run before this stage.
            inputs: Files that the stage reads.
            variant: Model of the stage, the second part of its name.
            resumes: Whether the command continues an interrupted run.
            identity: Words of the command that determine the result (empty: all words).
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
