"""Define all commands of the recipe, in the order in which they run.

The models are trained by fairseq-train with the plugin's models and its task `posenc_answers`.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from recipes.lib import launch, planning
from recipes.lib.planning import PACKAGE, flags, module
from recipes.lib.recipe import Plan
from recipes.lib.settings import as_arguments
from recipes.lib.stages import Stage

from .settings import Model, Settings
from .tasks.registry import TASKS, task

HERE = Path(__file__).parent


def make_plan(settings: Settings, output: Path, shown: str) -> Plan:
    """Return the plan; `shown` is the path of the output folder in commands, relative to the repository."""
    recipe = Planner(settings, output, shown)
    data = {name: recipe.generate(name) for name in settings.tasks}
    chains = [
        [train := recipe.train(name, model, seed, data[name]), recipe.evaluate(name, train)]
        for name in settings.tasks
        for model in settings.models
        for seed in settings.seeds_of(model).seeds
    ]
    compare = recipe.compare([chain[-1] for chain in chains])
    return Plan([[list(data.values())], chains, [[compare]]], (*launch.notes(settings, ""), *settings.replacements()))


@cache
def sources(name: str) -> tuple[Path, ...]:
    """Return the files that determine the examples of a task."""
    folder = HERE / "tasks"
    return (HERE / "generate.py", folder / "task.py", folder / f"{TASKS[name]}.py")


class Planner(planning.Planner[Settings]):
    def folder(self, name: str) -> str:
        """Return the path of the folder with a task's examples, for use in commands."""
        return f"{self.shown}/data/{name}"

    def generate(self, name: str) -> Stage:
        """Return the stage that generates the examples of a task."""
        settings = self.settings
        command = module("length_tasks.generate") + flags(task=name, seed=settings.seed)
        if longest := settings.longest_of(name):
            command += flags(longest=longest, tested=tuple(settings.tested_of(name)), **settings.rows)
        command += flags(output=self.folder(name))
        return self.stage(f"prepare:{name}", command, [f"data/{name}"], inputs=sources(name))

    def train(self, name: str, model: Model, seed: int, data: Stage) -> Stage:
        """Return the stage that trains a model and keeps the last checkpoint."""
        settings = self.settings
        slug = f"{name}.{settings.training_seeds.slug(model.slug, seed)}"
        words = ["--task", "posenc_answers", "--criterion", "cross_entropy", *model.stacks(name).flags()]
        words += flags(pos_enc_random=settings.random_range if model.random else None)
        words += as_arguments(settings.flags_of(task(name)))
        words += flags(seed=seed)
        keep = ["--no-epoch-checkpoints"]
        return self.training_stage(slug, self.folder(name), words, [data], keep=keep, log_interval=100)

    def evaluate(self, name: str, train: Stage) -> Stage:
        """Return the stage that scores a model on the test sets."""
        slug = train.variant
        command = module("length_tasks.evaluate") + flags(
            data=self.folder(name),
            checkpoint=f"{self.shown}/checkpoints/{slug}/checkpoint_last.pt",
            output=f"{self.shown}/scores/{slug}.json",
        )
        inputs = [HERE / "evaluate.py", PACKAGE / "metrics" / "exact_match.py"]
        return self.stage(f"evaluate:{slug}", command, [f"scores/{slug}.json"], [train], inputs, on_device=True)

    def compare(self, after: list[Stage]) -> Stage:
        """Return the stage that writes the tables and figures of all scores."""
        settings = self.settings
        command = module("length_tasks.compare") + flags(
            output=self.shown,
            tasks=tuple(settings.tasks),
            pos_enc=[model.label for model in settings.models if not model.once],
            once=[model.label for model in settings.models if model.once],
        )
        command += settings.training_seeds.flags()
        outputs = ["comparison.json", "lengths.png", "tasks.png"]
        return self.stage("compare", command, outputs, after, [HERE / "compare.py", HERE / "drawing.py"])
