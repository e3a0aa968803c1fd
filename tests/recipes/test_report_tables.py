"""Test the tables of report.md: a narrow table with intervals and units, and the details below it."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path

import pytest

from recipes.finetune_glue.__main__ import FINETUNE_GLUE
from recipes.finetune_squad.__main__ import FINETUNE_SQUAD
from recipes.finetune_xtreme.__main__ import FINETUNE_XTREME
from recipes.lib.recipe import ROOT, Recipe, Row
from recipes.lib.report import main_table, markdown, results
from recipes.lm_wikitext103.__main__ import LM_WIKITEXT103
from recipes.lm_wikitext103.compare import papers_text
from recipes.pretrain_mlm.__main__ import PRETRAIN_MLM
from recipes.question_generation.__main__ import QUESTION_GENERATION
from recipes.text_classification.__main__ import TEXT_CLASSIFICATION
from recipes.text_classification.compare import paper
from recipes.translation_wmt18.__main__ import TRANSLATION

RECIPES = [
    *(TRANSLATION, LM_WIKITEXT103, PRETRAIN_MLM, TEXT_CLASSIFICATION, QUESTION_GENERATION),
    *(FINETUNE_SQUAD, FINETUNE_GLUE, FINETUNE_XTREME),
]
#: Folders in recipes/ with the code that makes the rows, if it is not the recipe's own folder.
WRITERS = {"finetune_glue": "lib/finetuning/sentences"}
FACTS = {"recipe": "recipe", "machine": {"cores": 2, "memory_gib": 8, "gpus": []}, "versions": {}, "minutes": {}}
FACTS |= {"seed": 1, "seeds": [1], "commit": "abc", "command": "run.sh"}


def cells(table: str) -> list[list[str]]:
    """Return the cells of a Markdown table, without the line below its header."""
    lines = [line for line in table.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in [lines[0], *lines[2:]]]


def test_scores_stand_with_their_intervals_and_units() -> None:
    one: Row = {"direction": "en-de", "encoding": "none", "BLEU": 27.3, "±": 2.042, "paper": None, "p": None}
    rows = [{**one, "parameters": 1234}, {**one, "encoding": "rope", "BLEU": None, "±": None, "p": 0.01}]
    assert cells(main_table(rows, TRANSLATION.main, TRANSLATION.forms)) == [
        ["direction", "encoding", "sacreBLEU ± 95 % interval", "p", "parameters"],
        ["en-de", "none", "27.30 ± 2.04", "–", "1,234"],
        ["en-de", "rope", "–", "0.01", "–"],
    ]


def test_the_interval_of_several_seeds_is_that_of_their_mean() -> None:
    row: Row = {"encoding": "none", "loss, bits": 4.0, "loss, bits of seeds": [3.0, 4.0, 5.0], "±": 9.0}
    assert cells(main_table([row], PRETRAIN_MLM.main)) == [
        ["encoding", "loss (bits per masked piece) ± 95 % interval"],
        ["none", "4 ± 2.5"],
    ]


def test_the_p_value_of_several_seeds_has_no_interval() -> None:
    row: Row = {"encoding": "rope", "p": 0.2, "p of seeds": [0.2, 0.1], "seeds": 2}
    assert cells(main_table([row], {"encoding": "encoding", "p": "p"})) == [["encoding", "p"], ["rope", "0.2"]]


def test_a_score_without_an_interval_stands_alone() -> None:
    row: Row = {"model": "m4", "F1": 88.123, "EM": 80.0, "±": 3.0, "p": None}
    assert cells(main_table([row], FINETUNE_SQUAD.main)) == [["model", "F1 (%)", "EM (%)"], ["m4", "88.12", "80"]]


def test_a_papers_scores_are_written_as_text() -> None:
    own, other = ({"score": score, "model": model, "segments": ""} for score, model in ((86.1, ""), (85.95, "BERT")))
    row: Row = {"model": "m4", "F1": 88.123, "paper's F1": [own, other]}
    assert cells(main_table([row], FINETUNE_SQUAD.main))[1] == ["m4", "88.12", "86.1; 85.95 (BERT)"]
    details = results([row], FINETUNE_SQUAD.columns)
    assert cells(details)[1] == ["m4", "88.12", "86.1; 85.95 (BERT)"]
    per_head = {**own, "model": "roberta-base itself", "segments": "head"}
    alone = results([{**row, "paper's F1": [per_head, per_head]}], FINETUNE_SQUAD.columns)
    assert "paper's F1: `86.1/86.1 (roberta-base itself) (segments: head)`" in alone


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.name)
def test_the_main_table_is_narrow_and_stands_before_the_details(recipe: Recipe) -> None:  # type: ignore[type-arg]
    row: Row = dict.fromkeys((*recipe.columns, *recipe.main), 1.0)
    text = markdown(recipe, (), {}, {**FACTS, "results": [row]})
    main, details = text.split("\n## Details\n")
    assert len(cells(main)[0]) == len(recipe.main) <= 14
    assert set(recipe.main) <= set(recipe.columns)
    assert cells(details)[0] == list(recipe.columns)
    empty = {"results": [{**row, recipe.columns[-1]: None}]}
    assert cells(markdown(recipe, (), {}, {**FACTS, **empty}).split("\n## Details\n")[1])[0] == list(
        recipe.columns[:-1]
    )


def never_written(recipe: Recipe, sources: Iterable[str]) -> set[str]:  # type: ignore[type-arg]
    """Return the columns of the main table whose names are not in the code that makes the rows."""
    nodes = (node for source in sources for node in ast.walk(ast.parse(source)))
    return set(recipe.main) - {node.value for node in nodes if isinstance(node, ast.Constant)}


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.name)
def test_the_rows_can_have_every_column_of_the_main_table(recipe: Recipe) -> None:  # type: ignore[type-arg]
    """A column that no row has is left out of every report, and nothing else would show that it is missing."""
    folder = ROOT / "recipes" / WRITERS.get(recipe.name, recipe.name)
    files = [file for file in folder.glob("*.py") if file.name != "__main__.py"]
    sources = [file.read_text(encoding="utf-8") for file in (*files, ROOT / "recipes" / "lib" / "significance.py")]
    assert never_written(recipe, sources) == set()
    if "parameters" in recipe.main:
        without = [source.replace('"parameters"', '"sizes"') for source in sources]
        assert never_written(recipe, without) == {"parameters"}


def test_the_papers_text_is_told_by_its_types_and_the_split(tmp_path: Path) -> None:
    assert not papers_text(tmp_path, "test")
    for types, whole in ((33_278, False), (267_735, True)):
        (tmp_path / "counts.json").write_text(f'{{"types": {types}}}', encoding="utf-8")
        assert papers_text(tmp_path, "test") == whole
        assert not papers_text(tmp_path, "valid")


def test_own_texts_have_no_papers_number() -> None:
    assert paper(None) == []
    assert paper("IMDB")
