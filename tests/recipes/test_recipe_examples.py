"""Check that every example in the --help of the recipes can be planned as it is printed."""

from __future__ import annotations

import importlib
import json
import re
import shlex
from pathlib import Path

import pytest

from recipes.lib.command import main
from recipes.lib.options import parse
from recipes.lib.recipe import Recipe
from recipes.lib.settings import load

ROOT = Path(__file__).resolve().parents[2]
#: Files that the examples assume the user has.
FILES = ("nqg/train.json", "nqg/dev.json", "squad-v1.1/du-test-v1.1.json.gz", "squad-v1.1/dev-v1.1.part1.json.gz")
FILES += ("glue_data/RTE/train.tsv", "MLQA_V1/x", "DIR/train.txt", "DIR/valid.txt", "BOOKS/x", "wikitext-2/x")
FILES += ("xtreme/train-v1.1.json", "xtreme/dev-v1.1.json", "train.json.gz", "dev.json.gz", "BERT/vocab.txt")
FILES += ("data/raw/gpt2-bpe/vocab.bpe", "data/raw/gpt2-bpe/encoder.json", "my-folder/train.tsv")
RUN = "results/pretrain_mlm/books_wiki.posenc_bert_base.128.1"
ENCODINGS = ("diet-rel", "diet-abs[rank=64,share=none]")


def recipe(name: str) -> Recipe:
    module = importlib.import_module(f"recipes.{name}.__main__")
    return next(value for value in vars(module).values() if isinstance(value, Recipe))


NAMES = sorted(path.parent.name for path in ROOT.glob("recipes/*/__main__.py"))
EXAMPLES = [(name, example) for name in NAMES for example in recipe(name).examples]


@pytest.mark.parametrize(("name", "example"), EXAMPLES)
def test_an_example_plans_its_commands(
    name: str, example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for file in FILES:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text("")
    (tmp_path / RUN).mkdir(parents=True)
    (tmp_path / RUN / "comparison.json").write_text(json.dumps([{"encoding": one} for one in ENCODINGS]))
    monkeypatch.chdir(tmp_path)
    words = shlex.split(example)
    assert main(recipe(name), [*words, "--dry-run"]) == 0, capsys.readouterr().err
    options = parse(recipe(name), words)
    settings = load(recipe(name), options.preset, options.config, options.settings)
    for model in getattr(settings, "models", []):  # `name:place`, where the name is an encoding or a word
        assert re.fullmatch(r"[\w+-]+(\.[\w=,.-]+|\[[\w=,.-]+\])?", model.label), model.label


def test_every_recipe_has_examples() -> None:
    assert {name for name, _ in EXAMPLES} == {*NAMES}
