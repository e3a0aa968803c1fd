"""What the recipe runs on questions: SQuAD's recipe trains in English; other languages are answered and scored."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path

from recipes.finetune_glue.plan import make_plan as plan_of_sentences
from recipes.finetune_glue.settings import BUILTIN, Trial, Variant
from recipes.finetune_glue.settings import Settings as GlueSettings
from recipes.finetune_squad import plan as squad
from recipes.finetune_squad.settings import SQUAD
from recipes.finetune_squad.settings import Settings as SquadSettings
from recipes.lib import finetuning, launch
from recipes.lib.finetuning import Model
from recipes.lib.package import tables
from recipes.lib.recipe import ROOT, Plan
from recipes.lib.stages import Stage

from .published import departures
from .sets import SETS, TRAINING, QuestionSet
from .settings import VERSION, Settings

HERE = Path(__file__).parent
INVENTED = ("en", "de")  # the languages of the built-in questions; its German is English
#: settings that the two recipes call the same
SAME = (
    *("checkpoint", "raw", "limit", "limit_dev", "bad", "stride", "longest_question", "longest_answer", "n_best"),
    "pos_enc_args",
)
SCHEDULE = "lr-scheduler"  # of the protocol as of SQuAD's recipe: it rises to the rate and falls to 0


class English(SquadSettings):
    """SQuAD's recipe as it trains here: what is scored is other questions."""

    length_option = "--longest"
    scores_dev = False


def make_plan(settings: GlueSettings, output: Path, shown: str) -> Plan:
    if not isinstance(settings, Settings) or settings.sentences:
        return plan_of_sentences(settings, output, shown)
    return Planner(settings, output, shown).plan()


def english(settings: Settings, variant: Variant | None = None, trial: Trial | None = None) -> English:
    """The settings of SQuAD's recipe for a training; of anything before it, for what all of them share."""
    named = {one.name: getattr(settings, one.name) for one in fields(launch.Training)}
    train = {name: value for name, value in settings.train.items() if (name, value) != (SCHEDULE, "polynomial_decay")}
    train |= {"batch-size": settings.batch // settings.batches, **({"lr": trial.lr} if trial else {})}
    train |= {} if settings.chooses else {"disable-validation": True}
    files = {"train_file": settings.english("train") or "", "dev_file": settings.english("dev") or ""}
    named |= {name: getattr(settings, name) for name in SAME} | (files if settings.own else {})
    named |= {"train": train, "seed": trial.seed if trial else settings.seed}
    made = English(
        **named,
        version=VERSION,
        data=BUILTIN if settings.data == BUILTIN else SQUAD,
        tokenizer_path=settings.tokenizer_path or "auto",
        max_length=settings.longest,
        separators=settings.separators,  # type: ignore[arg-type]  # 1 or 2, as it was checked
        segments=variant.segments if variant else "none",  # type: ignore[arg-type]  # this too
        epochs=trial.epochs if trial else settings.epochs[0],
        warmup=settings.warmup,
    )
    made.models = settings.models or made.models  # with --pos-enc some of those that there are
    made.keep = settings.kept
    return made


@dataclass(frozen=True)
class Planner:
    settings: Settings
    output: Path
    shown: str  # the output folder as the commands name it, relative to the repository

    def plan(self) -> Plan:
        first = [*self.base.text, *self.fetch, *self.checks.values(), *self.prepared.values()]
        first += [*self.sets.values(), *self.baselines.values()]
        chains = [self.chain(trial) for variant in self.variants for trial in self.settings.trials(variant)]
        after = (*self.baselines.values(), *(stage for chain in chains for stage in chain))
        return Plan([[first], chains, [[self.compare(after)]]], tuple(self.notes()))

    def notes(self) -> list[str]:
        settings = self.settings
        told = launch.notes(settings, f"An update: {settings.batch} windows of up to {settings.longest} pieces.")
        told += finetuning.notes(settings.pretraining)
        if BUILTIN in (settings.data, *settings.checkpoint):
            told.append("What is built in shows that the machinery works, not what an encoding is worth.")
        if settings.limit or settings.limit_dev:
            counts = f"{settings.limit or 'all'} of training, {settings.limit_dev or 'all'} of each language"
            told.append(f"The first questions, not all that there are: {counts}.")
        if settings.kept != settings.keep:
            told.append("No English questions tell which checkpoint is the best: the last one answers.")
        trials = sum(len(settings.trials(variant)) for variant in self.variants)
        if trials > len(self.variants):
            told.append(f"{trials} trainings: {len(self.variants)} models, of each the best settings count.")
        return told

    # --- models and English questions: as SQuAD's recipe has them

    @cached_property
    def base(self) -> squad.Planner:
        return squad.Planner(english(self.settings), self.output, self.shown)

    @cached_property
    def variants(self) -> list[Variant]:
        """Each model with each kind of segments."""
        return [Variant(TRAINING, model, kind, kind) for kind in self.settings.segments for model in self.models]

    @property
    def models(self) -> list[Model]:
        return self.base.settings.models

    def trained(self, variant: Variant, trial: Trial | None = None) -> squad.Planner:
        """The other recipe's, of one training or, without, of all that begin with the same model."""
        slug = (trial or variant).slug.removeprefix(f"{TRAINING}.{variant.model.slug}")
        return replace(self.base, settings=english(self.settings, variant, trial), suffix=slug)

    @cached_property
    def checks(self) -> dict[Variant, Stage]:
        """A look at each model: what would fail in hours."""
        return {one: self.trained(one).check(one.model) for one in self.variants}

    def check(self, model: Model) -> Stage:
        return next(stage for variant, stage in self.checks.items() if variant.model == model)

    @cached_property
    def prepared(self) -> dict[Model, Stage]:
        """English, in the pieces of each model."""
        return {model: self.apart(self.base.prepare(model, self.check(model))) for model in self.models}

    def apart(self, english: Stage) -> Stage:
        """What is scored is neither trained on nor chosen by: XQuAD's questions are a part of SQuAD's development set.

        The built-in sets are the development questions themselves, and choose nothing.
        """
        settings = self.settings
        if settings.data == BUILTIN:
            return english
        languages = ["--languages", ",".join(settings.languages)] if settings.languages else []

        def words(folder: str) -> list[str]:
            return [word for task in settings.task for word in ("--without", f"{SETS[task].name}={folder}")] + languages

        return replace(
            english,
            command=(*english.command, *words(self.folder)),
            identity=(*english.identity, *words("DATA" if settings.own else self.folder)),
            after=(*english.after, *self.fetch),
            inputs=(*english.inputs, *(path for task in settings.task for path in self.files(task))),
        )

    # --- other languages

    @cached_property
    def fetch(self) -> list[Stage]:
        """No outputs: what it fetches belongs to all runs, and it checks for itself what is there."""
        settings = self.settings
        if settings.own or settings.data == BUILTIN:
            return []
        named = [one for task in settings.task for one in SETS[task].fetched(self.languages(SETS[task]))]
        command = ("python", "data-bin-scripts/fetch.py", *named, "--output", self.base.raw)
        return [Stage("fetch:languages", command, ())]

    def languages(self, known: QuestionSet) -> tuple[str, ...]:
        return tuple(one for one in known.languages if one in (self.settings.languages or known.languages))

    @cached_property
    def sets(self) -> dict[tuple[str, Model], Stage]:
        """Each set in the pieces of each model, a split each language."""
        return {(task, model): self.prepare(task, model) for task in self.settings.task for model in self.models}

    def data(self, task: str, model: Model) -> str:
        return f"{self.base.data(model)}.{SETS[task].name}"

    @property
    def folder(self) -> str:
        """Where the sets are."""
        return str(Path(self.settings.data).resolve()) if self.settings.own else self.base.raw

    def questions(self, task: str) -> list[str]:
        settings, known = self.settings, SETS[task]
        if settings.data == BUILTIN:
            some = [one for one in self.languages(known) if one in (settings.languages or INVENTED)]
            return [word for one in some for word in ("--eval", f"{one}={self.shown}/builtin/dev.json")]
        chosen = ["--languages", ",".join(self.languages(known))]  # all, of what was fetched
        return ["--set", known.name, *(chosen if settings.languages or not settings.own else []), "--data", self.folder]

    def prepare(self, task: str, model: Model) -> Stage:
        base, settings, slug = self.base, self.settings, f"{model.slug}.{SETS[task].name}"
        command = ["python", squad.PREPARE, "--checkpoint", base.place(model)]
        command += ["--tokenizer-path", base.settings.tokenizer, "--version", VERSION]
        command += [*self.questions(task), *base.windows(), "--output", self.data(task, model)]
        identity = tuple("DATA" if settings.own and word == self.folder else word for word in base.unplaced(command))
        return Stage(
            f"prepare:{slug}",
            tuple(command),
            (self.output / "data-bin" / slug,),
            (*base.text, *self.fetch, self.check(model)),
            (*base.scripts, *self.files(task), *base.inputs(model), *base.cuts(model)),
            identity=identity,
        )

    def files(self, task: str) -> list[Path]:
        """The user's."""
        return SETS[task].found(Path(self.settings.data).resolve()) if self.settings.own else []

    @cached_property
    def baselines(self) -> dict[str, Stage]:
        """Of each set, what the answers get that no model gave; and the right ones, which have to have 100."""
        model = self.models[0]
        return {task: self.score(task, model, (self.sets[task, model],)) for task in self.settings.task}

    def score(self, task: str, model: Model, after: tuple[Stage, ...], trial: str = "") -> Stage:
        """Of a training, or without one the baselines."""
        name = SETS[task].name
        kind, slug = ("score", f"{trial}.{name}") if trial else ("baselines", name)
        where = f"{kind.removesuffix('s')}s/{slug}.json"
        command = ["python", "-m", "recipes.finetune_xtreme.score", "--task", task, "--data", self.data(task, model)]
        command += ["--predictions", f"{self.shown}/predictions/{slug}"] if trial else []
        command += ["--output", f"{self.shown}/{where}"]
        inputs = (HERE / "score.py", HERE / "sets.py", *squad.BASELINES)
        return Stage(f"{kind}:{slug}", tuple(command), (self.output / where,), after, inputs)

    # --- one training

    def chain(self, trial: Trial) -> list[Stage]:
        model = trial.variant.model
        one = self.trained(trial.variant, trial)
        train = one.train(model, self.checks[trial.variant], self.prepared[model])
        made = [train]
        if self.settings.chooses:
            predict = one.predict(model, train)
            made += [predict, one.score(model, predict)]
        for task in self.settings.task:
            answer = self.answer(task, model, one, train)
            made += [answer, self.score(task, model, (answer,), one.slug(model))]
        return made

    def answer(self, task: str, model: Model, one: squad.Planner, train: Stage) -> Stage:
        slug = f"{one.slug(model)}.{SETS[task].name}"
        command = ["python", "-m", "recipes.finetune_xtreme.answer", *one.answering(model)]
        command += ["--data", self.data(task, model), "--output", f"{self.shown}/predictions/{slug}"]
        return Stage(
            f"predict:{slug}",
            launch.on_one_device(command, self.settings),
            (self.output / "predictions" / slug,),
            (train, self.sets[task, model]),
            (HERE / "answer.py", squad.HERE / "predict.py", *squad.SEARCH),
            identity=tuple(command),
        )

    # --- all of them

    def compare(self, after: tuple[Stage, ...]) -> Stage:
        settings = self.settings
        command = ["python", "-m", "recipes.finetune_xtreme.compare", "--output", self.shown]
        command += [word for task in settings.task for word in ("--task", task)]
        for variant in self.variants:
            command += ["--variant", variant.model.label, variant.segments, variant.row]
        command += [word for lr in settings.lr for word in ("--lr", f"{lr:g}")]
        command += [word for epochs in settings.epochs for word in ("--epochs", str(epochs))]
        command += [word for run in range(settings.runs) for word in ("--seed", str(settings.seed + run))]
        command += [word for one in departures(settings) for word in ("--differs", one)]
        inputs = (
            *(HERE / f"{name}.py" for name in ("compare", "published", "sets")),
            ROOT / "recipes/lib/encodings.py",
            *tables(),
        )
        return Stage("compare", tuple(command), (self.output / "comparison.json",), after, inputs)
