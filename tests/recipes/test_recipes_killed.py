"""Kill every recipe (preset smoke) in every stage, and check that the result is that of an uninterrupted run."""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import support_curves
from support_recipes import unmeasured

from recipes.lib.recipe import Row, shown
from recipes.lib.settings import load

ROOT = Path(__file__).resolve().parents[2]
RECIPES = sorted(path.parent.name for path in (ROOT / "recipes").glob("*/run.sh"))
QUICK = 0.1  # seconds until our own stages work; other stages import torch first


def kinds(name: str, output: Path) -> list[str]:
    recipe = importlib.import_module(f"recipes.{name}.__main__")
    definition = next(value for value in vars(recipe).values() if type(value).__name__ == "Recipe")
    plan = definition.plan(load(definition, "smoke"), output, shown(output))
    return list(dict.fromkeys(stage.kind for stage in plan.stages()))


def start(name: str, output: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", f"recipes.{name}", "--preset", "smoke", "--jobs", "1", "--output", str(output)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, start_new_session=True)


def kill_in(name: str, kind: str, output: Path) -> None:
    """Kill the run together with its commands, as a power failure does, as soon as this stage has begun."""
    with start(name, output) as process:
        while not list((output / ".stages").glob(f"{kind}*.begun")):
            assert process.poll() is None, f"no {kind} began"
            time.sleep(0.02)
        time.sleep(1.5 if kind in ("binarise", "train", "generate", "measure", "subwords") else QUICK)  # until it works
        os.killpg(process.pid, signal.SIGKILL)
    assert not (output / "result.json").exists()


def outcome(output: Path) -> tuple[list[Row], dict[str, str]]:
    """Return the rows of the table, and the texts that the models of some recipes generated."""
    rows = json.loads((output / "result.json").read_text())["results"]
    texts = {path.parent.name: path.read_text() for path in output.glob("generated/*/generate-*.txt")}
    return unmeasured(rows), texts


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_killed_in_every_stage_ends_in_the_same_result(name: str, tmp_path: Path) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken in pieces"
    for kind in kinds(name, broken):
        kill_in(name, kind, broken)
    for output in (broken, whole):
        with start(name, output) as process:
            assert process.wait() == 0
    assert outcome(broken) == outcome(whole)
    support_curves.check(name, whole)
    assert bool(outcome(whole)[1]) == ("generate" in kinds(name, whole))
