"""What the recipe runs: every command, in order. Plain fairseq, but for the task that knows pretrained models."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from recipes.lib import finetuning, launch, places
from recipes.lib.finetuning import LAST, Model, cuts_text
from recipes.lib.flags import PLUGIN, QUIET, WHOLE
from recipes.lib.package import tables
from recipes.lib.recipe import ROOT, Plan
from recipes.lib.settings import as_arguments
from recipes.lib.stages import Stage

from . import rows
from .settings import BUILTIN, Settings, Trial, Variant
from .tasks import TASKS, metrics

HERE = Path(__file__).parent
SCRIPTS = ROOT / "data-bin-scripts"
RECORD = "glue.json"
BUILTIN_ENCODING = "learned"


def make_plan(settings: Settings, output: Path, shown: str) -> Plan:
    return Planner(settings, output, shown).plan()


def module(name: str) -> list[str]:
    return ["python", "-m", f"recipes.finetune_glue.{name}"]


@dataclass(frozen=True)
class Planner:
    settings: Settings
    output: Path
    shown: str  # the output folder as the commands name it, relative to the repository

    def plan(self) -> Plan:
        first = [*self.builtin, *self.checks.values(), *self.prepared.values(), *self.baselines.values()]
        chains = [self.chain(trial) for variant in self.variants for trial in self.settings.trials(variant)]
        after = (*self.baselines.values(), *(chain[-1] for chain in chains))
        return Plan([[first], chains, [[self.compare(after)]]], tuple(self.notes()))

    def notes(self) -> list[str]:
        settings = self.settings
        told = launch.notes(settings, f"An update: {settings.batch} rows.")
        singles = [task for task in settings.task if not TASKS[task].pair]
        if singles and settings.segments != ["none"]:
            told.append(f"{', '.join(singles)}: one sentence, nothing for segments to tell apart; none are made.")
        told += finetuning.notes(settings.pretraining)
        if BUILTIN in (settings.data, *settings.checkpoint):
            told.append("What is built in shows that the machinery works, not what an encoding is worth.")
        trials = sum(len(settings.trials(variant)) for variant in self.variants)
        if trials > len(self.variants):
            told.append(f"{trials} trainings: {len(self.variants)} models and tasks, of each the best settings count.")
        return told

    # --- models

    @cached_property
    def models(self) -> list[Model]:
        if self.settings.models:
            return self.settings.models
        return [Model(BUILTIN_ENCODING, self.output / "pretrained" / "checkpoints" / BUILTIN_ENCODING / LAST)]

    @cached_property
    def variants(self) -> list[Variant]:
        return self.settings.variants(self.models)

    def place(self, model: Model) -> str:
        """As commands name it."""
        inside = model.path.is_relative_to(self.output)
        return f"{self.shown}/{model.path.relative_to(self.output)}" if inside else str(model.path)

    def unplaced(self, words: list[str], model: Model) -> tuple[str, ...]:
        """A model counts, and a tokenizer, not where they lie."""
        known = {self.place(model): "MODEL", **({str(self.tokenizer): "TOKENIZER"} if self.tokenizer else {})}
        return tuple(known.get(word, word) for word in words)

    @cached_property
    def builtin(self) -> list[Stage]:
        """The model and the rows that need no download."""
        settings, found = self.settings, list[Stage]()
        if not settings.models:
            command = ["bash", "recipes/pretrain_mlm/run.sh", "--preset", "smoke", "--pos-enc", BUILTIN_ENCODING]
            command += ["--seed", str(settings.seed), "--output", f"{self.shown}/pretrained"]
            found.append(Stage("pretrain", tuple(command), (self.output / "pretrained",), resumes=True))
        if settings.data == BUILTIN:
            words = [*module("builtin"), "--output", f"{self.shown}/builtin", "--seed", str(settings.seed)]
            words += [word for task in settings.task for word in ("--task", task)]
            found.append(Stage("builtin", tuple(words), (self.output / "builtin",), inputs=(HERE / "builtin.py",)))
        return found

    @cached_property
    def tokenizer(self) -> Path | None:
        """The user's; commands run in the repository."""
        return Path(self.settings.tokenizer_path).resolve() if self.settings.tokenizer_path else None

    def given(self, model: Model) -> tuple[Path, ...]:
        """A model that no stage made, and what cuts its text."""
        own = [] if not self.settings.models else [model.path, *([] if self.tokenizer else cuts_text(model.path))]
        return (*own, *([self.tokenizer] if self.tokenizer else []))

    @cached_property
    def checks(self) -> dict[Model, Stage]:
        """A look at each model: what would fail in hours."""
        return {model: self.check(model) for model in self.models}

    def check(self, model: Model) -> Stage:
        settings = self.settings
        command = ["python", "-m", "recipes.lib.check_pretrained", "--checkpoint", self.place(model)]
        command += ["--longest", str(settings.longest), "--output", f"{self.shown}/models/{model.slug}.json"]
        command += ["--tokenizer-path", str(self.tokenizer)] if self.tokenizer else []
        command += ["--pos-enc", model.label] if settings.pos_enc else []
        pairs = any(TASKS[task].pair for task in settings.task)
        for segments in settings.segments if pairs else ["none"]:
            command += ["--segments", segments]
        outputs = (self.output / "models" / f"{model.slug}.json",)
        inputs = (ROOT / "recipes" / "lib" / "check_pretrained.py", *self.given(model))
        identity = self.unplaced(command, model)
        return Stage(f"check:{model.slug}", tuple(command), outputs, tuple(self.builtin), inputs, identity=identity)

    # --- rows

    @cached_property
    def prepared(self) -> dict[tuple[str, Model], Stage]:
        """Of each task in the pieces of each model."""
        return {(task, model): self.prepare(task, model) for task in self.settings.task for model in self.models}

    def data(self, task: str, model: Model) -> str:
        return f"{self.shown}/data-bin/{task}.{model.slug}"

    def prepare(self, task: str, model: Model) -> Stage:
        settings = self.settings
        command = ["bash", settings.script, "--task", task, "--checkpoint", self.place(model)]
        command += ["--longest", str(settings.longest), "--separators", str(settings.separators)]
        command += ["--tokenizer-path", str(self.tokenizer)] if self.tokenizer else []
        command += ["--bad", settings.bad, *(["--limit", str(settings.limit)] if settings.limit else [])]
        command += ["--train-rows", str(settings.train_rows)] if settings.train_rows else []
        command += [*settings.chosen, "--output", self.data(task, model)]
        where = {
            settings.fetched: ["--raw", places.raw(settings.raw)],
            BUILTIN: ["--text", f"{self.shown}/builtin"],
        }
        own = ["--text", str(Path(settings.data).resolve())]
        identity = (*self.unplaced(command, model), *where.get(settings.data, []))  # nor where the rows lie
        inputs = (
            ROOT / settings.script,
            *sorted((SCRIPTS / "glue").glob("*.py")),
            *(SCRIPTS / "questions" / "vocabulary.py", ROOT / "fairseq_posenc" / "data" / "question_pieces.py"),
            *self.given(model),
            *self.files(task),
        )
        return Stage(
            f"prepare:{task}.{model.slug}",
            (*command, *where.get(settings.data, own)),
            (self.output / "data-bin" / f"{task}.{model.slug}",),
            (*self.builtin, self.checks[model]),
            inputs,
            identity=identity,
        )

    def files(self, task: str) -> tuple[Path, ...]:
        """The user's."""
        return rows.files(Path(self.settings.data).resolve(), task) if self.settings.own else ()

    @cached_property
    def baselines(self) -> dict[str, Stage]:
        """Of each task, what a constant gets: of the rows, whatever their pieces."""
        return {task: self.baseline(task) for task in self.settings.task}

    def baseline(self, task: str) -> Stage:
        prepare = self.prepared[task, self.models[0]]
        command = [*module("baselines"), "--data", self.data(task, self.models[0]), "--output"]
        command += [f"{self.shown}/baselines/{task}.json", *self.scores(task)]
        outputs = (self.output / "baselines" / f"{task}.json",)
        inputs = (HERE / "baselines.py", ROOT / "fairseq_posenc" / "metrics" / "classification.py")
        return Stage(f"baseline:{task}", tuple(command), outputs, (prepare,), inputs)

    def scores(self, task: str) -> list[str]:
        return ["--metrics", ",".join(metrics(task, self.settings.protocol))]

    # --- one training

    def chain(self, trial: Trial) -> list[Stage]:
        train = self.train(trial)
        return [train, self.evaluate(trial, train)]

    def model_flags(self, trial: Trial) -> list[str]:
        settings, variant, task = self.settings, trial.variant, TASKS[trial.variant.task]
        flags = ["--task", "posenc_sentence_prediction", "--criterion", "posenc_sentence_prediction"]
        flags += ["--num-classes", str(task.classes), *(["--regression-target"] if task.classes == 1 else [])]
        flags += self.scores(variant.task)
        flags += ["--init-token", "0", *(["--separator-token", "2"] if settings.separators == 2 else [])]
        flags += ["--arch", "posenc_roberta_pretrained", "--pretrained", self.place(variant.model)]
        return [*flags, "--segments", variant.segments, *as_arguments(settings.train)]

    def train(self, trial: Trial) -> Stage:
        settings, variant = self.settings, trial.variant
        data = self.data(variant.task, variant.model)
        command = [data, *WHOLE, *QUIET, "--log-interval", "20"]  # the user's come later, and win
        command += [*PLUGIN, *self.model_flags(trial), "--lr", f"{trial.lr:g}", "--seed", str(trial.seed)]
        command += ["--batch-size", str(settings.batch // settings.batches), "--max-epoch", str(trial.epochs)]
        command += ["--save-dir", f"{self.shown}/checkpoints/{trial.slug}"]
        command += ["--best-checkpoint-metric", "score", "--maximize-best-checkpoint-metric"]
        kept = ["--no-epoch-checkpoints", "--keep-interval-updates", "1"]
        when = [*("--record", f"{data}/{RECORD}", "--count", "splits.train.items", "--epochs", str(trial.epochs))]
        when += ["--batch", str(settings.batch), "--warmup", str(settings.warmup)]
        scheduled = ["python", "-m", "recipes.lib.scheduled", *when, "--"]
        return Stage(
            f"train:{trial.slug}",
            (*scheduled, *launch.train_command([*command, *kept], settings)),
            (self.output / "checkpoints" / trial.slug,),
            (self.prepared[variant.task, variant.model],),
            resumes=True,
            identity=(*when, *launch.identity(list(self.unplaced(command, variant.model)), settings)),
        )

    def evaluate(self, trial: Trial, train: Stage) -> Stage:
        variant, keep = trial.variant, self.settings.keep
        command = [*module("evaluate"), "--data", self.data(variant.task, variant.model), *self.scores(variant.task)]
        command += ["--checkpoint", f"{self.shown}/checkpoints/{trial.slug}/checkpoint_{keep}.pt"]
        command += ["--output", f"{self.shown}/scores/{trial.slug}.json"]
        command += ["--predictions", f"{self.shown}/predictions/{trial.slug}"]
        outputs = (self.output / "scores" / f"{trial.slug}.json", self.output / "predictions" / trial.slug)
        return Stage(
            f"evaluate:{trial.slug}",
            launch.on_one_device(command, self.settings),
            outputs,
            (train,),
            (HERE / "evaluate.py", HERE / "tasks.py"),
            identity=tuple(command),
        )

    # --- all of them

    def compare(self, after: tuple[Stage, ...]) -> Stage:
        settings = self.settings
        command = [*module("compare"), "--output", self.shown, "--protocol", settings.protocol]
        for variant in self.variants:
            command += ["--variant", variant.task, variant.model.label, variant.segments, variant.row]
        for lr in settings.lr:
            command += ["--lr", f"{lr:g}"]
        for epochs in settings.epochs:
            command += ["--epochs", str(epochs)]
        for run in range(settings.runs):
            command += ["--seed", str(settings.seed + run)]
        command += [word for one in settings.departures() for word in ("--differs", one)]
        outputs = (self.output / "comparison.json", self.output / "submission")
        inputs = tuple(HERE / f"{name}.py" for name in ("compare", "grid", "published", "tasks", "xnli"))
        return Stage("compare", tuple(command), outputs, after, (*inputs, *tables()))
