"""Test that the messages that docs/troubleshooting.md explains occur in the code of fairseq or Python."""

from __future__ import annotations

import dataclasses
import re
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
#: Messages, with the file of fairseq that contains them, or the name in them.
OF_FAIRSEQ = {
    "KeyError: \"'_name'\"": "models/__init__.py",
    "ModuleNotFoundError: No module named 'torch'": "utils.py",
    "samples have invalid sizes and will be skipped": "tasks/fairseq_task.py",
    "the BLEU score is computed on BPE tokens": "../fairseq_cli/generate.py",
}
OF_PYTHON = "mutable default … is not allowed: use default_factory"


@pytest.mark.parametrize("message", OF_FAIRSEQ)
def test_fairseq_has_the_message(message: str) -> None:
    (fairseq,) = find_spec("fairseq").submodule_search_locations  # type: ignore[union-attr]
    named = message.partition("'")[2].strip("'\"") if "Error:" in message else message.removesuffix("…")
    assert named in (Path(fairseq) / OF_FAIRSEQ[message]).read_text("utf-8")


def test_python_has_the_message() -> None:
    with pytest.raises(ValueError, match=OF_PYTHON.replace("…", ".*")):
        dataclasses.make_dataclass("Wrong", [("values", list, dataclasses.field(default=[]))])


def test_the_page_explains_these_messages_once() -> None:
    assert re.findall(r"^### `(.+)`$", PAGE, re.MULTILINE).count(OF_PYTHON) == 1
    assert {*re.findall(r"^### `(.+)`$", PAGE, re.MULTILINE)} == {*OF_FAIRSEQ, OF_PYTHON}
