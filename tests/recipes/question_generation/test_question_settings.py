"""Test the settings of the question generation recipe: what is refused, and what would have no effect."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support_recipes import Planned

from recipes.lib.settings import load
from recipes.lib.values import Refused
from recipes.question_generation.__main__ import QUESTION_GENERATION

settings = Planned(QUESTION_GENERATION).settings


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dataset": "no-such"}, "--dataset no-such: the file or folder does not exist. Known data sets are squad"),
        ({"train_set": "x.json"}, "--train-set has no effect"),
        ({"freeze_encoder": "true"}, "--freeze-encoder: with --encoder scratch"),
        ({"encoder": "bert", "cased": "true"}, "--tokenizer and --cased have no effect"),
        ({"train__encoder-from": "bert"}, "use --encoder"),
        ({"train__no-copy": "true"}, "use --copy"),
        ({"train__max-source-positions": "9"}, "use --longest"),
        ({"generate__path": "x"}, "use --output"),
        ({"generate__post-process": "x"}, "the prepared data has its own tokenizer"),
        ({"vocabulary": "1"}, "--vocabulary 1: the value must be at least 5"),
        ({"longest": "43"}, "--longest 43: a source of this length has no room for an answer of 40"),
        ({"pos_enc": "xk"}, "no position encoding 'xk'"),
    ],
)
def test_what_is_refused(options: dict[str, str], message: str) -> None:
    with pytest.raises(Refused, match=message):
        settings(**options)


@pytest.mark.parametrize(
    ("file", "options", "message"),
    [
        ("questions.json", {"bad": "skip"}, "--bad has no effect: the questions of .* are already prepared"),
        ("questions.json", {"context": "sentence"}, "--context has no effect"),
        ("questions.json", {"tokenizer": "chars"}, "--tokenizer has no effect"),
        ("questions.json", {"cased": "true"}, "--cased has no effect"),
        ("questions.json", {"vocabulary": "900"}, "--vocabulary has no effect"),
        ("questions.json", {"longest_answer": "9"}, "--longest-answer has no effect"),
        ("questions.json", {"workers": "2"}, "--workers has no effect"),
        ("questions.json", {"limit": "600"}, "--limit has no effect"),
        ("src-train.txt", {"longest_answer": "9"}, "--longest-answer has no effect: the lines of .* have no answers"),
        ("src-train.txt", {"context": "paragraph"}, "--context has no effect: the lines of .* are sentences"),
        ("train.json", {"raw": "x"}, "--raw has no effect: nothing is downloaded"),
        ("train.json", {"numbers_of": "cmrc"}, "--numbers-of has no effect: the setting applies only to"),
        (
            "train.json",
            {"encoder": "bert", "vocabulary": "900"},
            "--vocabulary has no effect: --encoder bert has its own",
        ),
    ],
)
def test_settings_without_effect_are_refused_where_they_are_named(
    file: str, options: dict[str, str], message: str, tmp_path: Path
) -> None:
    (tmp_path / file).write_text("{}")
    with pytest.raises(Refused, match=message):
        settings("smoke", dataset=str(tmp_path), **options)
    own = tmp_path / "own.toml"
    own.write_text("\n".join(f"{name} = {json.dumps(read(text))}" for name, text in options.items()))
    with pytest.raises(Refused, match=message):
        load(QUESTION_GENERATION, "smoke", own, texts={"dataset": str(tmp_path)})
    for preset in QUESTION_GENERATION.presets():  # presets may name all settings
        settings(preset, dataset=str(tmp_path), limit="0", cased="false")


def read(text: str) -> object:
    return int(text) if text.isdigit() else {"true": True}.get(text, text)
