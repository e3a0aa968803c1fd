"""Put the stages of the recipe in order; recipes/lib/finetuning/sentences/plan.py defines most stages."""

from __future__ import annotations

from pathlib import Path

from recipes.lib.finetuning.sentences.plan import Sentences
from recipes.lib.recipe import Plan

from .settings import Settings


def make_plan(settings: Settings, output: Path, shown: str) -> Plan:
    glue = Sentences(settings, output, shown)
    before = [*glue.builtin, *glue.checks.values(), *glue.prepared.values(), *glue.baselines.values()]
    chains = [[train := glue.train(trial), glue.evaluate(trial, train)] for trial in glue.trials]
    return Plan([[before], chains, [[glue.compare(chains)]]], tuple(glue.notes))
