"""Test the settings of the question generation recipe: what is refused, and what would have no effect."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from recipes.lib.settings import load
from recipes.lib.values import Refused
from recipes.question_generation.__main__ import QUESTION_GENERATION
from recipes.question_generation.settings import Settings


def settings(preset: str = "small", **given: str) -> Settings:
    return load(QUESTION_GENERATION, preset, given={name.replace("__", "."): value for name, value in given.items()})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"dataset": "no-such"}, "--dataset no-such: no such file or folder; there are: squad, cmrc, builtin"),
        ({"train_set": "x.json"}, "--train-set names a file of a FOLDER of your questions"),
        ({"freeze_encoder": "true"}, "--freeze-encoder is for --encoder DIR"),
        ({"encoder": "bert", "cased": "true"}, "--tokenizer and --cased are for --encoder scratch"),
        ({"train__encoder-from": "bert"}, "decided by --encoder"),
        ({"train__no-copy": "true"}, "decided by --copy"),
        ({"train__max-source-positions": "9"}, "decided by --longest"),
        ({"generate__path": "x"}, "decided by --output"),
        ({"generate__post-process": "x"}, "decided by the pieces of the prepared questions"),
        ({"vocabulary": "1"}, "--vocabulary is 1: 5 or more"),
        ({"longest": "43"}, "--longest 43 leaves no room behind --longest-answer 40"),
        ({"pos_enc": "xk"}, "no position encoding 'xk'"),
    ],
)
def test_what_is_refused(given: dict[str, str], message: str) -> None:
    with pytest.raises(Refused, match=message):
        settings(**given)


@pytest.mark.parametrize(
    ("made", "given", "message"),
    [
        ("questions.json", {"bad": "skip"}, "--bad has no effect: the questions of .* are prepared, see its questions"),
        ("questions.json", {"context": "sentence"}, "--context has no effect"),
        ("questions.json", {"tokenizer": "chars"}, "--tokenizer has no effect"),
        ("questions.json", {"cased": "true"}, "--cased has no effect"),
        ("questions.json", {"vocabulary": "900"}, "--vocabulary has no effect"),
        ("questions.json", {"longest_answer": "9"}, "--longest-answer has no effect"),
        ("questions.json", {"workers": "2"}, "--workers has no effect"),
        ("questions.json", {"limit": "600"}, "--limit has no effect"),
        ("src-train.txt", {"longest_answer": "9"}, "--longest-answer has no effect: the lines of .* have no answers"),
        ("src-train.txt", {"context": "paragraph"}, "--context has no effect: the lines of .* are sentences"),
        ("train.json", {"raw": "x"}, "--raw has no effect: nothing is fetched for --dataset"),
        ("train.json", {"numbers_of": "cmrc"}, "--numbers-of has no effect: it keeps squad and cmrc apart"),
        ("train.json", {"encoder": "bert", "vocabulary": "900"}, "--vocabulary has no effect: the pieces are those of"),
    ],
)
def test_settings_without_effect_are_refused_where_they_are_named(
    made: str, given: dict[str, str], message: str, tmp_path: Path
) -> None:
    (tmp_path / made).write_text("{}")
    with pytest.raises(Refused, match=message):
        settings("smoke", dataset=str(tmp_path), **given)
    own = tmp_path / "own.toml"
    own.write_text("\n".join(f"{name} = {json.dumps(read(text))}" for name, text in given.items()))
    with pytest.raises(Refused, match=message):
        load(QUESTION_GENERATION, "smoke", own, given={"dataset": str(tmp_path)})
    for preset in QUESTION_GENERATION.presets():  # presets may name all settings
        settings(preset, dataset=str(tmp_path), limit="0", cased="false")


def read(text: str) -> object:
    return int(text) if text.isdigit() else {"true": True}.get(text, text)
