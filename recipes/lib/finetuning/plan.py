"""Define the parts that all fine-tuning recipes share: the training stage, and models' paths in commands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from recipes.lib import planning
from recipes.lib.planning import flags, module
from recipes.lib.recipe import ROOT
from recipes.lib.stages import Stage

from .models import Model, tokenizer_files
from .settings import FineTuning

S = TypeVar("S", bound=FineTuning)
ARCH = "posenc_roberta_pretrained"
#: Pretrains the tiny built-in models. Like a user, a plan starts this recipe by its run.sh.
PRETRAIN = ("bash", "recipes/pretrain_mlm/run.sh", "--preset", "smoke")


@dataclass(frozen=True)
class Planner(planning.Planner[S]):
    """Define the stages of a fine-tuning recipe."""

    def place(self, model: Model) -> str:
        """Return the path of a model for use in commands."""
        return f"{self.shown}/pretrained/{model.path}" if self.settings.builtin else str(model.path)

    def weights(self, model: Model) -> list[Path]:
        """Return the weights of a model as input files, or an empty list if the recipe pretrains the model."""
        return [] if self.settings.builtin else [model.path]

    def tokenizer(self, model: Model) -> list[Path]:
        """Return a model's tokenizer files as input files, or an empty list if the recipe pretrains the model."""
        if self.settings.tokenizer_file:
            return [self.settings.tokenizer_file]
        return [] if self.settings.builtin else tokenizer_files(model.path)

    @cached_property
    def places(self) -> dict[str, str]:
        """Return placeholders for the paths of models and tokenizers, so that a stage stays done if files move."""
        models = {} if self.settings.builtin else {self.place(model): model.label for model in self.settings.models}
        tokenizer = self.settings.tokenizer_file
        return {**models, **({str(tokenizer): "TOKENIZER"} if tokenizer else {})}

    def unplaced(self, command: Iterable[str]) -> tuple[str, ...]:
        return tuple(self.places.get(word, word) for word in command)

    def options(self, *names: str) -> list[str]:
        """Return the settings with these names as options of a command; settings that are 0 or empty are left out."""
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
        """Return the stage that runs a module of recipes/. The inputs of the stage include the module's source file."""
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
        """Return the stage of a training run.

        Args:
            slug: Name of the training run in paths and stage names.
            data: Folder with the binarised data.
            words: Flags of fairseq-train, including the user's flags.
            schedule: Options of recipes.lib.scheduled, which computes the number of updates.
            after: Stages that must run before this stage.
            best: Name of the validation score that chooses the best checkpoint (empty: the validation loss).
            inputs: Files that the training reads; if one changes, the stage runs again.
        """
        scheduled, keep = flags(**schedule), flags(no_epoch_checkpoints=True, keep_interval_updates=1)
        stage = self.training_stage(slug, data, words, after, inputs, best=best, keep=keep)
        command = (*module("lib.scheduled"), *scheduled, "--", *stage.command)
        return replace(stage, command=command, identity=(*scheduled, *stage.identity))

    @property
    def notes_on_models(self) -> list[str]:
        """Return notes for the user about the models and the data of a preset."""
        settings = self.settings
        command = settings.pretrain_command
        notes = [f"Pretrain the models of this preset with: {command}"] if command else []
        if settings.invented or settings.builtin:
            notes.append(
                "The built-in data and models serve only to test the recipe. The scores of these models do not show "
                "the quality of encodings."
            )
        return notes
