"""Define the stages that train, average, score and measure the models of one direction."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace

from recipes.lib import launch
from recipes.lib.flags import ALONE, PLUGIN, QUIET, WHOLE
from recipes.lib.planning import LIB, Planner, flags, module
from recipes.lib.settings import as_arguments
from recipes.lib.stages import Stage

from .layout import Direction, Place, Variant
from .settings import MAX_POSITIONS, Settings
from .text import SHARED

LEAST_KEPT = 10  # smallest number of checkpoints that are kept
GNMT = "lenpen-form"  # flag of this package's task


def model_flags(settings: Settings, direction: Direction) -> list[str]:
    """Return the flags that define a model, except the flags of its position encoding."""
    return [*direction.flags(), "--arch", settings.arch, *as_arguments(settings.train)]


def search_flags(settings: Settings) -> list[str]:
    """Return the flags of beam search."""
    task = ["--task", "posenc_translation"] if GNMT in settings.generate else []
    return [*task, *as_arguments(settings.generate)]


@dataclass(frozen=True)
class Models:
    """Define the stages of all models of a direction.

    Args:
        settings: Settings of the run.
        direction: Direction of translation.
        place: Folder of the direction.
        text: Folder of the text, which the opposite direction may share.
    """

    settings: Settings
    direction: Direction
    place: Place
    text: Place

    def chain(self, variant: Variant, binary: Stage) -> list[Stage]:
        train = self.train(variant, binary)
        average = self.average(variant, train)
        generate = self.generate(variant, average)
        return [train, average, generate, self.score(variant, generate)]

    def train(self, variant: Variant, binary: Stage) -> Stage:
        words = [*model_flags(self.settings, self.direction), *variant.encoding.flags(), "--seed", str(variant.seed)]
        data, keep = self.text.named("data-bin"), self.keep_flags()
        planner = Planner(self.settings, self.place.path(), self.place.named())
        stage = planner.training_stage(variant.slug, data, words, [binary], keep=keep)
        return replace(stage, name=self.place.stage("train", variant.slug))

    @property
    def by_update(self) -> bool:
        return "save-interval-updates" in self.settings.train

    def keep_flags(self) -> list[str]:
        """Return the flags that keep at least as many checkpoints as are averaged.

        If more checkpoints are kept, --average can be changed without training again.
        """
        number = max(self.settings.average, LEAST_KEPT)
        if self.by_update:
            return ["--no-epoch-checkpoints", "--keep-interval-updates", str(number)]
        return ["--keep-last-epochs", str(number)]

    def average(self, variant: Variant, train: Stage) -> Stage:
        number = f"num_{'update' if self.by_update else 'epoch'}_checkpoints"
        command = ["python", "-m", "fairseq_posenc", "average"]
        command += flags(inputs=self.place.named("checkpoints", variant.slug), **{number: self.settings.average})
        command += flags(output=self.averaged(variant))
        every = self.settings.number("save-interval-updates", 1) if self.by_update else None
        # --every is only a check, which does not change the result
        command, identity = command + flags(every=every), command
        outputs = [f"averaged/{variant.slug}.pt"]
        return self.place.runs("average", command, outputs, [train], variant=variant.slug, identity=identity)

    def averaged(self, variant: Variant) -> str:
        return self.place.named("averaged", f"{variant.slug}.pt")

    def decoding(self, variant: Variant) -> list[str]:
        """Return the arguments that fairseq-generate and fairseq-interactive share."""
        settings, named = self.settings, self.text.named
        command = [named("data-bin"), *PLUGIN, *self.direction.flags(), "--path", self.averaged(variant)]
        # fairseq accepts one subword model. It must be that of the source; undoing subwords works with any model.
        code = f".{self.direction.source}" if settings.separate else ""
        if settings.subwords == "sentencepiece":
            command += ["--bpe", "sentencepiece", "--sentencepiece-model", named("subwords", f"model{code}.model")]
        else:
            command += ["--tokenizer", "moses", "--bpe", "fastbpe", "--bpe-codes", named("subwords", f"codes{code}")]
        if settings.longest >= MAX_POSITIONS:  # allow sentences of --longest pieces, independently of the model
            for side in ("source", "target"):
                command += [f"--max-{side}-positions", str(settings.longest + 1)]
        return [*command, *search_flags(settings)]

    def generate(self, variant: Variant, average: Stage) -> Stage:
        folder = f"generated/{variant.slug}"
        command = ["fairseq-generate", *WHOLE, *QUIET, *ALONE, *self.decoding(variant), "--gen-subset", "test"]
        command += flags(results_path=self.place.named(folder))
        # Skip sentences that are longer than the model's table of positions; the score stage reports them.
        command += flags(skip_invalid_size_inputs_valid_test=bool(self.settings.train_longest_words))
        on_device = launch.on_one_device(command, self.settings)
        return self.place.runs("generate", on_device, [folder], [average], variant=variant.slug, identity=command)

    def interactive(self, variant: Variant) -> list[str]:
        """Return the command that translates raw text, one sentence per line."""
        command = ["fairseq-interactive", *ALONE, *self.decoding(variant), "--buffer-size", "64"]
        if "max-tokens" not in self.settings.generate:
            command += ["--max-tokens", "4000"]
        return [*command, *(["--cpu"] if self.settings.device == "cpu" else [])]

    def score(self, variant: Variant, generate: Stage) -> Stage:
        target, named = self.direction.target, self.place.named
        outputs = [f"translations/{variant.slug}.{target}", f"scores/{variant.slug}.json"]
        command = module("lib.translation.score")
        command += flags(generated=named("generated", variant.slug, "generate-test.txt"))
        # Score against the raw references; fairseq itself would score against encoded and decoded references.
        command += flags(reference=self.text.named("raw", f"test.{target}"), language=target)
        command += flags(translation=named(outputs[0]), output=named(outputs[1]))
        command += flags(may_refuse=bool(self.settings.train_longest_words))
        inputs = [SHARED / "score.py", LIB / "lines.py"]
        return self.place.runs("score", command, outputs, [generate], inputs, variant=variant.slug)

    # --- stages after the models

    @property
    def timed(self) -> list[Variant]:
        """Return the models of the first seed, whose cost is measured; models of other seeds cost the same."""
        return self.settings.variants[: len(self.settings.encodings)]

    def measure(self, averaged: list[Stage]) -> Stage:
        checkpoints = [f"{variant.encoding.label}:{self.averaged(variant)}" for variant in self.timed]
        command = module("lib.translation.measure") + flags(output=self.place.named("measured.json"))
        command += flags(seconds=self.settings.measure_seconds)
        command += flags(generate=(shlex.join(search_flags(self.settings)),), checkpoint=checkpoints)
        identity = [*command, "--precision", self.settings.precision]
        inputs = [SHARED / "measure.py", SHARED / "memory.py"]
        on_device = launch.on_one_device(command, self.settings)
        return self.place.runs("measure", on_device, ["measured.json"], averaged, inputs, identity=identity)

    def by_length(self, measure: list[Stage], scored: list[Stage]) -> Stage:
        settings, named = self.settings, self.place.named
        command = module("lib.translation.lengths") + flags(language=self.direction.target)
        command += flags(source=self.text.named("raw", f"test.{self.direction.source}"))
        command += flags(reference=self.text.named("raw", f"test.{self.direction.target}"))
        command += flags(bound=settings.length_bounds, trained=settings.train_longest_words or None)
        command += flags(
            measured=named("measured.json") if measure else None,
            scores=named("scores"),
            translations=named("translations"),
        )
        command += flags(output=named("lengths"))
        command += flags(system=[f"{variant.encoding.label}:{variant.slug}" for variant in settings.variants])
        inputs = [SHARED / "lengths.py", SHARED / "score.py", LIB / "lines.py"]
        return self.place.runs("lengths", command, ["lengths.json", "lengths.png"], [*measure, *scored], inputs)
