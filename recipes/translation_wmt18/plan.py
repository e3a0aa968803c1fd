"""Define all commands of the recipe, in order.

The commands are plain fairseq, except for `--pos-enc` and the GNMT length penalty.
"""

from __future__ import annotations

import shlex
from functools import cached_property
from pathlib import Path

from recipes.lib import launch, planning
from recipes.lib.encodings import labels
from recipes.lib.flags import PLUGIN
from recipes.lib.package import tables
from recipes.lib.planning import LIB, flags, module
from recipes.lib.recipe import Plan
from recipes.lib.stages import Stage

from .finished import refuse_unlike
from .layout import Direction, Place
from .models import Models, model_flags, search_flags
from .published import differences
from .settings import Settings
from .text import Text

HERE = Path(__file__).parent


def make_plan(settings: Settings, output: Path, shown: str) -> Plan:
    refuse_unlike(settings)
    return Planner(settings, output, shown).plan()


class Planner(planning.Planner[Settings]):
    def plan(self) -> Plan:
        chains: list[list[Stage]] = []
        ends: list[Stage] = []
        for models in self.models.values():
            binary = self.texts[models.direction.pair].stages[-1]
            chains_of_direction = [models.chain(variant, binary) for variant in self.settings.variants]
            chains += chains_of_direction
            ends += self.ends(models, chains_of_direction)
        texts = [text.stages for text in self.texts.values()]
        compare = self.compare([*ends, *(chain[-1] for chain in chains)])
        return Plan([[[self.check()]], texts, chains, [[*ends, compare]]], tuple(self.notes()))

    def place(self, direction: Direction) -> Place:
        several = len(self.settings.directions) > 1
        return Place(self.output, self.shown, direction.label if several else "")

    @cached_property
    def texts(self) -> dict[frozenset[str], Text]:
        """Return the text of each language pair; it is prepared once, in the folder of the pair's first direction."""
        texts: dict[frozenset[str], Text] = {}
        for direction in self.settings.directions:
            texts.setdefault(direction.pair, Text(self.settings, direction, self.place(direction)))
        return texts

    @cached_property
    def models(self) -> dict[str, Models]:
        """Return the models of each direction, keyed by the label of the direction."""
        return {
            direction.label: Models(self.settings, direction, self.place(direction), self.texts[direction.pair].place)
            for direction in self.settings.directions
        }

    @property
    def beside(self) -> list[Path]:
        """Return the files with the results of the earlier runs in --beside."""
        return [Path(folder).resolve() / "comparison.json" for folder in self.settings.beside]

    def ends(self, models: Models, chains: list[list[Stage]]) -> list[Stage]:
        """Return the stages that need all models of a direction."""
        averaged, scored = ([chain[number] for chain in chains] for number in (1, -1))
        measure = [models.measure(averaged[: len(models.timed)])] if self.settings.measure else []
        return [*measure, *([models.by_length(measure, scored)] if self.settings.length_bounds else [])]

    def check(self) -> Stage:
        """Return the stage that checks the models, the decoding options, BLEU's tokenizer and earlier runs.

        Without this stage, errors would appear only after hours of training.
        """
        settings = self.settings
        languages = list(dict.fromkeys(direction.target for direction in settings.directions))
        command = module("lib.check_models") + flags(output=f"{self.shown}/checked.json", target_lang=languages)
        command += flags(pos_enc=labels(settings.encodings), generate=(shlex.join(search_flags(settings)),))
        command += ["--", *PLUGIN, *model_flags(settings, settings.directions[0])]
        return self.stage("check", command, ["checked.json"], inputs=[LIB / "check_models.py", *self.beside])

    def compare(self, after: list[Stage]) -> Stage:
        settings = self.settings
        command = module("translation_wmt18.compare") + flags(output=self.shown, seed=settings.seed)
        command += flags(direction=[(direction.source, direction.target) for direction in settings.directions])
        command += flags(trained_seed=[variant.seed for variant in settings.variants[:: len(settings.encodings)]])
        command += flags(pos_enc=labels(settings.encodings), differs=differences(settings))
        command += flags(unmeasured=not settings.measure)
        free = flags(beside=[str(path.parent) for path in self.beside])
        own = [HERE / f"{name}.py" for name in ("compare", "finished", "published", "layout")]
        inputs = [*own, LIB / "lines.py", *self.beside, *tables()]
        return self.stage("compare", command, ["comparison.json", "bleu.png"], after, inputs, free=free)

    def notes(self) -> list[str]:
        settings = self.settings
        most = settings.number("max-tokens", 0)
        notes = launch.notes(settings, launch.effective_batch(settings, most) if most else "")
        notes += dict.fromkeys(note for text in self.texts.values() for note in text.notes())
        if settings.train_longest_words:
            notes.append(
                f"The models are trained and validated on pairs with at most {settings.train_longest_words} words and "
                f"{settings.longest_training} pieces per side. The test set has sentences of all lengths."
            )
        return notes
