"""Test which classes a checkpoint may name, and that fairseq's own source agrees with these lists."""

from __future__ import annotations

import argparse
import ast
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fairseq")

import fairseq
from fairseq import utils
from fairseq.criterions import CRITERION_REGISTRY
from fairseq.models import MODEL_REGISTRY
from fairseq.tasks import TASK_REGISTRY
from omegaconf import OmegaConf

from fairseq_posenc.compat import UnsafeCheckpointError, checkpoint_names
from fairseq_posenc.compat.registration import register

register()

SOURCE = Path(fairseq.__file__).parent
REGISTRIES = {"model": MODEL_REGISTRY, "task": TASK_REGISTRY, "criterion": CRITERION_REGISTRY}


# -- fairseq's source


def calls(path: Path) -> set[str]:
    """Return the names of all functions and methods that a file calls."""
    tree = ast.parse(path.read_text("utf-8"))
    functions = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return {function.id if isinstance(function, ast.Name) else getattr(function, "attr", "") for function in functions}


def stock_files() -> Iterator[Path]:
    """Yield the files of all classes on the list, of their bases, and of the layers of their models."""
    classes = [REGISTRIES[part][name] for part, names in checkpoint_names.STOCK.items() for name in names]
    for base in {base for cls in classes for base in cls.__mro__ if "fairseq" in base.__module__}:
        yield Path(inspect.getfile(base))
    for folder in ("modules", "models/transformer", "models/roberta", "models/bart"):
        yield from (SOURCE / folder).glob("*.py")
    yield SOURCE / "utils.py"


def test_stock_classes_evaluate_only_where_literals_are_evaluated() -> None:
    evaluating = {path for path in stock_files() if {"eval", "exec"} & _plain_calls(path)}
    modules = [importlib.import_module(name) for name in checkpoint_names.EVALUATING]
    assert evaluating == {Path(inspect.getfile(module)) for module in modules}
    assert all(vars(module)["eval"] is checkpoint_names.literal for module in modules)


def _plain_calls(path: Path) -> set[str]:
    """Return the names of the functions that a file calls; `model.eval()` is a method."""
    tree = ast.parse(path.read_text("utf-8"))
    return {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}


def test_no_stock_class_starts_programs_or_unpickles() -> None:
    dangerous = {"system", "popen", "Popen", "call", "check_output", "check_call", "instantiate"}
    for path in {path for path in stock_files() if path.parent.name != "modules"}:
        assert not calls(path) & dangerous, path


@pytest.mark.parametrize("part", checkpoint_names.STOCK)
def test_stock_names_are_fairseqs(part: str) -> None:
    assert checkpoint_names.STOCK[part] <= REGISTRIES[part].keys()


# -- literals


@pytest.mark.parametrize("text", ["(0.9, 0.98)", "[(512, 3), (1, 2)]", " True ", "-1e-3", "{'name': 'x'}", "'a'"])
def test_literals_are_evaluated_as_python_does(text: str) -> None:
    assert checkpoint_names.literal(text) == eval(text.strip())  # noqa: S307  the built-in, to compare with


@pytest.mark.parametrize(
    "text",
    [
        "[open('FILE','w'),(64,3)]",
        "__import__('os').system('true')",
        "[x for x in (1, 2)]",
        "f'{1}'",
        "os",
        "",
        "(" * 999,
    ],
)
def test_other_code_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a literal"):
        checkpoint_names.literal(text)


def test_helpers_of_fairseq_evaluate_as_before() -> None:
    assert utils.eval_str_list("[100, 200]", type=int) == [100, 200]
    assert utils.eval_str_list("3", type=int) == [3]
    assert utils.eval_str_dict("{'a': 1}") == {"a": 1}
    assert [utils.eval_bool("True"), utils.eval_bool("0"), utils.eval_bool(None, True)] == [True, False, True]
    assert utils.eval_bool(True, default=False) is False  # the default for all but strings, as in fairseq
    with pytest.raises(ValueError, match="was not evaluated"):
        utils.eval_str_list("open('FILE', 'w')")


# -- names


def configuration(**changes: Any) -> Any:
    parts = {"model": {"_name": "transformer"}, "task": {"_name": "translation"}, "criterion": {"_name": "masked_lm"}}
    return OmegaConf.create({**parts, **changes}, flags={"allow_objects": True})


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"criterion": None},
        {"model": {"_name": "transformer_iwslt_de_en"}},
        {"model": {"_name": "posenc_roberta_base"}, "task": {"_name": "posenc_squad"}, "criterion": {"_name": "squad"}},
        {"model": argparse.Namespace(_name="lstm", arch="lstm", encoder_layers="[(64, 3)]")},
        {"model": {"_name": "a_model_of_somebody"}},
    ],
)
def test_harmless_configurations_pass(changes: dict[str, Any]) -> None:
    checkpoint_names.refuse_names(configuration(**changes), "a.pt")
    checkpoint_names.refuse_names(None, "a.pt")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"model": {"_name": "fconv"}}, "the model 'fconv'"),
        ({"model": {"_name": "fconv_iwslt_de_en"}}, "the model 'fconv_iwslt_de_en'"),
        ({"model": {"fconv": {"encoder_layers": "[]"}}}, "the model 'fconv'"),
        ({"model": {"_name": None, "arch": "wav2vec2"}}, "the model 'wav2vec2'"),
        ({"model": argparse.Namespace(_name="transformer", arch="fconv")}, "the model 'fconv'"),
        ({"model": {"_name": "${other}"}, "other": "fconv"}, "the model 'fconv'"),
        ({"task": {"_name": "audio_pretraining"}}, "the task 'audio_pretraining'"),
        ({"task": {"_name": "translation", "task": "audio_pretraining"}}, "the task 'audio_pretraining'"),
        ({"criterion": {"_name": "ctc"}, "model": {"_name": "fconv"}}, "the model 'fconv' and the criterion 'ctc'"),
        ({"criterion": "ctc"}, "the criterion 'ctc'"),
    ],
)
def test_other_classes_of_fairseq_are_refused_by_name(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(UnsafeCheckpointError, match=f"a.pt: the file is refused, because it names {words}"):
        checkpoint_names.refuse_names(configuration(**changes), "a.pt")


def test_a_model_of_a_user_may_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only classes of fairseq may run options as code; those of a --user-dir are the user's own."""
    monkeypatch.setitem(MODEL_REGISTRY, "mine", type("Mine", (), {"__module__": "my_models"}))
    checkpoint_names.refuse_names(configuration(model={"_name": "mine"}), "a.pt")
    monkeypatch.setitem(MODEL_REGISTRY, "theirs", type("Theirs", (), {"__module__": "fairseq.models.fconv"}))
    with pytest.raises(UnsafeCheckpointError):
        checkpoint_names.refuse_names(configuration(model={"_name": "theirs"}), "a.pt")
