"""Define the stages of the recipes that classify sentences; each recipe's plan.py arranges these stages in order."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from recipes.lib import launch, places
from recipes.lib.package import tables
from recipes.lib.planning import PACKAGE, SCRIPTS, flags
from recipes.lib.recipe import ROOT
from recipes.lib.settings import as_arguments
from recipes.lib.stages import Stage

from ..comparison import COMPARISON
from ..models import Model
from ..plan import ARCH, PRETRAIN, Planner
from ..trials import Trial, Variant
from .settings import SentenceSettings, files_that_count
from .tasks import TASKS, metrics

HERE = Path(__file__).parent
RECORD = "glue.json"  # the record in a prepared folder


class Sentences(Planner[SentenceSettings]):
    #: Prefix of the names of checks, the name of the last stage and its file. A recipe with more stages replaces them.
    prefix, last, table = "", "compare", COMPARISON

    @cached_property
    def variants(self) -> list[Variant]:
        return self.settings.variants()

    @cached_property
    def trials(self) -> list[Trial]:
        return [trial for variant in self.variants for trial in self.settings.grid.trials(variant)]

    @property
    def notes(self) -> list[str]:
        settings = self.settings
        notes = launch.notes(settings, f"An update consists of {settings.batch} rows.")
        singles = [task for task in settings.task if not TASKS[task].pair]
        if singles and settings.segments != ["none"]:
            notes.append(f"These tasks have single sentences and therefore no segment encoding: {', '.join(singles)}.")
        notes += self.notes_on_models
        if len(self.trials) > len(self.variants):
            counts = f"{len(self.trials)} training runs for {len(self.variants)} combinations of model and task"
            notes.append(f"There are {counts}. The report shows each combination with its best hyperparameters.")
        return notes

    @cached_property
    def builtin(self) -> list[Stage]:
        """Return the stages that pretrain the built-in model and generate the built-in data."""
        settings, stages = self.settings, list[Stage]()
        if settings.builtin:
            words = flags(pos_enc=settings.models[0].label, seed=settings.seed, output=f"{self.shown}/pretrained")
            stages.append(Stage("pretrain", (*PRETRAIN, *words), (self.output / "pretrained",), resumes=True))
        if settings.invented:
            words = flags(output=f"{self.shown}/builtin", seed=settings.seed, task=settings.task)
            stages.append(self.run("builtin", "lib.finetuning.sentences.builtin", words, ["builtin"]))
        return stages

    # --- models

    @cached_property
    def checks(self) -> dict[Model, Stage]:
        """Return the stages that check each model, so that errors appear before hours of training."""
        return {model: self._check(model) for model in self.settings.models}

    def _check(self, model: Model) -> Stage:
        settings, report = self.settings, f"models/{model.slug}.json"
        pairs = any(TASKS[task].pair for task in settings.task)
        words = ["--checkpoint", self.place(model), *self.options("longest"), "--output", f"{self.shown}/{report}"]
        words += flags(tokenizer_path=settings.tokenizer, pos_enc=model.label if settings.pos_enc else None)
        words += flags(segments=settings.segments if pairs else "none")
        inputs = [*self.weights(model), *self.tokenizer(model)]
        return self.run(
            f"check:{self.prefix}{model.slug}", "lib.check_pretrained", words, [report], self.builtin, inputs
        )

    # --- rows

    @cached_property
    def prepared(self) -> dict[tuple[str, Model], Stage]:
        """Return the stages that tokenize the rows of each task for each model."""
        settings = self.settings
        return {(task, model): self._prepare(task, model) for task in settings.task for model in settings.models}

    def data(self, task: str, model: Model) -> str:
        return f"{self.shown}/data-bin/{task}.{model.slug}"

    @cached_property
    def places(self) -> dict[str, str]:
        settings = self.settings
        return {**super().places, **({str(Path(settings.data).resolve()): "DATA"} if settings.own else {})}

    def _prepare(self, task: str, model: Model) -> Stage:
        settings = self.settings
        words = ["--task", task, "--checkpoint", self.place(model), *self.options("longest", "separators")]
        words += [*flags(tokenizer_path=settings.tokenizer), *self.options("bad", "limit", "train_rows")]
        words += [*settings.chosen, "--output", self.data(task, model)]
        if settings.own:
            words += ["--text", str(Path(settings.data).resolve())]
        else:
            words += ["--text", f"{self.shown}/builtin"] if settings.invented else ["--raw", places.raw(settings.raw)]
        inputs = [
            ROOT / settings.script,
            *sorted((SCRIPTS / "glue").glob("*.py")),
            *(SCRIPTS / "questions" / "vocabulary.py", PACKAGE / "data" / "question_pieces.py"),
            *(*self.weights(model), *self.tokenizer(model)),
            *(files_that_count(Path(settings.data).resolve(), task) if settings.own else []),
        ]
        name, after = f"{task}.{model.slug}", [*self.builtin, self.checks[model]]
        return self.stage(f"prepare:{name}", ["bash", settings.script, *words], [f"data-bin/{name}"], after, inputs)

    @cached_property
    def baselines(self) -> dict[str, Stage]:
        """Return the stages that score constant answers; their scores do not depend on the tokenizer."""
        return {task: self._baseline(task, self.settings.models[0]) for task in self.settings.task}

    def _baseline(self, task: str, model: Model) -> Stage:
        output = f"baselines/{task}.json"
        words = flags(data=self.data(task, model), output=f"{self.shown}/{output}", metrics=self.metrics(task))
        after, inputs = [self.prepared[task, model]], [PACKAGE / "metrics" / "classification.py"]
        return self.run(f"baseline:{task}", "lib.finetuning.sentences.baselines", words, [output], after, inputs)

    def metrics(self, task: str) -> str:
        return ",".join(metrics(task, self.settings.protocol))

    # --- training

    def train(self, trial: Trial) -> Stage:
        settings, variant = self.settings, trial.variant
        task, data = TASKS[variant.task], self.data(variant.task, variant.model)
        words = ["--task", "posenc_sentence_prediction", "--criterion", "posenc_sentence_prediction"]
        words += flags(
            num_classes=task.classes, regression_target=task.classes == 1, metrics=self.metrics(variant.task)
        )
        words += flags(init_token="0", separator_token="2" if settings.separators == 2 else None, arch=ARCH)
        words += flags(pretrained=self.place(variant.model), segments=variant.segments)
        words += [*as_arguments(settings.train), "--lr", f"{trial.lr:g}", "--seed", str(trial.seed)]
        words += flags(batch_size=settings.batch // settings.batches, max_epoch=trial.epochs)
        schedule = {"record": f"{data}/{RECORD}", "count": "splits.train.items", "epochs": trial.epochs}
        schedule |= {"batch": settings.batch, "warmup": settings.warmup}
        after = [self.prepared[variant.task, variant.model]]
        return self.training(trial.slug, data, words, schedule, after, best="score")

    def evaluate(self, trial: Trial, train: Stage) -> Stage:
        variant, scores, answers = trial.variant, f"scores/{trial.slug}.json", f"predictions/{trial.slug}"
        words = flags(data=self.data(variant.task, variant.model), metrics=self.metrics(variant.task))
        words += ["--checkpoint", f"{self.shown}/checkpoints/{trial.slug}/checkpoint_{self.settings.keep}.pt"]
        words += flags(output=f"{self.shown}/{scores}", predictions=f"{self.shown}/{answers}")
        name, outputs, inputs = f"evaluate:{trial.slug}", [scores, answers], [HERE / "tasks.py"]
        return self.run(name, "lib.finetuning.sentences.evaluate", words, outputs, [train], inputs, on_device=True)

    # --- comparison

    def compare(self, chains: list[list[Stage]]) -> Stage:
        settings = self.settings
        variants = [(item.task, item.model.label, item.segments, item.row) for item in self.variants]
        words = flags(output=self.shown, protocol=settings.protocol, variant=variants)
        words += [*settings.grid.flags(), *flags(differs=settings.departures())]
        inputs = [HERE / "published.py", HERE.parent / "trials.py"]
        inputs += [HERE / "tasks.py", HERE / "xnli.py", *tables()]
        after = [*self.baselines.values(), *(chain[-1] for chain in chains)]
        words += flags(table=self.table if self.table != COMPARISON else None)
        outputs = [self.table, "submission"]
        return self.run(self.last, "lib.finetuning.sentences.compare", words, outputs, after, inputs)
