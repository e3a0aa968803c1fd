"""Test that the error messages that docs/troubleshooting.md explains occur in the source code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
MESSAGES = re.findall(r"^### `(.+)`$", PAGE, re.MULTILINE)
#: This mark replaces texts that an f-string inserts, and texts that differ between two cases of a message on the page.
ANY = "…"
#: Messages of Python, with the file of fairseq that contains the name in them.
OF_PYTHON = {
    "KeyError: \"'_name'\"": "models/__init__.py",
    "ModuleNotFoundError: No module named 'torch'": "utils.py",
}
#: Messages of fairseq, with the file that contains them.
OF_FAIRSEQ = {
    "samples have invalid sizes and will be skipped": "tasks/fairseq_task.py",
    "Model file not found": "checkpoint_utils.py",
    "the BLEU score is computed on BPE tokens": "../fairseq_cli/generate.py",
}


@cache
def texts() -> tuple[str, ...]:
    """Return every string of the Python code, and the shell scripts."""
    folders = [ROOT / name for name in ("fairseq_posenc", "recipes", "data-bin-scripts")]
    code = [text for folder in folders for path in folder.rglob("*.py") for text in strings(path.read_text("utf-8"))]
    return (*code, *(path.read_text("utf-8") for folder in folders for path in folder.rglob("*.sh")))


def strings(code: str) -> Iterator[str]:
    """Yield the strings of Python code except for docstrings, with `ANY` for what an f-string inserts."""
    nodes = list(ast.walk(ast.parse(code)))
    docstrings = {node.value for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else ANY for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in docstrings:
            yield node.value


def occurs(message: str, sources: tuple[str, ...]) -> bool:
    """Return whether one of the sources contains the fixed parts of the message in this order."""
    pattern = re.compile(".{0,400}?".join(re.escape(part) for part in message.split(ANY)))
    return any(pattern.search(source) for source in sources)


@pytest.mark.parametrize("message", MESSAGES)
def test_the_code_has_the_message(message: str) -> None:
    if file := OF_PYTHON.get(message):
        (fairseq,) = find_spec("fairseq").submodule_search_locations  # type: ignore[union-attr]
        assert message.partition("'")[2].strip("'\"") in (Path(fairseq) / file).read_text("utf-8")
    elif file := OF_FAIRSEQ.get(message):
        (fairseq,) = find_spec("fairseq").submodule_search_locations  # type: ignore[union-attr]
        assert message in (Path(fairseq) / file).read_text("utf-8")
    else:
        assert len(message.replace(ANY, "").strip()) >= 10, "the message is too short to be searched for"
        assert occurs(message, texts())


def test_the_page_explains_many_messages_once() -> None:
    assert len(MESSAGES) == len(set(MESSAGES)) > 40


def test_a_message_that_no_code_has_is_found() -> None:
    code = "def f():\n    'Say that the width must be odd.'\n    raise E(f'the width {x} must be a multiple of {y}')"
    sources = tuple(strings(code))
    assert occurs("the width … must be a multiple of …", sources)
    assert not occurs("the width must be odd", sources)
    assert not occurs("must be a multiple of the width …", sources)
