"""Put the stages of the recipe in order; recipes/lib/finetuning/questions/plan.py defines most stages."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from recipes.lib import launch
from recipes.lib.finetuning.questions.plan import BASELINES, Questions, Training
from recipes.lib.package import tables
from recipes.lib.planning import flags
from recipes.lib.recipe import ROOT, Plan
from recipes.lib.stages import Stage

from .settings import Settings


def make_plan(settings: Settings, output: Path, shown: str) -> Plan:
    squad = Questions(
        settings,
        output,
        shown,
        version=settings.version,
        longest=settings.max_length,
        separators=settings.separators,
        batch=settings.batch,
        keep="last",
        null_threshold=settings.null_threshold if settings.version == "2.0" else None,
    )
    seeds = settings.training_seeds
    trainings = [
        [
            Training(slug, model, settings.segments, settings.epochs, seed, settings.train)
            for slug, seed in seeds.slugs(model.slug).items()
        ]
        for model in settings.models
    ]
    # The check does not depend on the seed.
    checks = [squad.check(replace(runs[0], slug=runs[0].model.slug)) for runs in trainings]
    prepared = [squad.prepare_english(runs[0].model, check) for runs, check in zip(trainings, checks, strict=True)]
    baselines = _baselines(squad, prepared[0])
    chains = [
        _chain(squad, training, check, data)
        for runs, check, data in zip(trainings, checks, prepared, strict=True)
        for training in runs
    ]
    compare = _compare(squad, [baselines, *(stage for chain in chains for stage in (chain[0], chain[-1]))])
    before = [*squad.text, *checks, *prepared, baselines]
    return Plan([[before], chains, [[compare]]], tuple(_notes(squad)))


def _notes(squad: Questions[Settings]) -> list[str]:
    settings = squad.settings
    update = f"An update consists of {settings.batch:,} windows of up to {settings.max_length} pieces."
    notes = launch.notes(settings, update) + squad.notes_on_models
    if settings.limit:
        notes.append(f"Only the first {settings.limit:,} training questions are used.")
    if settings.limit_dev:
        notes.append(f"Only the first {settings.limit_dev:,} development questions are scored.")
    return notes


def _baselines(squad: Questions[Settings], prepared: Stage) -> Stage:
    words = flags(data=squad.data(squad.settings.models[0]), output=f"{squad.shown}/baselines.json")
    return squad.run("baselines", "finetune_squad.baselines", words, ["baselines.json"], [prepared], BASELINES)


def _chain(squad: Questions[Settings], training: Training, check: Stage, prepared: Stage) -> list[Stage]:
    train = squad.train(training, check, prepared)
    predict = squad.predict(training, train)
    return [train, predict, squad.score(training, predict)]


def _compare(squad: Questions[Settings], after: list[Stage]) -> Stage:
    settings = squad.settings
    models = [(model.label, model.slug) for model in settings.models]
    words = flags(output=squad.shown, paper=settings.paper, differs=settings.departures(), model=models)
    words += settings.training_seeds.flags()
    inputs = [Path(__file__).with_name("published.py"), ROOT / "recipes" / "lib" / "encodings.py", *tables()]
    outputs = ["comparison.json", "curves.png"]
    return squad.run("compare", "finetune_squad.compare", words, outputs, after, inputs)
