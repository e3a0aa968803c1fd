"""Check the commands in the report's tables of the papers: each command is one that its recipe accepts."""

from __future__ import annotations

import argparse
import subprocess
from functools import cache
from pathlib import Path

import pytest
import torch

from fairseq_posenc.analysis.report.targets import Target, target_of
from fairseq_posenc.encodings import StackShape, build
from fairseq_posenc.papers.reading import every
from recipes.lib import runs
from recipes.lib.encodings import parse
from recipes.lib.settings import OUTER_COMMA, check_all

ROOT = Path(__file__).resolve().parents[2]
#: Options with many values, of which the recipe is not asked for each.
MANY = ("--pos-enc", "--tasks", "--direction")
TARGETS = {target.command: target for figure in every() if (target := target_of(figure))}


@cache
def settings(recipe: str, words: tuple[str, ...]) -> dict[str, str | list[str]]:
    """Return the settings of a recipe with these options, as the recipe itself reads them."""
    command = [str(ROOT / "recipes" / recipe / "run.sh"), *words, "--settings"]
    process = subprocess.run(command, capture_output=True, text=True)
    if process.returncode:
        raise ValueError(process.stderr)
    return runs.settings(process.stdout)


def check(target: Target) -> None:
    """Check a command as its recipe does before the first step, and build its encodings.

    Raises:
        ValueError: The recipe would not run this command.
    """
    pairs = dict(zip(target.arguments[::2], target.arguments[1::2], strict=True))
    values = {"pos_enc": "", **{option[2:].replace("-", "_"): pairs.pop(option, "") for option in MANY}}
    values = {name: value for name, value in values.items() if value or name == "pos_enc"}
    known = settings(target.recipe, tuple(word for pair in pairs.items() for word in pair))
    args = argparse.Namespace(dry_run=True, given="", stack=[], suffix="", own=[])
    check_all(ROOT / "recipes" / target.recipe / "run.sh", known | values, args)
    causal, has_cls = target.recipe == "lm_wikitext103", target.recipe.startswith("finetune")
    shape = StackShape(layers=2, heads=2, dim=8, max_length=512, causal=causal, has_cls=has_cls)
    for label in filter(None, OUTER_COMMA.split(values["pos_enc"])):
        with torch.device("meta"):
            build(parse(label).name, parse(label).args, shape)


@pytest.mark.parametrize("name", sorted({target.recipe for target in TARGETS.values()}))
def test_the_recipe_accepts_the_commands_of_empty_cells(name: str) -> None:
    refused = {}
    for command, target in TARGETS.items():
        if target.recipe == name:
            try:
                check(target)
            except ValueError as error:
                refused[command] = str(error)
    assert refused == {}


def test_a_command_that_the_recipe_refuses_is_found() -> None:
    for words, text in (("--positon 4", "unknown option --positon"), ("--pos-enc shaw[clp=4]", "clp")):
        with pytest.raises(ValueError, match=text):
            check(Target("pretrain_mlm", "", "loss", "paper", ["--preset", "m4m-unsuccessful", *words.split()]))
