"""Plan all commands of the recipe in order.

The models are trained by fairseq-train with the plugin's classifier and task.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from recipes.lib import launch, places, planning
from recipes.lib.encodings import Encoding, labels
from recipes.lib.package import tables
from recipes.lib.planning import SCRIPTS, flags, module
from recipes.lib.recipe import ROOT, Plan
from recipes.lib.settings import as_arguments
from recipes.lib.stages import Stage

from .settings import BUILTIN, PUBLISHED, Settings

HERE = Path(__file__).parent
SCRIPT = "data-bin-scripts/prepare_text_classification.sh"
VECTORS = "word_vectors.safetensors"


def make_plan(settings: Settings, output: Path, shown: str) -> Plan:
    """Return the plan; `shown` is the path of the output folder in commands, relative to the repository."""
    recipe = Planner(settings, output, shown)
    before = [*recipe.builtin, recipe.prepare, recipe.baselines]
    chains = [
        [train := recipe.train(encoding, seed), recipe.evaluate(encoding, seed, train)]
        for encoding in settings.encodings
        for seed in settings.training_seeds.seeds
    ]
    compare = recipe.compare([chain[-1] for chain in chains])
    return Plan([[before], chains, [[compare]]], tuple(recipe.notes))


def slug_of(encoding: Encoding, seed: int) -> str:
    """Return the name of a training run in paths and stages."""
    return f"{encoding.slug}.s{seed}"


class Planner(planning.Planner[Settings]):
    @property
    def notes(self) -> list[str]:
        lines = launch.notes(self.settings, f"An update has {self.settings.batch} rows.")
        if self.settings.task == BUILTIN:
            lines.append(
                "The built-in task only tests the installation. Scores on this task do not show the quality of "
                "encodings."
            )
        return lines

    @property
    def data(self) -> str:
        """Return the path of the folder of binary data, in the form that commands contain."""
        return f"{self.shown}/data-bin"

    @property
    def scores(self) -> list[str]:
        """Return the options that name the metrics and the splits to score."""
        return flags(metrics=",".join(self.settings.metrics), splits=",".join(self.settings.scored))

    @cached_property
    def builtin(self) -> list[Stage]:
        """Return a list with the stage that writes the built-in task, or an empty list for other tasks."""
        if self.settings.task != BUILTIN:
            return []
        command = module("text_classification.builtin")
        command += flags(output=f"{self.shown}/builtin", seed=self.settings.seed)
        return [self.stage("builtin", command, ["builtin"], inputs=[HERE / "builtin.py"])]

    @cached_property
    def prepare(self) -> Stage:
        """Return the stage that turns the rows into binary data."""
        settings = self.settings
        glove = settings.glove
        options = flags(
            task=settings.task if settings.published else None,
            text=settings.text if settings.own else None,
            pair=settings.pair if settings.own else None,
            label=settings.label if settings.own else None,
            tokenizer=settings.tokenizer,
            more_than=settings.more_than,
            longest=settings.longest,
            bad=settings.bad,
            seed=settings.seed,
            limit=settings.limit or None,
            glove=glove if glove in ("", PUBLISHED) else str(Path(glove).resolve()),
            output=self.data,
        )
        place = flags(
            raw=places.raw(settings.raw) if settings.published or glove == PUBLISHED else None, data=self.place
        )
        inputs = [ROOT / SCRIPT, *sorted((SCRIPTS / "classification").glob("*.py")), *settings.files()]
        return self.stage("prepare", ["bash", SCRIPT, *options], ["data-bin"], self.builtin, inputs, free=place)

    @property
    def place(self) -> str | None:
        """Return the folder of the rows, or None if the script must download them."""
        settings = self.settings
        if settings.task == BUILTIN:
            return f"{self.shown}/builtin"
        folder = settings.task if settings.own else settings.data
        return str(Path(folder).resolve()) if folder else None

    @cached_property
    def baselines(self) -> Stage:
        """Return the stage that scores the most frequent label and a bag of words."""
        command = module("text_classification.baselines") + flags(data=self.data) + self.scores
        command += flags(output=f"{self.shown}/baselines.json")
        inputs = [HERE / "baselines.py", HERE / "scores.py"]
        return self.stage("baselines", command, ["baselines.json"], [self.prepare], inputs)

    def train(self, encoding: Encoding, seed: int) -> Stage:
        """Return the stage that trains a model and keeps the best checkpoint on the validation set."""
        settings, slug = self.settings, slug_of(encoding, seed)
        updates, interval = settings.of_task(settings.updates), settings.of_task(settings.interval)
        words = ["--task", "posenc_sentence_prediction", "--criterion", "posenc_sentence_prediction"]
        words += [*flags(metrics=",".join(settings.metrics), arch=settings.arch), *settings.flags(encoding)]
        words += ["--pooling", "cls", "--init-token", "0"] if settings.is_pair else ["--pooling", "max"]
        words += flags(
            max_positions=settings.longest,
            word_vectors=f"{self.data}/{VECTORS}" if settings.glove else None,
            batch_size=settings.batch // settings.batches,
            seed=seed,
            max_update=updates,
            total_num_update=updates,
            warmup_updates=settings.of_task(settings.warmup),
            validate_interval_updates=interval,
            save_interval_updates=interval,
            best_checkpoint_metric="score",
            maximize_best_checkpoint_metric=True,
        )
        words += as_arguments(settings.train)
        keep = flags(no_epoch_checkpoints=True, keep_interval_updates=1)
        return self.training_stage(slug, self.data, words, [self.prepare], keep=keep, log_interval=50)

    def evaluate(self, encoding: Encoding, seed: int, train: Stage) -> Stage:
        """Return the stage that scores the best checkpoint on the test sets."""
        slug = slug_of(encoding, seed)
        scores, predictions = f"scores/{slug}.json", f"predictions/{slug}"
        command = module("text_classification.evaluate") + flags(data=self.data) + self.scores
        command += flags(
            checkpoint=f"{self.shown}/checkpoints/{slug}/checkpoint_best.pt",
            output=f"{self.shown}/{scores}",
            predictions=f"{self.shown}/{predictions}",
        )
        inputs = [HERE / "evaluate.py", HERE / "scores.py"]
        return self.stage(f"evaluate:{slug}", command, [scores, predictions], [train], inputs, on_device=True)

    def compare(self, after: list[Stage]) -> Stage:
        """Return the stage that writes the table and the figure of all scores."""
        settings = self.settings
        command = module("text_classification.compare") + flags(
            output=self.shown,
            task=settings.name if settings.published and not settings.limit else None,  # the paper's data
            seeds=",".join(map(str, settings.training_seeds.seeds)),
            pos_enc=labels(settings.encodings),
        )
        return self.stage(
            "compare", command, ["comparison.json", "lengths.png"], after, [HERE / "compare.py", *tables()]
        )
