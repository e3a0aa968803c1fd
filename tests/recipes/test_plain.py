"""Test the recipes' plain shell scripts: they are up to date, and they produce the same results as the runner."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from support_recipes import unmeasured

from recipes.lib.plain import recipes, scripts
from recipes.lib.recipe import ROOT, Recipe, Row
from recipes.lib.settings import load


def test_the_scripts_match_the_plans() -> None:
    texts = scripts()
    assert {path.parent.parent.name for path in texts} == {recipe.name for recipe in recipes()}
    assert set(ROOT.glob("recipes/*/plain/*")) == {*texts}
    for path, text in texts.items():
        assert path.read_text(encoding="utf-8") == text, f"{path} is old: write it anew by python -m recipes.lib.plain"
        assert os.access(path, os.X_OK), f"{path} cannot be executed"


def test_a_script_needs_the_readers_own_files(tmp_path: Path) -> None:
    script = ROOT / "recipes" / "question_generation" / "plain" / "paper.sh"
    done = subprocess.run([script, tmp_path / "out"], capture_output=True, text=True)
    assert done.returncode != 0
    assert "ENCODER: set this variable to the value of --encoder of run.sh" in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("recipe", recipes(), ids=lambda recipe: recipe.name)
def test_a_smoke_script_ends_in_the_scores_of_the_runner(recipe: Recipe, tmp_path: Path) -> None:
    folder, by_hand, by_runner = ROOT / "recipes" / recipe.name, tmp_path / "by hand", tmp_path / "by runner"
    subprocess.run([folder / "plain" / "smoke.sh", by_hand], check=True, stdout=subprocess.DEVNULL)
    options = ["--preset", "smoke", "--output", by_runner]
    subprocess.run([folder / "run.sh", *options], check=True, stdout=subprocess.DEVNULL)
    assert not (by_hand / ".stages").exists()
    assert scores(recipe, by_hand) == scores(recipe, by_runner)


def scores(recipe: Recipe, output: Path) -> list[Row]:
    rows = json.loads(json.dumps(recipe.results(load(recipe, "smoke"), output)))
    return unmeasured(rows)
