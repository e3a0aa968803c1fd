"""Test that fairseq evaluates literals only, and that this holds wherever its source evaluates text."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fairseq")

import fairseq

from fairseq_posenc.compat import literals, safe_load

pytestmark = pytest.mark.filterwarnings("ignore:invalid escape sequence:SyntaxWarning")
SOURCE = Path(fairseq.__file__).parent


def modules_that_call(*names: str) -> dict[str, dict[str, Any]]:
    """Return what is in each module of fairseq that calls one of these functions, but not as a method."""
    found = {}
    for path in SOURCE.rglob("*.py"):
        place, text = path.relative_to(SOURCE).as_posix(), path.read_text("utf-8")
        if not place.startswith("examples/") and any(f"{name}(" in text for name in names):
            calls = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call))
            if any(ast.unparse(node.func) in names for node in calls):
                module = f"fairseq.{place.removesuffix('.py').replace('/', '.')}"
                found[module] = vars(importlib.import_module(module))
    return found


def test_every_module_of_fairseq_that_evaluates_text_evaluates_literals() -> None:
    modules = modules_that_call("eval", "exec")
    assert len(modules) > 10
    assert not [name for name, names in modules.items() if names["eval"] is not literals.literal]


def test_every_module_of_fairseq_that_loads_files_loads_plain_data() -> None:
    """In distributed.utils, fairseq loads what other processes of the same training send."""
    modules = modules_that_call("torch.load")
    assert len(modules) > 5
    del modules["fairseq.distributed.utils"]
    assert not [name for name, names in modules.items() if names["torch"].load is not safe_load]


@pytest.mark.parametrize(
    "text", ["(0.9, 0.98)", "[(512, 3)] * 2 + [(1, 2)]", " True ", "-1e-3", "{'name': 'x'}", "'a'"]
)
def test_literals_are_evaluated_as_python_does(text: str) -> None:
    assert literals.literal(text) == eval(text.strip())  # noqa: S307  the built-in, to compare with


@pytest.mark.parametrize(
    "text",
    [
        "[open('FILE','w'),(64,3)]",
        "__import__('os').system('true')",
        "[x for x in (1, 2)]",
        "[1] * len('a')",
        "[0] * 9999999999",
        "f'{1}'",
        "os",
        "",
        "(" * 999,
    ],
)
def test_other_code_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a literal"):
        literals.literal(text)
