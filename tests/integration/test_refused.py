"""Test that models and tasks refuse what cannot be when they are built, and name the flag and the cure."""

from __future__ import annotations

import dataclasses
import tomllib
from pathlib import Path
from typing import Any

import pytest
import support_questions

from fairseq_posenc.models import config

from . import lm, masked_lm, support

TABLE: dict[str, dict[str, str]] = tomllib.loads(Path(__file__).with_name("refused.toml").read_text("utf-8"))


@pytest.fixture(scope="module")
def folders(corpora: dict[Any, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[Any, Path]:
    """Return the corpus of each module that builds models."""
    questions = support_questions.write_questions(tmp_path_factory.mktemp("questions") / "prepared")
    return {**corpora, support_questions: questions}


#: By task: the module that builds its models, and other arguments of the builder.
BUILDERS: dict[str, tuple[Any, dict[str, Any]]] = {
    "translation": (support, {}),
    "language_modeling": (lm, {"task": lm.STOCK_TASK}),
    "posenc_lm_memory": (lm, {}),
    "posenc_masked_lm": (masked_lm, {}),
    "masked_lm": (masked_lm, {"task": masked_lm.STOCK_TASK}),
    "posenc_question_generation": (support_questions, {}),
}


@pytest.mark.parametrize(
    ("task", "flags", "message"), [(task, *row) for task in BUILDERS for row in TABLE[task].items()]
)
def test_what_cannot_be_is_refused_with_its_flag(task: str, flags: str, message: str, folders: dict[Any, Path]) -> None:
    module, parts = BUILDERS[task]
    with pytest.raises(ValueError, match=message):
        module.built(folders[module], *flags.split(), **parts)


def test_every_refused_option_of_translation_is_in_the_table() -> None:
    names = {field.name for field in dataclasses.fields(config.TransformerPosEncConfig)}
    refused = {config.flag(name) for name in config.REFUSED_IN_TRANSLATION.keys() & names}
    assert refused <= {flags.split()[0] for flags in TABLE["translation"]}
