"""Put the stages of the recipe in order.

XNLI uses the stages of the GLUE tasks, with one development and test set for each language. For question datasets, the
model is trained on English with the stages of the SQuAD recipe, and then answers questions in other languages.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from recipes.lib import launch
from recipes.lib.finetuning.comparison import COMPARISON
from recipes.lib.finetuning.models import Model
from recipes.lib.finetuning.questions.plan import BASELINES, SEARCH, Questions, Training
from recipes.lib.finetuning.sentences.plan import Sentences
from recipes.lib.finetuning.trials import Trial, Variant
from recipes.lib.package import tables
from recipes.lib.planning import flags
from recipes.lib.recipe import ROOT, Plan
from recipes.lib.stages import Stage

from .published import departures
from .sets import SETS, XNLI, QuestionSet
from .settings import VERSION, Settings

HERE = Path(__file__).parent
INVENTED = ("en", "de")  # languages of the built-in questions, which are English text for both


def make_plan(settings: Settings, output: Path, shown: str) -> Plan:
    if settings.sentences and settings.question_sets:
        return plan_all(settings, output, shown)
    return plan_xnli(settings, output, shown) if settings.sentences else plan_questions(settings, output, shown)


def plan_all(settings: Settings, output: Path, shown: str) -> Plan:
    """Return the stages of XNLI and of the question datasets, and a last stage that joins their tables."""
    xnli = plan_xnli(settings.only([XNLI]), output, shown, XnliBeside)
    questions = plan_questions(settings.only(settings.question_sets), output, shown, QuestionsBeside)
    tables_of_both = [plan.phases[-1][0][-1] for plan in (xnli, questions)]
    variants = settings.only(settings.question_sets).variants()
    words = flags(output=shown, task=settings.task, variant=[(item.model.label, item.segments) for item in variants])
    inputs = [HERE / "languages.py", HERE / "published.py", *tables()]
    planner = Sentences(settings, output, shown)
    join = planner.run("compare", "finetune_xtreme.join", words, [COMPARISON], tables_of_both, inputs)
    phases = [[*one, *other] for one, other in zip(xnli.phases, questions.phases, strict=True)]
    return Plan([*phases, [[join]]], tuple(dict.fromkeys((*xnli.notes, *questions.notes))))


class XnliBeside(Sentences):
    """Define the stages of XNLI in a run that also has question datasets."""

    prefix, last, table = f"{XNLI}.", f"table:{XNLI}", "xnli.json"


def plan_xnli(settings: Settings, output: Path, shown: str, kind: type[Sentences] = Sentences) -> Plan:
    xnli = kind(settings, output, shown)
    before = [*xnli.builtin, *xnli.checks.values(), *xnli.prepared.values(), *xnli.baselines.values()]
    chains = [[train := xnli.train(trial), xnli.evaluate(trial, train)] for trial in xnli.trials]
    return Plan([[before], chains, [[xnli.compare(chains)]]], tuple(xnli.notes))


def plan_questions(settings: Settings, output: Path, shown: str, kind: type[Languages] | None = None) -> Plan:
    questions = (kind or Languages)(
        settings,
        output,
        shown,
        version=VERSION,
        longest=settings.longest,
        separators=settings.separators,
        batch=settings.batch,
        keep=settings.used_checkpoint,
    )
    before = [*questions.text, *questions.fetch, *questions.checks.values(), *questions.prepared.values()]
    before += [*questions.sets.values(), *questions.baselines.values()]
    chains = [questions.chain(trial) for trial in questions.trials]
    return Plan([[before], chains, [[questions.compare(chains)]]], tuple(questions.notes))


@dataclass(frozen=True)
class Languages(Questions[Settings]):
    """Define the stages for questions in several languages."""

    last, table = "compare", COMPARISON  # name of the last stage and its file

    @property
    def notes(self) -> list[str]:
        settings = self.settings
        update = f"An update consists of {settings.batch} windows of up to {settings.longest} pieces."
        notes = launch.notes(settings, update) + self.notes_on_models
        if settings.limit or settings.limit_dev:
            counts = f"{settings.limit or 'all'} training questions, {settings.limit_dev or 'all'} in each language"
            notes.append(f"Only the first questions are used: {counts}.")
        if settings.used_checkpoint != settings.keep:
            notes.append(
                "Without English development questions, the best checkpoint cannot be determined, so the last "
                "checkpoint is used."
            )
        if len(self.trials) > len(self.variants):
            counts = f"{len(self.trials)} training runs of {len(self.variants)} models"
            notes.append(f"There are {counts}. The best hyperparameters of each model are reported.")
        return notes

    @cached_property
    def places(self) -> dict[str, str]:
        if not self.settings.own:
            return super().places
        excluded = {f"{known.name}={self.folder}": f"{known.name}=DATA" for known in SETS.values()}
        return {**super().places, self.folder: "DATA", **excluded}

    # --- models and English questions

    @cached_property
    def variants(self) -> list[Variant]:
        return self.settings.variants()

    @cached_property
    def trials(self) -> list[Trial]:
        return [trial for variant in self.variants for trial in self.settings.grid.trials(variant)]

    def settings_of(self, variant: Variant, trial: Trial | None = None) -> Training:
        """Return the settings of a trial or, without a trial, the settings that all trials of the variant share."""
        settings = self.settings
        train = {**settings.flags_of_questions(), "batch-size": settings.batch // settings.batches}
        train |= {"lr": trial.lr} if trial else {}
        train |= {} if settings.chooses else {"disable-validation": True}
        epochs, seed = (trial.epochs, trial.seed) if trial else (settings.epochs[0], settings.seed)
        return Training((trial or variant).slug, variant.model, variant.segments, epochs, seed, train)

    @cached_property
    def checks(self) -> dict[Variant, Stage]:
        return {variant: self.check(self.settings_of(variant)) for variant in self.variants}

    def checked(self, model: Model) -> Stage:
        """Return the first of the stages that check this model; all of them check the same tokenizer."""
        return next(stage for variant, stage in self.checks.items() if variant.model == model)

    @cached_property
    def prepared(self) -> dict[Model, Stage]:
        """Return the stages that tokenize the English questions, except questions that are scored later.

        XQuAD's questions are part of SQuAD's development set, so --without excludes them. For the built-in data, the
        scored questions are the development questions themselves, so nothing is excluded.
        """
        settings = self.settings
        excluded: list[str] = []
        if not settings.invented:
            excluded = flags(without=[f"{SETS[task].name}={self.folder}" for task in settings.task]) + settings.chosen
        files = [path for task in settings.task for path in self.files(task)]
        return {
            model: self.prepare_english(model, self.checked(model), excluded, self.fetch, *files)
            for model in settings.models
        }

    # --- other languages

    @cached_property
    def fetch(self) -> list[Stage]:
        """Return a list with the stage that fetches the datasets, or an empty list if nothing is downloaded.

        The stage has no outputs: all runs share the downloads, and fetch.py itself skips existing files.
        """
        settings = self.settings
        if settings.own or settings.invented:
            return []
        names = [name for task in settings.task for name in SETS[task].fetched(self.languages(SETS[task]))]
        command = ["python", "data-bin-scripts/fetch.py", *names, "--output", self.raw]
        return [self.stage("fetch:languages", command, [])]

    def languages(self, known: QuestionSet) -> tuple[str, ...]:
        return tuple(code for code in known.languages if code in (self.settings.languages or known.languages))

    @property
    def folder(self) -> str:
        """Return the folder with the datasets."""
        return str(Path(self.settings.data).resolve()) if self.settings.own else self.raw

    def files(self, task: str) -> list[Path]:
        """Return the user's files of a dataset."""
        return SETS[task].files_in(Path(self.settings.data).resolve()) if self.settings.own else []

    @cached_property
    def sets(self) -> dict[tuple[str, Model], Stage]:
        """Return the stages that tokenize each dataset for each model, with a split for each language."""
        settings = self.settings
        return {(task, model): self._prepare_set(task, model) for task in settings.task for model in settings.models}

    def data_of(self, task: str, model: Model) -> str:
        return f"{self.data(model)}.{SETS[task].name}"

    def _questions_of(self, task: str) -> list[str]:
        settings, known = self.settings, SETS[task]
        if settings.invented:
            languages = [code for code in self.languages(known) if code in (settings.languages or INVENTED)]
            return flags(eval=[f"{language}={self.shown}/builtin/dev.json" for language in languages])
        chosen = ["--languages", ",".join(self.languages(known))]  # downloaded data needs the names of its languages
        return ["--set", known.name, *(chosen if settings.languages or not settings.own else []), "--data", self.folder]

    def _prepare_set(self, task: str, model: Model) -> Stage:
        words = [*self._questions_of(task), *self.windows(), "--output", self.data_of(task, model)]
        after = [*self.fetch, self.checked(model)]
        return self.prepare(f"{model.slug}.{SETS[task].name}", model, words, after, self.files(task))

    @cached_property
    def baselines(self) -> dict[str, Stage]:
        """Return the stages that score the baselines and the gold answers on each dataset."""
        model = self.settings.models[0]
        return {task: self._score_set(task, model, self.sets[task, model]) for task in self.settings.task}

    def _score_set(self, task: str, model: Model, after: Stage, training: Training | None = None) -> Stage:
        """Return the stage that scores the predictions of a training run, or the baselines if `training` is None."""
        name = SETS[task].name
        kind, slug = ("score", f"{training.slug}.{name}") if training else ("baselines", name)
        output = f"{kind.removesuffix('s')}s/{slug}.json"
        words = flags(
            task=task,
            data=self.data_of(task, model),
            predictions=f"{self.shown}/predictions/{slug}" if training else None,
            output=f"{self.shown}/{output}",
        )
        inputs = [HERE / "sets.py", *BASELINES]
        return self.run(f"{kind}:{slug}", "finetune_xtreme.score", words, [output], [after], inputs)

    # --- training runs

    def chain(self, trial: Trial) -> list[Stage]:
        """Return the stages of a trial: its training, its score on English questions, and its score on each dataset.

        The trial with the best score on English questions is reported.
        """
        variant, model = trial.variant, trial.variant.model
        training = self.settings_of(variant, trial)
        train = self.train(training, self.checks[variant], self.prepared[model])
        stages = [train]
        if self.settings.chooses:
            predict = self.predict(training, train)
            stages += [predict, self.score(training, predict)]
        for task in self.settings.task:
            answer = self._answer(task, training, train)
            stages += [answer, self._score_set(task, model, answer, training)]
        return stages

    def _answer(self, task: str, training: Training, train: Stage) -> Stage:
        slug, model = f"{training.slug}.{SETS[task].name}", training.model
        words = self.answering(training)
        words += flags(data=self.data_of(task, model), output=f"{self.shown}/predictions/{slug}")
        name, after, outputs = f"predict:{slug}", [train, self.sets[task, model]], [f"predictions/{slug}"]
        return self.run(name, "finetune_xtreme.answer", words, outputs, after, SEARCH, on_device=True)

    # --- comparison

    def compare(self, chains: list[list[Stage]]) -> Stage:
        settings = self.settings
        variants = [(variant.model.label, variant.segments, variant.row) for variant in self.variants]
        words = flags(output=self.shown, task=settings.task, variant=variants)
        words += [*settings.grid.flags(), *flags(differs=departures(settings))]
        after = [*self.baselines.values(), *(stage for chain in chains for stage in chain)]
        inputs = [
            *(HERE / "published.py", HERE / "sets.py", ROOT / "recipes" / "lib" / "encodings.py"),
            *tables(),
        ]
        words += flags(table=self.table if self.table != COMPARISON else None)
        return self.run(self.last, "finetune_xtreme.compare", words, [self.table], after, inputs)


class QuestionsBeside(Languages):
    """Define the stages of question datasets in a run that also has XNLI."""

    last, table = "table:questions", "questions.json"
