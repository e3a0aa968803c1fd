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


def files_that_call(*names: str) -> set[str]:
    """Return the files of fairseq that call one of these functions, but not as a method."""
    found = set()
    for path in SOURCE.rglob("*.py"):
        place, text = path.relative_to(SOURCE).as_posix(), path.read_text("utf-8")
        if not place.startswith("examples/") and any(f"{name}(" in text for name in names):
            calls = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call))
            if any(ast.unparse(node.func) in names for node in calls):
                found.add(place)
    return found


def contents(file: str) -> dict[str, Any]:
    return vars(importlib.import_module(f"fairseq.{file.removesuffix('.py').replace('/', '.')}"))


def test_every_module_of_fairseq_that_evaluates_text_evaluates_literals() -> None:
    files = files_that_call("eval", "exec")
    assert len(files) > 10
    assert not [file for file in files if contents(file)["eval"] is not literals.literal]


def test_every_module_of_fairseq_that_loads_files_loads_plain_data() -> None:
    """In distributed/utils.py, fairseq loads what other processes of the same training send."""
    files = files_that_call("torch.load") - {"distributed/utils.py"}
    assert len(files) > 4
    assert not [file for file in files if contents(file)["torch"].load is not safe_load]


def test_no_other_file_of_fairseq_unpickles_or_starts_programs() -> None:
    """No file of data and no option reaches the calls in these files as code."""
    assert files_that_call("pickle.load", "pickle.loads", "yaml.load", "yaml.unsafe_load") == {
        "distributed/utils.py",
        "data/audio/data_cfg.py",  # with yaml.FullLoader, which builds plain data
    }
    programs = ("system", "popen", "Popen", "call", "run", "check_output", "check_call")
    assert files_that_call(*(f"{module}.{name}" for module in ("os", "subprocess") for name in programs)) == {
        "data/fasta_dataset.py",  # passes a path to a shell; `literals` refuses such paths
        "data/plasma_utils.py",  # starts plasma_store, without a shell
        "distributed/utils.py",  # asks Slurm for its hosts
        "tasks/audio_pretraining.py",  # runs --post-save-script, which the command line of a training gives
    }


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
