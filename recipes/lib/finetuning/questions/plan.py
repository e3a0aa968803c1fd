"""Define the stages of the recipes that train on SQuAD; each recipe's plan.py arranges these stages in order.

Training uses fairseq-train with the plugin's task and loss;
recipes.lib.scheduled computes the number of updates and starts the training.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from recipes.lib import places as files
from recipes.lib.flags import PLUGIN
from recipes.lib.planning import PACKAGE, SCRIPTS, flags
from recipes.lib.recipe import ROOT
from recipes.lib.settings import as_arguments
from recipes.lib.stages import Stage
from recipes.lib.values import Flags

from ..models import Model
from ..plan import ARCH, PRETRAIN, Planner
from .files import CHECKED, RECORD
from .settings import QuestionSettings

HERE = Path(__file__).parent
PREPARE = "data-bin-scripts/prepare_spans.py"
#: Modules that decide how questions are cut into windows, which answers are found, and how they are scored. A stage
#: runs again if one of its modules changes.
CUTTING = ("span_items", "span_pieces", "question_pieces", "byte_pieces")
PIECES = tuple(PACKAGE / "data" / f"{name}.py" for name in CUTTING)
SEARCH = (PACKAGE / "data" / "span_search.py", PACKAGE / "data" / "span_items.py", HERE / "answers.py")
THRESHOLD = PACKAGE / "metrics" / "null_threshold.py"
SCORES = (PACKAGE / "metrics" / "squad.py", THRESHOLD, HERE / "scores.py")
BASELINES = (*SCORES, *PIECES)

Q = TypeVar("Q", bound=QuestionSettings)


@dataclass(frozen=True)
class Training:
    """Describe a fine-tuning run on a question answering data set.

    Attributes:
        slug: Name of the training run in paths and stage names.
        model: The pretrained model.
        segments: Segment encoding: none, input or head.
        epochs: Number of epochs.
        seed: Random seed.
        train: Flags of fairseq-train.
    """

    slug: str
    model: Model
    segments: str
    epochs: int
    seed: int
    train: Flags


@dataclass(frozen=True, kw_only=True)
class Questions(Planner[Q]):
    """Define the stages of question answering.

    Attributes:
        version: Version of SQuAD: 1.1 or 2.0.
        longest: Maximum number of pieces in a window.
        separators: Number of </s> between question and context.
        batch: Number of windows in an update.
        keep: Which checkpoint answers the questions: last or best.
        null_threshold: Threshold for the values in null_odds.json for SQuAD 2.0; None for SQuAD 1.1.
    """

    version: str
    longest: int
    separators: int
    batch: int
    keep: str
    null_threshold: float | None = None

    # --- questions and models

    @cached_property
    def text(self) -> list[Stage]:
        """Return the stages that fetch or generate the questions, and the stage that pretrains the built-in models."""
        settings, stages = self.settings, list[Stage]()
        if settings.invented or settings.builtin:
            words = flags(output=f"{self.shown}/builtin", seed=settings.seed)
            inputs = [ROOT / "recipes" / "lib" / "invented" / "questions.py"]
            stages.append(self.run("builtin", "lib.finetuning.questions.builtin", words, ["builtin"], inputs=inputs))
        if settings.builtin:
            stages.append(self._pretrain(stages[0]))
        if not settings.question_files and not settings.invented:
            # The stage has no outputs: all runs share the downloads, and fetch.py itself skips existing files.
            named = [f"squad/{split}-v{self.version}.json" for split in ("train", "dev")]
            command = ["python", "data-bin-scripts/fetch.py", *named, "--output", self.raw]
            stages.append(self.stage("fetch", command, []))
        return stages

    def _pretrain(self, text: Stage) -> Stage:
        """Return the stage that pretrains tiny models on the built-in texts."""
        models = self.settings.models
        command = [*PRETRAIN, "--output", f"{self.shown}/pretrained"]
        command += ["--corpus", f"{self.shown}/builtin/text", "--vocabulary", "120", "--length", "128"]
        command += ["--pos-enc", ",".join(model.label for model in models)]
        return self.stage("pretrain", command, [f"pretrained/{model.path}" for model in models], [text])

    @cached_property
    def places(self) -> dict[str, str]:
        paths = map(Path, self.settings.question_files.values())
        return {**super().places, **{str(path.resolve()): path.name for path in paths}}

    def check(self, training: Training) -> Stage:
        """Return the stage that checks model, window length and training flags, before hours of training."""
        output = f"{CHECKED}/{training.slug}.json"
        words = flags(checkpoint=self.place(training.model), max_length=self.longest, output=f"{self.shown}/{output}")
        # The number of updates is a placeholder: it is known only when the questions are prepared.
        words += ["--", *PLUGIN, *self._model_flags(training), "--total-num-update", "1"]
        inputs = self.weights(training.model)
        return self.run(f"check:{training.slug}", "lib.finetuning.questions.check", words, [output], self.text, inputs)

    def prepare_english(
        self, model: Model, check: Stage, more: Iterable[str] = (), after: Iterable[Stage] = (), *inputs: Path
    ) -> Stage:
        """Return the stage that tokenizes the English training and development questions for a model.

        Args:
            model: The pretrained model.
            check: Stage that checks the model and must run before this stage.
            more: Further options of prepare_spans.py.
            after: Stages that write the files named by `more`.
            inputs: Input files named by `more`.
        """
        words = [*self._questions(), *self.windows(), *self.options("limit"), "--output", self.data(model), *more]
        paths = [Path(file).resolve() for file in self.settings.question_files.values()]
        return self.prepare(model.slug, model, words, [*after, check], [*paths, *inputs])

    def prepare(
        self, name: str, model: Model, words: list[str], after: Iterable[Stage], inputs: Iterable[Path]
    ) -> Stage:
        """Return the stage that tokenizes questions for a model.

        Args:
            name: Name of the prepared folder.
            model: The pretrained model.
            words: Options of prepare_spans.py for the question files, the windows and the output folder.
            after: Stages that must run before this stage.
            inputs: Files with the questions.
        """
        tokenizer = self.settings.tokenizer or "auto"
        command = ["python", PREPARE, *flags(checkpoint=self.place(model), tokenizer_path=tokenizer)]
        scripts = sorted(path for folder in ("questions", "spans") for path in (SCRIPTS / folder).glob("*.py"))
        files = [ROOT / PREPARE, *scripts, *PIECES, *inputs, *self.weights(model), *self.tokenizer(model)]
        command += ["--version", self.version, *words]
        return self.stage(f"prepare:{name}", command, [f"data-bin/{name}"], [*self.text, *after], files)

    def _questions(self) -> list[str]:
        settings = self.settings
        paths = {option: str(Path(file).resolve()) for option, file in settings.question_files.items()}
        if not paths:
            folder = f"{self.shown}/builtin" if settings.invented else f"{self.raw}/squad"
            end = "" if settings.invented else f"-v{self.version}"
            paths = {"train": f"{folder}/train{end}.json", "eval": f"{folder}/dev{end}.json"}
        return [*flags(**paths), *(["--seed", str(settings.seed)] if "text" in paths else [])]

    def windows(self) -> list[str]:
        """Return the options of prepare_spans.py that are the same for all questions."""
        words = [*self.options("bad"), "--longest", str(self.longest), *self.options("stride", "longest_question")]
        return [*words, *flags(separators=self.separators, limit_eval=self.settings.limit_dev or None)]

    @property
    def raw(self) -> str:
        return files.raw(self.settings.raw)

    def data(self, model: Model) -> str:
        return f"{self.shown}/data-bin/{model.slug}"

    # --- training

    def _model_flags(self, training: Training) -> list[str]:
        words = ["--task", "posenc_squad", "--criterion", "squad", "--arch", ARCH]
        words += ["--pretrained", self.place(training.model)]
        words += [] if training.segments == "none" else ["--segments", training.segments]
        words += [*self.options("pos_enc_args"), "--lr-scheduler", "polynomial_decay"]
        return [*words, *as_arguments(training.train)]

    def train(self, training: Training, check: Stage, prepared: Stage) -> Stage:
        data = self.data(training.model)
        words = [*self._model_flags(training), "--seed", str(training.seed)]
        schedule = {"record": f"{data}/{RECORD}", "count": "splits.train.windows", "batch": self.batch}
        schedule |= {"epochs": training.epochs, "warmup": self.settings.warmup}
        best = "spans" if self.keep == "best" else ""  # spans: share of windows with the correct answer
        inputs = self.weights(training.model)
        return self.training(training.slug, data, words, schedule, [check, prepared], best=best, inputs=inputs)

    def predict(self, training: Training, train: Stage) -> Stage:
        output = f"predictions/{training.slug}"
        words = [*self.answering(training), *flags(data=self.data(training.model), output=f"{self.shown}/{output}")]
        words += flags(null_threshold=self.null_threshold)
        name, inputs = f"predict:{training.slug}", [*SEARCH, THRESHOLD]
        return self.run(name, "lib.finetuning.questions.predict", words, [output], [train], inputs, on_device=True)

    def answering(self, training: Training) -> list[str]:
        """Return the options that name the fine-tuned model and configure the search for answers."""
        checkpoint = f"{self.shown}/checkpoints/{training.slug}/checkpoint_{self.keep}.pt"
        return ["--checkpoint", checkpoint, *self.options("n_best", "longest_answer")]

    def score(self, training: Training, predict: Stage) -> Stage:
        slug, output = training.slug, f"scores/{training.slug}.json"
        words = flags(data=self.data(training.model), output=f"{self.shown}/{output}")
        words += ["--predictions", f"{self.shown}/predictions/{slug}"]
        return self.run(f"score:{slug}", "lib.finetuning.questions.score", words, [output], [predict], SCORES)
