"""What the recipe runs: every command, in order. Plain fairseq, but for `--pos-enc` and GNMT's length penalty."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from recipes.lib import launch
from recipes.lib.package import tables
from recipes.lib.recipe import Plan
from recipes.lib.stages import Stage

from .finished import refuse_unlike
from .layout import Direction, Place
from .models import Models, model_flags, search_flags
from .published import differences
from .settings import Settings
from .text import LIB, SHARED, Text, module

HERE = Path(__file__).parent


def make_plan(settings: Settings, output: Path, shown: str) -> Plan:
    refuse_unlike(settings)
    return Planner(settings, output, shown).plan()


@dataclass(frozen=True)
class Planner:
    settings: Settings
    output: Path
    shown: str  # the output folder as the commands name it, relative to the repository

    def plan(self) -> Plan:
        chains: list[list[Stage]] = []
        ends: list[Stage] = []
        for models in self.models.values():
            binary = self.texts[models.direction.pair].stages[-1]
            mine = [models.chain(variant, binary) for variant in self.settings.variants]
            chains += mine
            ends += self.ends(models, mine)
        texts = [text.stages for text in self.texts.values()]
        compare = self.compare(tuple(ends), tuple(chain[-1] for chain in chains))
        return Plan([[[self.check()]], texts, chains, [[*ends, compare]]], tuple(self.notes()))

    def place(self, direction: Direction) -> Place:
        several = len(self.settings.directions) > 1
        return Place(self.output, self.shown, direction.label if several else "")

    @cached_property
    def texts(self) -> dict[frozenset[str], Text]:
        """By pair: the direction that comes first prepares it."""
        found: dict[frozenset[str], Text] = {}
        for direction in self.settings.directions:
            found.setdefault(direction.pair, Text(self.settings, direction, self.place(direction)))
        return found

    @cached_property
    def models(self) -> dict[str, Models]:
        """By direction."""
        return {
            one.label: Models(self.settings, one, self.place(one), self.texts[one.pair].place)
            for one in self.settings.directions
        }

    @property
    def beside(self) -> list[Path]:
        """What earlier runs found."""
        return [Path(folder).resolve() / "comparison.json" for folder in self.settings.beside]

    def ends(self, models: Models, chains: list[list[Stage]]) -> list[Stage]:
        """What is made of all models of a direction."""
        averaged = tuple(chain[1] for chain in chains[: len(models.timed)])
        measure = models.measure(averaged)
        scored = tuple(chain[-1] for chain in chains)
        return [measure, *([models.by_length(measure, scored)] if self.settings.length_bounds else [])]

    def check(self) -> Stage:
        """Models, the options of decoding, the tokenizer of BLEU, earlier runs: what would fail hours later."""
        settings = self.settings
        command = [*module("lib.check_models"), "--output", f"{self.shown}/checked.json"]
        for language in dict.fromkeys(one.target for one in settings.directions):
            command += ["--target-lang", language]
        for encoding in settings.encodings:
            command += ["--pos-enc", encoding.label]
        flags = model_flags(settings, settings.directions[0])
        command += ["--generate", shlex.join(search_flags(settings)), "--", *flags]
        inputs = (LIB / "check_models.py", *self.beside)
        return Stage("check", tuple(command), (self.output / "checked.json",), inputs=inputs)

    def compare(self, ends: tuple[Stage, ...], scored: tuple[Stage, ...]) -> Stage:
        settings = self.settings
        command = [*module("translation_wmt18.compare"), "--output", self.shown, "--seed", str(settings.seed)]
        for one in settings.directions:
            command += ["--direction", one.source, one.target]
        for variant in settings.variants[:: len(settings.encodings)]:
            command += ["--trained-seed", str(variant.seed)]
        for encoding in settings.encodings:
            command += ["--pos-enc", encoding.label]
        command += ["--differs", ", ".join(differences(settings))]
        identity = tuple(command)
        for path in self.beside:
            command += ["--beside", str(path.parent)]
        outputs = (self.output / "comparison.json", self.output / "bleu.png")
        own = tuple(HERE / f"{name}.py" for name in ("compare", "finished", "published", "layout"))
        inputs = (*own, SHARED / "figure.py", LIB / "lines.py", *self.beside, *tables())
        return Stage("compare", tuple(command), outputs, (*ends, *scored), inputs, identity=identity)

    def notes(self) -> list[str]:
        settings = self.settings
        most = settings.number("max-tokens", 0)
        told = launch.notes(settings, launch.effective_batch(settings, most) if most else "")
        told += dict.fromkeys(note for text in self.texts.values() for note in text.notes())
        if settings.train_longest_words:
            told.append(
                f"Trained and validated on pairs of at most {settings.train_longest_words} words and "
                f"{settings.longest_training} pieces a side; the test set is whole."
            )
        return told
