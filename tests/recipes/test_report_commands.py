"""Check the commands in the report's tables of the papers: each command is one that its recipe accepts."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest
import torch

from fairseq_posenc.analysis.report.papers import BOOKS, MODEL, Target, target_of
from fairseq_posenc.encodings import StackShape, build
from fairseq_posenc.papers.reading import every
from recipes.lib.encodings import parse as parse_encoding
from recipes.lib.options import parse
from recipes.lib.recipe import Recipe
from recipes.lib.settings import load
from recipes.lib.values import Refused

TARGETS = {target.command: target for figure in every() if (target := target_of(figure))}


def recipe(name: str) -> Recipe[Any]:
    module = importlib.import_module(f"recipes.{name}.__main__")
    return next(value for value in vars(module).values() if isinstance(value, Recipe))


def check(target: Target, output: Path) -> None:
    """Plan a command as its recipe does before the first stage, and build its encodings.

    Raises:
        Refused, ValueError: The recipe would not run this command.
    """
    own = recipe(target.recipe)
    options = parse(own, target.arguments)
    settings = load(own, options.preset, options.config, options.settings)
    settings.refuse_missing()
    assert own.plan(settings, output, "results").stages()
    language_model = target.recipe == "lm_wikitext103"
    shape = StackShape(layers=2, heads=2, dim=8, max_length=512, causal=language_model)
    for label in getattr(settings, "pos_enc", []):
        encoding = parse_encoding(label)
        with torch.device("meta"):
            build(encoding.name, encoding.args, shape)


@pytest.mark.parametrize("name", sorted({target.recipe for target in TARGETS.values()}))
def test_the_recipe_accepts_the_commands_of_empty_cells(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(BOOKS).mkdir()
    Path(MODEL).touch()
    refused = {}
    for command, target in TARGETS.items():
        if target.recipe == name:
            try:
                check(target, tmp_path / "results")
            except (Refused, ValueError) as error:
                refused[command] = str(error)
    assert refused == {}


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--preset", "m4m-unsucessful"], "has no preset"),
        (["--preset", "m4m-unsuccessful"], "needs --books"),
        (["--preset", "m4m-unsuccessful", "--books", BOOKS, "--positon", "4"], "unknown option --positon"),
        (["--preset", "m4m-unsuccessful", "--books", BOOKS, "--pos-enc", "shw"], "no position encoding 'shw'"),
        (["--preset", "m4m-unsuccessful", "--books", BOOKS, "--pos-enc", "shaw[clp=4]"], "clp"),
    ],
)
def test_a_command_that_the_recipe_refuses_is_found(
    arguments: list[str], text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(BOOKS).mkdir()
    with pytest.raises((Refused, ValueError), match=text):
        check(Target("pretrain_mlm", "", "loss", "paper", arguments), tmp_path / "results")
