"""Test several seeds: every recipe trains with each seed on the same data, and means are tested for significance."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from scipy import stats
from support_recipes import OUTPUT, value

from recipes.lib import significance
from recipes.lib.finetuning.models import models
from recipes.lib.plain import recipes
from recipes.lib.recipe import Plan, Recipe, Row
from recipes.lib.report import heading
from recipes.lib.seeds import Seeds
from recipes.lib.settings import load
from recipes.lib.values import Refused

RECIPES = {recipe.name: recipe for recipe in recipes()}


def planned(recipe: Recipe[Any], **options: str) -> Plan:
    plan: Plan = recipe.plan(load(recipe, "smoke", texts=options), OUTPUT, "out")
    return plan


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
def test_every_recipe_trains_with_each_seed_on_the_same_prepared_data(recipe: Recipe[Any]) -> None:
    one, three = planned(recipe, seeds="1"), planned(recipe, seeds="1,5,7")
    names = [stage.name for stage in three.stages()]
    assert len(set(names)) == len(names)
    keys = {stage.name: stage.key() for stage in three.stages()}
    several_seeds = {"compare", "report", "lengths"}
    for stage in one.stages():  # nothing that is finished for one seed is repeated for three
        assert stage.kind in several_seeds or keys[stage.name] == stage.key(), stage.name
    trainings = [stage for stage in three.stages() if stage.kind == "train"]
    assert len(trainings) == 3 * sum(stage.kind == "train" for stage in one.stages())
    seeds = [value(stage, "--seed") for stage in trainings]
    assert {seed: seeds.count(seed) for seed in seeds} == dict.fromkeys(("1", "5", "7"), len(trainings) // 3)
    prepared = [stage for stage in three.stages() if stage.kind in ("prepare", "corpus", "binarise", "builtin")]
    assert prepared
    assert len({stage.name for stage in prepared}) == len(prepared)
    before = {stage.name for stage in one.stages() if stage.kind not in several_seeds}
    more = {stage.kind for stage in three.stages() if stage.name not in before} - several_seeds
    assert not more & {"prepare", "corpus", "binarise", "builtin", "fetch", "check", "baselines", "unigrams"}


@pytest.mark.parametrize(
    ("text", "message"),
    [("1,1", "--seeds 1,1: a seed occurs twice"), ("", "--seeds is empty"), ("1,-2", "negative"), ("1,x", "a list")],
)
def test_seeds_must_be_different_whole_numbers(text: str, message: str) -> None:
    with pytest.raises(Refused, match=message):
        load(RECIPES["demo"], "smoke", texts={"seeds": text})


def test_without_seeds_a_recipe_trains_with_the_seed_of_the_data() -> None:
    assert load(RECIPES["demo"], "smoke", texts={"seed": "4"}).training_seeds == Seeds((4,), 4)


def test_only_other_seeds_are_part_of_a_name() -> None:
    seeds = Seeds((1, 2), 1)
    assert seeds.slugs("shaw.clip=4") == {"shaw.clip=4": 1, "shaw.clip=4.seed=2": 2}
    assert (seeds.label("shaw", 2), Seeds((2,), 1).label("shaw", 2)) == ("shaw, seed 2", "shaw")


def test_the_header_of_a_table_says_how_many_seeds_it_has() -> None:
    assert heading([3]) == "Results from one seed (3): differences between rows may be chance"
    assert heading([1, 2]) == "Results from 2 seeds (1, 2)"


def test_holms_correction() -> None:
    """Compare with the steps of Holm (1979): the smallest of three p-values times 3, the next times 2, and so on."""
    assert significance.holm([0.04, 0.01, None, 0.03]) == pytest.approx([0.06, 0.03, None, 0.06])
    assert significance.holm([0.5, 0.6]) == [1.0, 1.0]
    assert significance.holm([]) == []


def test_welchs_test_does_not_assume_equal_variances() -> None:
    first, other = [10.0, 10.1, 9.9, 10.0], [11.0, 14.0, 8.0]
    difference = sum(other) / 3 - sum(first) / 4
    errors = 0.02 / 3 / 4, 9.0 / 3  # variance / number of scores
    degrees = sum(errors) ** 2 / (errors[0] ** 2 / 3 + errors[1] ** 2 / 2)
    expected = 2 * stats.t.sf(difference / sum(errors) ** 0.5, degrees)
    assert significance.welch(first, other) == pytest.approx(expected)
    assert significance.welch([1.0], [2.0, 3.0]) is None
    assert significance.welch([1.0, 1.0], [2.0, 2.0]) is None
    assert significance.welch([1.0, 1.0], [1.0, 1.0, 1.0]) == 1.0


def test_rows_are_tested_against_the_first_row_of_their_group() -> None:
    scores = {"a": [1.0, 1.1, 0.9], "b": [5.0, 5.2, 4.9], "c": [1.0, 1.2, 0.9], "d": [2.0]}
    rows: list[Row] = [
        {"task": task, **significance.summary("score", [*values])} for task in ("x", "y") for values in scores.values()
    ]
    significance.compare_with_first(rows, "score", "task")
    assert [row["p"] for row in rows[:4]] == [row["p"] for row in rows[4:]]
    raw = [stats.ttest_ind(scores["a"], scores[name], equal_var=False).pvalue for name in "bc"]
    assert rows[1]["p"] == pytest.approx(2 * raw[0], abs=1e-4)
    assert rows[2]["p"] == pytest.approx(raw[1], abs=1e-4)
    assert (rows[0]["p"], rows[3]["p"]) == (None, None)
    assert (rows[0]["score"], rows[0]["sd"], rows[0]["seeds"]) == (1.0, 0.1, 3)
    assert significance.summary("score", []) == {"score": None, "sd": None, "seeds": 0, "score of seeds": []}


def test_a_pretraining_run_has_a_model_for_each_seed_that_did_not_diverge(tmp_path: Path) -> None:
    rows = '[{"encoding": "shaw[clip=4]", "checkpoints": ["shaw.clip=4", "shaw.clip=4.seed=2"]}, '
    (tmp_path / "comparison.json").write_text(rows + '{"encoding": "none", "checkpoints": []}]')
    labels = {model.label: model.path.parent.name for model in models([str(tmp_path)])}
    assert labels == {"shaw[clip=4]": "shaw.clip=4", "shaw[clip=4].seed=2": "shaw.clip=4.seed=2"}
