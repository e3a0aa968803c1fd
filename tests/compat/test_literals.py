"""Test that fairseq evaluates literals only, and that this holds wherever its source evaluates text."""

from __future__ import annotations

import ast
import functools
import importlib
from pathlib import Path

import pytest

pytest.importorskip("fairseq")

import fairseq
from fairseq import utils

from fairseq_posenc.compat import literals, safe_load

pytestmark = pytest.mark.filterwarnings("ignore:invalid escape sequence:SyntaxWarning")
SOURCE = Path(fairseq.__file__).parent
#: Files of fairseq that start programs, and why no file of data or options reaches them as code.
PROGRAMS = {
    "data/fasta_dataset.py",  # passes a path to a shell; `literals` refuses such paths
    "data/plasma_utils.py",  # starts plasma_store, without a shell
    "distributed/utils.py",  # asks Slurm for its hosts; a test below says where it unpickles
    "tasks/audio_pretraining.py",  # runs --post-save-script, which the command line of a training gives
}


@functools.cache
def calls() -> dict[str, set[str]]:
    """Return by file of fairseq which functions it calls, by themselves or of a module; not as methods."""
    found = {}
    for path in SOURCE.rglob("*.py"):
        place = path.relative_to(SOURCE).as_posix()
        if not place.startswith("examples/"):
            nodes = ast.walk(ast.parse(path.read_text("utf-8")))
            found[place] = {ast.unparse(node.func) for node in nodes if isinstance(node, ast.Call)}
    return found


def files_that_call(*names: str) -> set[str]:
    return {file for file, called in calls().items() if called.intersection(names)}


def test_every_module_of_fairseq_that_evaluates_text_evaluates_literals() -> None:
    evaluating = files_that_call("eval", "exec")
    assert len(evaluating) > 10
    for file in evaluating:
        module = importlib.import_module(f"fairseq.{file.removesuffix('.py').replace('/', '.')}")
        assert vars(module)["eval"] is literals.literal, file


def test_every_module_of_fairseq_that_loads_files_loads_plain_data() -> None:
    """In distributed/utils.py, fairseq loads what other processes of the same training send."""
    loading = files_that_call("torch.load") - {"distributed/utils.py"}
    assert len(loading) > 4
    for file in loading:
        module = importlib.import_module(f"fairseq.{file.removesuffix('.py').replace('/', '.')}")
        assert vars(module)["torch"].load is safe_load, file


def test_no_other_file_of_fairseq_runs_what_it_reads() -> None:
    programs = ("system", "popen", "Popen", "call", "run", "check_output", "check_call")
    assert files_that_call(*(f"{module}.{name}" for module in ("os", "subprocess") for name in programs)) == PROGRAMS
    loading = files_that_call("pickle.load", "pickle.loads", "yaml.load", "yaml.unsafe_load")
    assert loading == {
        "distributed/utils.py",  # what other processes of the same training send
        "data/audio/data_cfg.py",  # with yaml.FullLoader, which builds plain data
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


def test_helpers_of_fairseq_evaluate_as_before() -> None:
    assert utils.eval_str_list("[100, 200]", type=int) == [100, 200]
    assert utils.eval_str_list("3", type=int) == [3]
    assert [utils.eval_bool("True"), utils.eval_bool("0"), utils.eval_bool(None, True)] == [True, False, True]
    with pytest.raises(ValueError, match="was not evaluated"):
        utils.eval_str_list("open('FILE', 'w')")
