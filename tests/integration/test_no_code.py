"""No checkpoint runs code, whatever its form, in any function and any command that loads it.

tests/compat/test_literals.py shows that every module of fairseq loads plain data and evaluates literals only.
"""

from __future__ import annotations

import ast
import contextlib
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq import checkpoint_utils
from fairseq.data.fasta_dataset import FastaDataset
from fairseq.models import fconv
from support_payload import malicious

import fairseq_posenc
from fairseq_posenc.compat import UnsafeCheckpointError, safe_load

from . import support
from .support import ROOT


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    """Return the file that shows that code has run."""
    return tmp_path / "written"


PICKLES = ("zip", "zip, protocol 4", "old format", "pickle")
CONFIGURATION = "configuration"


def attack(form: str, trained: Path, path: Path, mark: Path) -> Path:
    """Write a checkpoint that writes the file `mark` if its pickle is loaded, or its options are evaluated."""
    state = safe_load(trained / "checkpoint_last.pt")
    if form == CONFIGURATION:  # plain data for a real attack: fairseq/models/fconv.py:123 evaluates `encoder_layers`
        state["cfg"]["model"].update(_name="fconv", encoder_layers=f"[open({str(mark)!r},'w'),(64,3)]")
        torch.save(state, path)
    else:
        path.write_bytes(malicious(mark, state)[form])
    return path


#: Functions that load a checkpoint from a path or an open file.
LOADERS: list[Callable[[Path], Any]] = [
    lambda path: checkpoint_utils.load_checkpoint_to_cpu(str(path)),
    lambda path: checkpoint_utils.load_ema_from_checkpoint(str(path)),
    fairseq_posenc.load,
    safe_load,
    lambda path: safe_load(path, mmap=True),
    lambda path: safe_load(path.open("rb")),
]


@pytest.mark.parametrize("form", PICKLES)
def test_no_function_runs_a_pickle(
    form: str, trained: Path, tmp_path: Path, mark: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")  # also if torch is set not to check
    path = attack(form, trained, tmp_path / "evil.pt", mark)
    for load in LOADERS:
        with pytest.raises(UnsafeCheckpointError, match=r"evil\.pt: the file is refused"):
            load(path)
    assert not mark.exists()
    with contextlib.suppress(Exception):  # the plain pickle is no file of torch
        torch.load(path, weights_only=False)
    if form == "pickle":
        pickle.loads(path.read_bytes())
    assert mark.exists(), "the file does not run code where nothing looks"


def test_an_object_that_is_not_listed_is_named(tmp_path: Path) -> None:
    torch.save({"model": {}, "extra_state": shutil.rmtree}, tmp_path / "other.pt")
    with pytest.raises(UnsafeCheckpointError, match=r"other\.pt: .*rmtree"):
        safe_load(tmp_path / "other.pt")


# -- commands


#: By command of fairseq that loads a checkpoint, further options.
COMMANDS: dict[str, list[Any]] = {
    "generate": [],
    "interactive": ["--input", "/dev/null"],
    "validate": ["--task", "translation", "--max-tokens", 200],
    "eval_lm": [],
}


@pytest.mark.parametrize("form", ["zip", CONFIGURATION])
@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_runs_code(command: str, form: str, trained: Path, data: Path, tmp_path: Path, mark: Path) -> None:
    path = attack(form, trained, tmp_path / "evil.pt", mark)
    shutil.copytree(data, tmp_path / "data")
    shutil.copy(data / "dict.en.txt", tmp_path / "data" / "dict.txt")  # for fairseq-eval-lm
    with pytest.raises((Exception, SystemExit)) as error:  # fairseq has errors of many kinds
        support.evaluate(command, tmp_path / "data", path, *COMMANDS[command])
    assert not mark.exists()
    assert form != "zip" or "evil.pt: the file is refused" in str(error.value)


#: Functions that run code of the file or the text that they get.
RUNNING = {f"{module}.{name}" for module in ("torch", "pickle", "yaml", "joblib", "dill") for name in ("load", "loads")}
RUNNING |= {"pickle.Unpickler", "yaml.unsafe_load", "torch.hub.load", "eval", "exec"}


def test_every_command_and_recipe_loads_files_by_these_functions() -> None:
    """No other module unpickles or evaluates text, so what the commands above show holds for all."""
    calls = set()
    for folder in ("fairseq_posenc", "recipes", "data-bin-scripts"):
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                names = {ast.unparse(node.func)} if isinstance(node, ast.Call) else set()
                if isinstance(node, ast.ImportFrom):  # the function by another name
                    names = {f"{node.module}.{one.name}" for one in node.names}
                if names & RUNNING:
                    calls.add(f"{path.name}: {ast.unparse(node)}")
    (call,) = calls
    assert call.startswith("checkpoints.py: torch.load(")
    assert "weights_only=True" in call


def test_the_configuration_works_where_nothing_looks(
    trained: Path, data: Path, tmp_path: Path, mark: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fconv, "eval", eval)
    with pytest.raises(TypeError):
        support.evaluate("generate", data, attack(CONFIGURATION, trained, tmp_path / "evil.pt", mark))
    assert mark.exists()


def test_no_file_name_reaches_a_shell(trained: Path, data: Path, tmp_path: Path, mark: Path) -> None:
    """`--dataset-impl fasta` runs `cat {path} | ...`; the enum may also be written Choices.fasta."""
    state = safe_load(trained / "checkpoint_last.pt")
    state["cfg"]["task"].update(dataset_impl="Choices.fasta", target_lang=f"de;touch {mark};")
    torch.save(state, tmp_path / "evil.pt")
    with pytest.raises(Exception):  # noqa: B017, PT011  the files of this language do not exist
        support.evaluate("validate", data, tmp_path / "evil.pt", *COMMANDS["validate"])
    (tmp_path / "a;touch written;.fasta").write_text(">one\nAB\n")
    with pytest.raises(ValueError, match="pass this path to a shell"):
        FastaDataset(str(tmp_path / "a;touch written;"))
    assert not mark.exists()
