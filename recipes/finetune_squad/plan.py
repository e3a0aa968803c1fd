"""What the recipe runs: every command, in order. Plain fairseq, but for the task, its loss and the count of updates."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from recipes.lib import finetuning, launch, places
from recipes.lib.finetuning import Model, cuts_text
from recipes.lib.flags import PLUGIN, QUIET, WHOLE
from recipes.lib.package import tables
from recipes.lib.recipe import ROOT, Plan
from recipes.lib.settings import as_arguments
from recipes.lib.stages import Stage

from .published import departures
from .settings import ARCH, CUTS, Settings

HERE = Path(__file__).parent
SCRIPTS = ROOT / "data-bin-scripts"
PREPARE = "data-bin-scripts/prepare_spans.py"
RECORD = "spans.json"  # of a prepared folder
#: the checkpoint with most windows whose answer is found
BEST = ["--best-checkpoint-metric", "spans", "--maximize-best-checkpoint-metric"]
PACKAGE = ROOT / "fairseq_posenc"
#: what decides windows besides the scripts, what is found in them, and scores
CUTTING = ("span_items", "span_pieces", "question_pieces", "byte_pieces")
PIECES = tuple(PACKAGE / "data" / f"{name}.py" for name in CUTTING)
SEARCH = (PACKAGE / "data" / "span_search.py", PACKAGE / "data" / "span_items.py")
THRESHOLD = PACKAGE / "metrics" / "null_threshold.py"
SCORES = (PACKAGE / "metrics" / "squad.py", THRESHOLD)
BASELINES = (HERE / "baselines.py", HERE / "score.py", *SCORES, *PIECES)


def make_plan(settings: Settings, output: Path, shown: str) -> Plan:
    return Planner(settings, output, shown).plan()


def module(name: str) -> list[str]:
    return ["python", "-m", f"recipes.finetune_squad.{name}"]


@dataclass(frozen=True)
class Planner:
    settings: Settings
    output: Path
    shown: str  # the output folder as the commands name it, relative to the repository
    suffix: str = ""  # of a training that is one of several of a model

    def plan(self) -> Plan:
        models = self.settings.models
        checks = {model.slug: self.check(model) for model in models}
        prepared = {model.slug: self.prepare(model, checks[model.slug]) for model in models}
        baselines = self.baselines(prepared[models[0].slug])
        chains = [self.chain(model, checks[model.slug], prepared[model.slug]) for model in models]
        compare = self.compare((baselines, *(stage for chain in chains for stage in (chain[0], chain[-1]))))
        before = [*self.text, *checks.values(), *prepared.values(), baselines]
        return Plan([[before], chains, [[compare]]], tuple(self.notes()))

    def notes(self) -> list[str]:
        settings = self.settings
        update = settings.number("batch-size", 1) * settings.batches
        told = launch.notes(settings, f"An update: {update:,} windows of up to {settings.max_length} pieces")
        told += finetuning.notes(settings.pretraining)
        if settings.invented or settings.builtin:
            told.append("What is built in shows that the machinery works, not what an encoding is worth.")
        if settings.limit:
            told.append(f"The first {settings.limit:,} questions of training, of all that there are.")
        if settings.limit_dev:
            told.append(f"The first {settings.limit_dev:,} questions of what is scored.")
        return told

    # --- questions and models

    @cached_property
    def text(self) -> list[Stage]:
        """What brings the questions, and makes the built-in models."""
        settings, found = self.settings, list[Stage]()
        if settings.invented or settings.builtin:
            command = (*module("builtin"), "--output", f"{self.shown}/builtin", "--seed", str(settings.seed))
            inputs = (HERE / "builtin.py", ROOT / "recipes" / "question_generation" / "builtin.py")
            found.append(Stage("builtin", command, (self.output / "builtin",), inputs=inputs))
        if settings.builtin:
            found.append(self.pretrain(found[0]))
        if not settings.files and not settings.invented:
            # No outputs: what it fetches belongs to all runs, and it checks for itself what is there.
            named = (f"squad/{split}-v{settings.version}.json" for split in ("train", "dev"))
            found.append(Stage("fetch", ("python", "data-bin-scripts/fetch.py", *named, "--output", self.raw), ()))
        return found

    def pretrain(self, text: Stage) -> Stage:
        """Tiny models of the built-in texts."""
        command = ["python", "-m", "recipes.pretrain_mlm", "--preset", "smoke", "--output", f"{self.shown}/pretrained"]
        command += ["--corpus", f"{self.shown}/builtin/text", "--vocabulary", "120", "--length", "128"]
        command += ["--pos-enc", ",".join(model.label for model in self.settings.models)]
        outputs = tuple(self.output / "pretrained" / model.path for model in self.settings.models)
        return Stage("pretrain", tuple(command), outputs, (text,))

    def place(self, model: Model) -> str:
        """Where it is, as the commands name it."""
        return f"{self.shown}/pretrained/{model.path}" if self.settings.builtin else str(model.path)

    def slug(self, model: Model) -> str:
        """Of what is done with a model in this way."""
        return model.slug + self.suffix

    def inputs(self, model: Model) -> tuple[Path, ...]:
        return () if self.settings.builtin else (model.path,)

    def unplaced(self, command: list[str]) -> tuple[str, ...]:
        """Files count, not where they lie."""
        settings = self.settings
        known = {} if settings.builtin else {self.place(model): model.label for model in settings.models}
        known |= {str(Path(file).resolve()): Path(file).name for file in settings.files}
        known |= {} if settings.tokenizer in CUTS else {settings.tokenizer: "TOKENIZER"}
        return tuple(known.get(word, word) for word in command)

    def check(self, model: Model) -> Stage:
        """The model and its encoding at this length, and the flags: what would fail hours later."""
        command = [*module("check"), "--checkpoint", self.place(model), "--max-length", str(self.settings.max_length)]
        command += ["--output", f"{self.shown}/checked/{self.slug(model)}.json"]
        command += ["--", *PLUGIN, *self.model_flags(model), "--total-num-update", "1"]  # which only a schedule knows
        return Stage(
            f"check:{self.slug(model)}",
            tuple(command),
            (self.output / "checked" / f"{self.slug(model)}.json",),
            tuple(self.text),
            (HERE / "check.py", *self.inputs(model)),
            identity=self.unplaced(command),
        )

    def questions(self) -> list[str]:
        """What prepare_spans.py is told of them."""
        settings = self.settings
        files = [str(Path(file).resolve()) for file in settings.files]
        if len(files) == 1 and not settings.train_file:
            return ["--text", *files, "--seed", str(settings.seed)]
        if settings.invented:
            files = [f"{self.shown}/builtin/{split}.json" for split in ("train", "dev")]
        elif not files:
            files = [f"{self.raw}/squad/{split}-v{settings.version}.json" for split in ("train", "dev")]
        return ["--train", files[0], *(["--eval", files[1]] if files[1:] else [])]

    def prepare(self, model: Model, check: Stage) -> Stage:
        settings = self.settings
        command = ["python", PREPARE, "--checkpoint", self.place(model), "--tokenizer-path", settings.tokenizer]
        command += ["--version", settings.version, *self.questions(), *self.windows()]
        command += ["--limit", str(settings.limit)] if settings.limit else []
        command += ["--output", self.data(model)]
        files = tuple(Path(file).resolve() for file in settings.files)
        return Stage(
            f"prepare:{model.slug}",
            tuple(command),
            (self.output / "data-bin" / model.slug,),
            (*self.text, check),
            (*self.scripts, *files, *self.inputs(model), *self.cuts(model)),
            identity=self.unplaced(command),
        )

    def windows(self) -> list[str]:
        """What prepare_spans.py is told of any questions."""
        settings = self.settings
        words = ["--bad", settings.bad, "--longest", str(settings.max_length), "--stride", str(settings.stride)]
        words += ["--longest-question", str(settings.longest_question), "--separators", str(settings.separators)]
        return words + (["--limit-eval", str(settings.limit_dev)] if settings.limit_dev else [])

    @cached_property
    def scripts(self) -> list[Path]:
        """What windows are made by."""
        found = sorted(path for name in ("questions", "spans") for path in (SCRIPTS / name).glob("*.py"))
        return [ROOT / PREPARE, *found, *PIECES]

    def cuts(self, model: Model) -> list[Path]:
        """The tokenizer's files."""
        settings = self.settings
        if settings.tokenizer not in CUTS:
            return [Path(settings.tokenizer)]
        return [] if settings.builtin else cuts_text(model.path)

    @property
    def raw(self) -> str:
        return places.raw(self.settings.raw)

    def data(self, model: Model) -> str:
        return f"{self.shown}/data-bin/{model.slug}"

    def baselines(self, prepared: Stage) -> Stage:
        command = [*module("baselines"), "--data", self.data(self.settings.models[0])]
        command += ["--output", f"{self.shown}/baselines.json"]
        outputs = (self.output / "baselines.json",)
        return Stage("baselines", tuple(command), outputs, (prepared,), BASELINES)

    # --- one model

    def chain(self, model: Model, check: Stage, prepared: Stage) -> list[Stage]:
        train = self.train(model, check, prepared)
        predict = self.predict(model, train)
        return [train, predict, self.score(model, predict)]

    def model_flags(self, model: Model) -> list[str]:
        settings = self.settings
        flags = ["--task", "posenc_squad", "--criterion", "squad", "--arch", ARCH, "--pretrained", self.place(model)]
        flags += ["--segments", settings.segments] if settings.segments != "none" else []
        flags += ["--pos-enc-args", settings.pos_enc_args] if settings.pos_enc_args else []
        return [*flags, "--lr-scheduler", "polynomial_decay", *as_arguments(settings.train)]

    def train(self, model: Model, check: Stage, prepared: Stage) -> Stage:
        settings = self.settings
        command = [self.data(model), *WHOLE, *QUIET, "--log-interval", "20"]  # the user's come later, and win
        command += [*PLUGIN, *self.model_flags(model), "--seed", str(settings.seed)]
        command += ["--save-dir", f"{self.shown}/checkpoints/{self.slug(model)}"]
        command += BEST if settings.keep == "best" else []
        kept = ["--no-epoch-checkpoints", "--keep-interval-updates", "1"]
        length = ["--record", f"{self.data(model)}/{RECORD}", "--count", "splits.train.windows"]
        length += ["--batch", str(settings.number("batch-size", 1) * settings.batches)]
        length += ["--epochs", str(settings.epochs), "--warmup", str(settings.warmup)]
        whole = ["python", "-m", "recipes.lib.scheduled", *length, "--"]
        return Stage(
            f"train:{self.slug(model)}",
            (*whole, *launch.train_command([*command, *kept], settings)),
            (self.output / "checkpoints" / self.slug(model),),
            (check, prepared),
            self.inputs(model),
            resumes=True,
            identity=(*length, *launch.identity(list(self.unplaced(command)), settings)),
        )

    def predict(self, model: Model, train: Stage) -> Stage:
        settings, slug = self.settings, self.slug(model)
        command = [*module("predict"), *self.answering(model), "--data", self.data(model)]
        command += ["--output", f"{self.shown}/predictions/{slug}"]
        command += ["--null-threshold", str(settings.null_threshold)] if settings.version == "2.0" else []
        outputs = (self.output / "predictions" / slug,)
        on_device = launch.on_one_device(command, settings)
        inputs = (HERE / "predict.py", *SEARCH, THRESHOLD)
        return Stage(f"predict:{slug}", on_device, outputs, (train,), inputs, identity=tuple(command))

    def answering(self, model: Model) -> list[str]:
        """The fine-tuned model, and how answers are looked for."""
        settings, folder = self.settings, f"{self.shown}/checkpoints/{self.slug(model)}"
        words = ["--checkpoint", f"{folder}/checkpoint_{settings.keep}.pt", "--n-best", str(settings.n_best)]
        return [*words, "--longest-answer", str(settings.longest_answer)]

    def score(self, model: Model, predict: Stage) -> Stage:
        slug = self.slug(model)
        command = [*module("score"), "--data", self.data(model), "--output", f"{self.shown}/scores/{slug}.json"]
        command += ["--predictions", f"{self.shown}/predictions/{slug}"]
        outputs = (self.output / "scores" / f"{slug}.json",)
        return Stage(f"score:{slug}", tuple(command), outputs, (predict,), (HERE / "score.py", *SCORES))

    # --- all of them

    def compare(self, after: tuple[Stage, ...]) -> Stage:
        settings = self.settings
        command = [*module("compare"), "--output", self.shown, "--paper", settings.paper]
        command += [word for one in departures(settings) for word in ("--differs", one)]
        for model in settings.models:
            command += ["--model", model.label, model.slug]
        outputs = (self.output / "comparison.json", self.output / "curves.png")
        inputs = (HERE / "compare.py", HERE / "published.py", ROOT / "recipes" / "lib" / "encodings.py", *tables())
        return Stage("compare", tuple(command), outputs, after, inputs)
