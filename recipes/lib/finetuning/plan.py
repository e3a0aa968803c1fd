"""What the plans of all recipes share that fine-tune: their models, and the training itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from recipes.lib import launch, planning
from recipes.lib.flags import PLUGIN, QUIET, WHOLE
from recipes.lib.planning import flags, module
from recipes.lib.recipe import ROOT
from recipes.lib.stages import Stage

from .models import Model, cuts_text
from .settings import FineTuning

S = TypeVar("S", bound=FineTuning)
ARCH = "posenc_roberta_pretrained"


@dataclass(frozen=True)
class Planner(planning.Planner[S]):
    """Writes the stages of a recipe that fine-tunes."""

    def place(self, model: Model) -> str:
        """Return where a model is, as the commands name it."""
        return f"{self.shown}/pretrained/{model.path}" if self.settings.builtin else str(model.path)

    def weights(self, model: Model) -> list[Path]:
        """Return the files of a model that no stage makes."""
        return [] if self.settings.builtin else [model.path]

    def cuts(self, model: Model) -> list[Path]:
        """Return the files of a model's tokenizer that no stage makes."""
        if self.settings.tokenizer_file:
            return [self.settings.tokenizer_file]
        return [] if self.settings.builtin else cuts_text(model.path)

    @cached_property
    def places(self) -> dict[str, str]:
        """What stands for words of a command that name places: files count, not where they are."""
        models = {} if self.settings.builtin else {self.place(model): model.label for model in self.settings.models}
        tokenizer = self.settings.tokenizer_file
        return {**models, **({str(tokenizer): "TOKENIZER"} if tokenizer else {})}

    def unplaced(self, command: Iterable[str]) -> tuple[str, ...]:
        return tuple(self.places.get(word, word) for word in command)

    def given(self, *names: str) -> list[str]:
        """Return settings as words of a command; those that are 0 or empty are left out."""
        return flags(**{name: getattr(self.settings, name) or None for name in names})

    def run(
        self,
        name: str,
        program: str,
        words: Sequence[str],
        outputs: Sequence[str],
        after: Iterable[Stage] = (),
        inputs: Iterable[Path] = (),
        *,
        on_device: bool = False,
    ) -> Stage:
        """Return the stage that runs a module of recipes/, whose file is one of its inputs."""
        file = ROOT / "recipes" / f"{program.replace('.', '/')}.py"
        return self.stage(name, [*module(program), *words], outputs, after, [file, *inputs], on_device=on_device)

    def training(
        self,
        slug: str,
        data: str,
        words: Sequence[str],
        schedule: Mapping[str, object],
        after: Sequence[Stage],
        *,
        best: str = "",
        inputs: Iterable[Path] = (),
    ) -> Stage:
        """Return the stage of a training.

        Args:
            words: of fairseq-train, those of the user among them.
            schedule: options of recipes.lib.scheduled, which counts the updates.
            best: the score that chooses the best checkpoint.
        """
        command = [data, *WHOLE, *QUIET, "--log-interval", "20"]  # the user's flags come later, and win
        command += [*PLUGIN, *words, "--save-dir", f"{self.shown}/checkpoints/{slug}"]
        command += flags(best_checkpoint_metric=best, maximize_best_checkpoint_metric=bool(best))
        kept = ["--no-epoch-checkpoints", "--keep-interval-updates", "1"]
        scheduled = flags(**schedule)
        return Stage(
            f"train:{slug}",
            (*module("lib.scheduled"), *scheduled, "--", *launch.train_command([*command, *kept], self.settings)),
            (self.output / "checkpoints" / slug,),
            tuple(after),
            tuple(inputs),
            resumes=True,
            identity=(*scheduled, *launch.identity(list(self.unplaced(command)), self.settings)),
        )

    @property
    def notes_on_models(self) -> list[str]:
        """What a user should know of the models and data of a preset."""
        settings = self.settings
        told = [f"Models of this preset: {settings.pretraining}"] if settings.pretraining else []
        if settings.invented or settings.builtin:
            told.append("What is built in shows that the machinery works, not what an encoding is worth.")
        return told
