"""Define the settings of the XTREME recipe; their values are in conf/ and recipes/lib/finetuning/protocols/."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Final

from recipes.lib import launch
from recipes.lib.finetuning.questions.settings import (
    DECIDED_OF_QUESTIONS,
    QuestionSettings,
    english,
    file_names,
    refuse_same,
)
from recipes.lib.finetuning.sentences.settings import SentenceSettings
from recipes.lib.finetuning.settings import BUILTIN, FineTuning
from recipes.lib.finetuning.trials import Variant
from recipes.lib.recipe import about
from recipes.lib.values import Flags, Refused

from .sets import SETS, TASKS, XNLI, languages_of, task_named, without_files

PUBLISHED = "published"
VERSION: Final = "1.1"  # version of SQuAD in which all questions have answers
SCHEDULE = ("lr-scheduler", "polynomial_decay")  # set by the protocol; the plan of questions always sets the same
#: Settings that only questions use, and those that only XNLI uses.
OF_QUESTIONS = {setting.name for setting in fields(QuestionSettings)} - {setting.name for setting in fields(FineTuning)}
OF_XNLI = {"train_rows"}


@dataclass(kw_only=True)
class Settings(SentenceSettings, QuestionSettings):
    task: list[str] = field(
        metadata=about(
            "Tasks: any of xnli, xquad, mlqa and tydiqa. The same fine-tuned model answers all question datasets."
        )
    )
    protocol: str = field(
        metadata=about(
            "Fine-tuning protocol of a paper, which sets the hyperparameters: diet-xtreme (m1-m4, m4m and diet are "
            "for GLUE). The values of the protocols are in recipes/lib/finetuning/protocols."
        )
    )
    languages: list[str] = field(
        default_factory=list,
        metadata=about("Languages to score, such as en,de,zh (unset: all languages that have files)."),
    )
    data: str = field(
        metadata=about(
            f"Source of the data: {PUBLISHED} downloads the datasets, {BUILTIN} generates small invented ones, and a "
            "path names your own folder with the original files or XTREME's copies of them, plain or .gz."
        )
    )
    train_file: str = field(
        default="",
        metadata=about(
            "File with English training questions (unset: train-v1.1.json or train.json in --data or in its subfolder "
            "squad)."
        ),
    )
    dev_file: str = field(
        default="",
        metadata=about(
            "File with English development questions, by which --lr, --epochs and the checkpoint are chosen (unset: "
            "dev-v1.1.json or dev.json in --data or in its subfolder squad)."
        ),
    )

    known = TASKS
    script = "data-bin-scripts/prepare_xtreme.sh"
    fetched = PUBLISHED

    def __post_init__(self) -> None:
        self.task = [task_named(word) for word in self.task]
        super().__post_init__()
        if self.sentences and self.question_sets and (self.builtin or self.invented):
            problem = f"{XNLI} and the question datasets have different built-in data and models"
            raise Refused(
                f"--task {','.join(self.task)}: {problem}. Give --data and --checkpoint, or leave {XNLI} out."
            )
        self._check_languages()
        if self.question_sets:
            self._check_questions()

    def _check_languages(self) -> None:
        if len(set(self.languages)) < len(self.languages):
            raise Refused(f"--languages {','.join(self.languages)}: a language occurs twice. Remove it.")
        known = dict.fromkeys(code for task in self.task for code in languages_of(task))
        for code in self.languages:
            if code not in known:
                raise Refused(
                    f"--languages {code}: {', '.join(self.task)} has only the languages {', '.join(known)}. Choose "
                    "some of these languages."
                )
        for task in self.task:
            if self.languages and not set(self.languages) & set(languages_of(task)):
                raise Refused(
                    f"--languages {','.join(self.languages)}: {task} has only the languages "
                    f"{', '.join(languages_of(task))}. Choose at least one of these languages."
                )

    def _check_questions(self) -> None:
        decided = {**DECIDED_OF_QUESTIONS, "max-positions": "--longest, the maximum length of a window"}
        launch.refuse_decided(self.flags_of_questions(), decided)
        self.check_windows("--longest", self.longest, self.separators)
        if self.own and not self.english("train"):
            names = " or ".join(file_names("train", VERSION))
            problem = f"neither the folder nor its subfolder squad has {names}, plain or .gz"
            raise Refused(f"--data {self.data}: {problem}. Give --train-file FILE with English questions.")
        if (self.train_file or self.dev_file) and not self.own:
            raise Refused(
                f"--train-file and --dev-file need --data DIR with the questions to score, not --data {self.data}."
            )
        refuse_same(self.english("train") or "", self.english("dev") or "")
        if len(self.lr) * len(self.epochs) > 1 and not self.chooses:
            raise Refused("Choosing among several --lr or --epochs needs English questions. Add --dev-file FILE.")

    def refuse_missing(self) -> None:
        super().refuse_missing()
        for task in self.task if self.own else []:
            languages = [code for code in self.languages if code in languages_of(task)]
            if missing := without_files(languages, self.files(task)):
                names = ",".join(missing)
                problem = f"--data {self.data} has no {task} files for {names}"
                raise Refused(f"--languages {names}: {problem}. Add the files, or leave {names} out.")

    def files(self, task: str) -> list[Path]:
        return super().files(task) if task == XNLI else SETS[task].files_in(Path(self.data))

    def refuse_unused(self, named: Set[str]) -> None:
        """Refuse settings that the user gave although nothing uses them, including settings of other tasks."""
        unused = sorted(
            named & ((set() if self.question_sets else OF_QUESTIONS) | (set() if self.sentences else OF_XNLI))
        )
        if unused:
            options = ", ".join(f"--{name.replace('_', '-')}" for name in unused)
            raise Refused(
                f"--task {','.join(self.task)} does not use {options}. Leave out the settings that have no effect."
            )
        super().refuse_unused(named)
        if self.question_sets and self.keep == "best" and "keep" in named and not self.chooses:
            raise Refused("--keep best needs English questions to choose the checkpoint. Add --dev-file FILE.")

    def flags_of_questions(self) -> Flags:
        """Return the flags of fairseq-train for question datasets; the plan adds the learning rate schedule."""
        return {name: value for name, value in self.train.items() if (name, value) != SCHEDULE}

    def variants(self) -> list[Variant]:
        if self.sentences:
            return super().variants()
        return [Variant("", model, kind, kind) for kind in self.segments for model in self.models]

    @property
    def builtin_encodings(self) -> tuple[str, ...]:
        return ("learned",) if self.sentences else ("learned", "shaw")

    @property
    def chosen(self) -> list[str]:
        return ["--languages", ",".join(self.languages)] if self.languages else []

    @property
    def sentences(self) -> bool:
        """Return whether XNLI is one of the tasks."""
        return XNLI in self.task

    @property
    def question_sets(self) -> list[str]:
        """Return the tasks that are question datasets."""
        return [task for task in self.task if task != XNLI]

    def only(self, tasks: list[str]) -> Settings:
        """Return a copy of the settings with only some of the tasks."""
        return replace(self, task=tasks)

    @property
    def chooses(self) -> bool:
        """Return whether there are English development questions to choose checkpoints and hyperparameters."""
        return not self.own or bool(self.english("dev"))

    @property
    def used_checkpoint(self) -> str:
        """Return the checkpoint that is scored: --keep, or `last` if there are no English development questions."""
        return self.keep if self.chooses else "last"

    @property
    def question_files(self) -> Mapping[str, str]:
        files = {"train": self.english("train"), "eval": self.english("dev")} if self.own else {}
        return {option: file for option, file in files.items() if file}

    def english(self, split: str) -> str | None:
        """Return the user's file of English questions for a split (train or dev), or None if there is none."""
        named = self.train_file if split == "train" else self.dev_file
        folders = [Path(self.data), Path(self.data) / "squad"]
        return named or english(folders, split, VERSION)
