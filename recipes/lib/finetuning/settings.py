"""Define the settings that all recipes for fine-tuning share."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from recipes.lib import launch, places
from recipes.lib.encodings import parse_all
from recipes.lib.places import RAW
from recipes.lib.recipe import about, of_files
from recipes.lib.values import Flags, Refused

from .models import LAST, Model, models, with_encodings

BUILTIN = "builtin"
UNNAMED = "CHECKPOINT"  # stands for the model in --list and --dry-run if --checkpoint is not given
#: Flags of fairseq-train that the plan sets itself, and the option that controls each of them.
DECIDED = {
    **launch.DECIDED,
    **{name: f"--{name}" for name in ("seed", "segments")},
    **dict.fromkeys(("pos-enc", "pretrained", "finetune-from-model", "arch"), "--checkpoint"),
    **dict.fromkeys(("save-dir", "log-format", "user-dir", "restore-file"), "--output"),
    **dict.fromkeys(("max-epoch", "max-update", "total-num-update"), "--epochs"),
    **dict.fromkeys(("no-epoch-checkpoints", "keep-interval-updates"), "the best and the last checkpoint are kept"),
    "warmup-updates": "--warmup, a fraction of the updates",
}


@dataclass(kw_only=True)
class FineTuning(launch.Training):
    """Hold the settings that name the pretrained models and the data."""

    checkpoint: list[str] = field(
        default_factory=list,
        metadata=about(
            "Pretrained models: checkpoints, runs of recipes/pretrain_mlm with all their encodings, "
            f"folders that import-hf or export-hf wrote, or Hugging Face folders. With {BUILTIN}, the recipe "
            "pretrains tiny models itself."
        ),
    )
    pos_enc: list[str] = field(
        default_factory=list,
        metadata=about("Encodings that the models must have, in the order of the report (unset: accept any)."),
    )
    pretraining: str = field(
        default="", metadata=of_files("Command that pretrains the models of this preset, without --pos-enc.")
    )
    data: str
    bad: str
    warmup: float
    raw: str = field(default=RAW, metadata=about("Folder for downloads."))
    tokenizer_path: str = field(
        default="", metadata=about("Tokenizer of the models (unset: the tokenizer next to dict.txt).")
    )
    limit: int = launch.at_least(0, "Number of training rows or questions to use (0: all).", default=0)
    train: Flags = field(default_factory=dict, metadata=about("Flag of fairseq-train, for example --train.lr 0.001."))

    batch_option = "--train.batch-size"
    #: Flags of fairseq-train that are refused, and the setting to use instead.
    decided: ClassVar[Mapping[str, str]] = DECIDED
    #: Values of --tokenizer-path that name a tokenizer instead of a file.
    tokenizer_names: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        launch.refuse_decided(self.train, self.decided)
        self.models = self._models()

    def _models(self) -> list[Model]:
        if not self.checkpoint:  # so that --list and --dry-run can show the stages
            return [Model(UNNAMED, Path(UNNAMED))]
        if BUILTIN in self.checkpoint and (not self.builtin or self.pos_enc):
            problem = "the recipe pretrains these models itself"
            advice = "Leave out --pos-enc and all other values of --checkpoint"
            raise Refused(f"--checkpoint {BUILTIN}: {problem}. {advice}.")
        if self.builtin:
            return [Model(label, Path("checkpoints") / label / LAST) for label in self.builtin_encodings]
        named = models(self.checkpoint)
        return with_encodings(named, parse_all(self.pos_enc), self.pretrain_command) if self.pos_enc else named

    def refuse_missing(self) -> None:
        if not self.checkpoint:
            raise Refused(
                "--checkpoint is not given. Name a checkpoint of recipes/pretrain_mlm or a Hugging Face folder. "
                f"To pretrain models, use {self.pretrain_command or f'--checkpoint {BUILTIN}, which trains tiny ones'}."
            )
        places.refuse_missing("checkpoint", *([] if self.builtin else [model.path for model in self.models]))
        places.refuse_missing("tokenizer-path", self.tokenizer_path if self.tokenizer_file else "")

    @property
    def pretrain_command(self) -> str:
        """Return the command that pretrains the models of this preset; empty if the preset names none."""
        encodings = f" --pos-enc {shlex.quote(','.join(self.pos_enc))}" if self.pos_enc else ""
        return self.pretraining and self.pretraining + encodings

    @property
    def builtin(self) -> bool:
        """Return whether the recipe pretrains its own tiny models."""
        return self.checkpoint == [BUILTIN]

    @property
    def builtin_encodings(self) -> tuple[str, ...]:
        """Return the encodings of the tiny models that the recipe pretrains itself."""
        return ("learned", "shaw")

    @property
    def invented(self) -> bool:
        """Return whether the recipe generates its data itself."""
        return self.data == BUILTIN

    @property
    def tokenizer(self) -> str:
        """Return --tokenizer-path as an absolute path, because commands run in the root of the repository."""
        path = self.tokenizer_path
        return path if path in ("", *self.tokenizer_names) else str(Path(path).resolve())

    @property
    def tokenizer_file(self) -> Path | None:
        """Return the tokenizer file of --tokenizer-path, or None if the option does not name a file."""
        return Path(self.tokenizer) if self.tokenizer not in ("", *self.tokenizer_names) else None
