"""Test which names and options a checkpoint's configuration may contain, and which options fairseq evaluates."""

from __future__ import annotations

import argparse
import ast
import importlib
import inspect
import os
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fairseq")

import fairseq
from fairseq import utils
from fairseq.criterions import CRITERION_REGISTRY
from fairseq.models import MODEL_REGISTRY
from fairseq.registry import REGISTRIES as REGISTRIES_OF_FAIRSEQ
from fairseq.tasks import TASK_REGISTRY

from fairseq_posenc import compat
from fairseq_posenc.compat import checkpoint_names, literals

compat.apply()

SOURCE = Path(fairseq.__file__).parent
REGISTRIES = {"model": MODEL_REGISTRY, "task": TASK_REGISTRY, "criterion": CRITERION_REGISTRY}


def calls(path: Path) -> Iterator[ast.Call]:
    return (node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Call))


# -- strings that fairseq evaluates


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("(0.9, 0.98)", (0.9, 0.98)),
        ("[(512, 3)] * 20", [(512, 3)] * 20),
        ("[(512, 10, 5)] + [(512, 3, 2)] * 4 + [(512,2,2)]", [(512, 10, 5), *[(512, 3, 2)] * 4, (512, 2, 2)]),
        ("2 * [1]", [1, 1]),
        (" True ", True),
        ("-1e-3", -1e-3),
        ("1e-3 * 0.5", 5e-4),
        ("4 - 1 / 2", 3.5),
        ("{'name': 'scaled_dot_product'}", {"name": "scaled_dot_product"}),
    ],
)
def test_literals_are_evaluated_as_python_does(text: str, value: Any) -> None:
    assert literals.literal(text) == value == eval(text.strip())  # noqa: S307  the built-in, to compare with


@pytest.mark.parametrize(
    "text",
    [
        "[open('FILE','w'),(64,3)]",
        "__import__('os').system('true')",
        "[x for x in (1, 2)]",
        "(lambda: 1)()",
        "[1] * 10**9",
        "[0] * 100000",
        "'a' * 3",
        "2 ** 3",
        "1 / 0",
        "f'{1}'",
        "os",
        "",
        "(" * 2000,
        "[" * 300 + "]" * 300,
    ],
)
def test_other_code_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a literal"):
        literals.literal(text)


def test_every_evaluation_in_fairseq_is_restricted() -> None:
    """Fail if a module of fairseq calls `eval` and is not on the list."""
    evaluating = [
        ".".join(("fairseq", *path.relative_to(SOURCE).with_suffix("").parts))
        for path in sorted(SOURCE.rglob("*.py"))
        if "examples" not in path.relative_to(SOURCE).parts
        and any(isinstance(call.func, ast.Name) and call.func.id in ("eval", "exec") for call in calls(path))
    ]
    assert evaluating == sorted(literals.MODULES)
    for name in evaluating:
        assert vars(importlib.import_module(name))["eval"] is literals.literal, name


def test_helpers_of_fairseq_evaluate_as_before() -> None:
    assert utils.eval_str_list("[100, 200]", type=int) == [100, 200]
    assert utils.eval_str_list("3", type=int) == [3]
    assert utils.eval_str_dict("{'a': 1}") == {"a": 1}
    assert [utils.eval_bool("True"), utils.eval_bool("0"), utils.eval_bool(None, True)] == [True, False, True]
    assert utils.eval_bool(True, default=False) is False  # the default for all but strings, as in fairseq
    with pytest.raises(ValueError, match="was not evaluated"):
        utils.eval_str_list("open('FILE', 'w')")


def evaluated_options(path: Path) -> set[str]:
    """Return the attributes in calls of `eval` and of fairseq's helpers that evaluate."""
    options = set()
    for call in calls(path):
        name = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
        if name in ("eval", "eval_str_list", "eval_str_dict", "eval_bool") and call.args:
            options |= {node.attr for node in ast.walk(call.args[0]) if isinstance(node, ast.Attribute)}
            options |= {node.id for node in ast.walk(call.args[0]) if isinstance(node, ast.Name)} - {"args", "cfg", "x"}
    return options


def stock_files() -> set[Path]:
    """Return the files of all classes on the list and of their bases."""
    classes = [REGISTRIES[part][name] for part, names in checkpoint_names.STOCK.items() for name in names]
    return {Path(inspect.getfile(base)) for cls in classes for base in cls.__mro__ if "fairseq" in base.__module__}


def test_options_that_stock_names_evaluate_are_known() -> None:
    """Search the files of their layers, too."""
    files = stock_files()
    files |= {*(SOURCE / "modules").glob("*.py"), *(SOURCE / "models" / "transformer").glob("*.py")}
    files |= {*(SOURCE / "models" / "roberta").glob("*.py"), *(SOURCE / "models" / "bart").glob("*.py")}
    assert set.union(*map(evaluated_options, files)) - {"self"} == checkpoint_names.EVALUATED


def test_no_stock_name_starts_programs_or_unpickles() -> None:
    dangerous = {"system", "popen", "Popen", "call", "check_output", "check_call", "instantiate"}
    classes = [REGISTRIES[part][name] for part, names in checkpoint_names.STOCK.items() for name in names]
    for path in {
        Path(inspect.getfile(base)) for cls in classes for base in cls.__mro__ if "fairseq" in base.__module__
    }:
        assert not {getattr(call.func, "attr", "") for call in calls(path)} & dangerous, path


# -- names


@pytest.mark.parametrize("part", checkpoint_names.STOCK)
def test_stock_names_are_fairseqs(part: str) -> None:
    assert checkpoint_names.STOCK[part] <= REGISTRIES[part].keys()


def harmless(**changes: Any) -> dict[str, Any]:
    parts = {"model": {"_name": "transformer"}, "task": {"_name": "translation"}, "criterion": {"_name": "masked_lm"}}
    return {"cfg": {**parts, **changes}}


@pytest.mark.parametrize(
    "state",
    [
        None,
        [1],
        {"model": {}},
        {"args": None, "cfg": None},
        harmless(),
        harmless(criterion=None),
        harmless(model={"_name": "transformer_iwslt_de_en"}),
        harmless(model={"_name": "posenc_roberta_base"}, task={"_name": "posenc_squad"}, criterion={"_name": "squad"}),
        harmless(model={"_name": "lstm", "decoder_attention": "1", "adaptive_softmax_cutoff": "10,20"}),
        harmless(model={"_name": "transformer_lm", "character_filters": "[(1, 64), (2, 128)]"}),
        harmless(model=argparse.Namespace(_name="lstm", arch="lstm", encoder_layers="[(64, 3)]")),
        {"args": argparse.Namespace(arch="roberta_large", task="masked_lm", criterion="masked_lm")},
    ],
)
def test_harmless_configurations_pass(state: Any) -> None:
    assert checkpoint_names.offence(state) is None


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (harmless(model={"_name": "fconv"}), "the model 'fconv'"),
        (harmless(model={"_name": "fconv_iwslt_de_en"}), "the model 'fconv_iwslt_de_en'"),
        (harmless(model={"fconv": {"encoder_layers": "[]"}}), "the model 'fconv'"),
        (harmless(model={"_name": None, "arch": "wav2vec2"}), "the model 'wav2vec2'"),
        (harmless(model=argparse.Namespace(_name="transformer", arch="fconv")), "the model 'fconv'"),
        (harmless(task={"_name": "audio_pretraining"}), "the task 'audio_pretraining'"),
        (harmless(task={"_name": "translation", "task": "audio_pretraining"}), "the task 'audio_pretraining'"),
        (harmless(criterion={"_name": "ctc"}), "the criterion 'ctc'"),
        (harmless(criterion="ctc"), "the criterion 'ctc'"),
        (harmless(model={"_name": ["fconv"]}), "fconv"),
        ({"args": argparse.Namespace(arch="fconv", task="translation")}, "the model 'fconv'"),
        ({"args": argparse.Namespace(arch="lstm", task="audio_pretraining")}, "the task 'audio_pretraining'"),
        ({"args": argparse.Namespace(arch="lstm", task="translation", criterion="ctc")}, "the criterion 'ctc'"),
        ({"args": None, **harmless(model={"_name": "someones_model"})}, "perhaps its --user-dir is missing"),
        (harmless(common={"user_dir": "${oc.env:SECRET}"}), "user_dir = '${oc.env:SECRET}'"),
        (harmless(task={"_name": "translation", "dataset_impl": "fasta"}), "file names to a shell"),
        (harmless(model={"_name": "transformer", "adaptive_softmax_cutoff": "open('F')"}), "would run as Python"),
        (harmless(model={"_name": "transformer", "decoder": {"xformers_att_config": "exit()"}}), "would run as Python"),
        (harmless(model=argparse.Namespace(_name="lstm", decoder_attention="exit()")), "would run as Python"),
        ({"args": argparse.Namespace(arch="lstm", decoder_attention="exit()")}, "would run as Python"),
    ],
)
def test_other_configurations_are_refused_by_name(state: Any, words: str) -> None:
    offence = checkpoint_names.offence(state)
    assert offence is not None
    assert words in offence


def with_attributes(**attributes: Any) -> OrderedDict[str, Any]:
    """Return an OrderedDict as a pickle may build it: an empty mapping with attributes, which fairseq would read."""
    mapping: OrderedDict[str, Any] = OrderedDict()
    vars(mapping).update(attributes)
    return mapping


def in_itself() -> dict[str, Any]:
    mapping: dict[str, Any] = {}
    mapping["model"] = mapping
    return mapping


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({"args": with_attributes(arch="fconv", task="translation")}, "OrderedDict with attributes"),
        (harmless(model=with_attributes(_name="fconv")), "OrderedDict with attributes"),
        ({"cfg": "{model: {_name: fconv}}"}, "should be a mapping of options"),
        ({"cfg": in_itself()}, "contains itself"),
        ({"args": argparse.Namespace(arch="lstm", bpe="../../evil")}, "bpe = '../../evil'"),
        ({"args": argparse.Namespace(arch="lstm", home="$\\{oc.env:SECRET}")}, "OmegaConf would insert"),
        (harmless(task={"_name": "translation", "dataset_impl": "Choices.fasta"}), "file names to a shell"),
    ],
)
def test_unusual_forms_are_refused(state: Any, words: str) -> None:
    assert words in (checkpoint_names.offence(state) or "")


def test_an_empty_name_is_not_allowed() -> None:
    assert checkpoint_names.offence(harmless(model={"_name": ""})) is not None


def test_names_in_overrides_are_fairseqs_registries() -> None:
    assert set(REGISTRIES_OF_FAIRSEQ) == checkpoint_names.REGISTRIES


def test_the_refusal_names_the_flag_that_allows() -> None:
    state = harmless(model={"_name": "fconv"}, criterion={"_name": "ctc"})
    refusal = checkpoint_names.offence(state) or ""
    assert "--allow-checkpoint-names fconv,ctc" in refusal
    with checkpoint_names.allowing(["fconv"]):
        assert "--allow-checkpoint-names ctc" in (checkpoint_names.offence(state) or "")
        with checkpoint_names.allowing(["ctc"]):
            assert checkpoint_names.offence(state) is None
    assert checkpoint_names.offence(state) == refusal


def test_the_flag_is_passed_on_to_later_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(checkpoint_names.VARIABLE, "ctc")
    checkpoint_names.allow("fconv,hubert")
    assert os.environ[checkpoint_names.VARIABLE] == "ctc,fconv,hubert"
    assert checkpoint_names.offence(harmless(model={"_name": "fconv"}, criterion={"_name": "ctc"})) is None
    assert checkpoint_names.offence(harmless(task={"_name": "audio_pretraining"})) is not None


def test_without_fairseq_only_listed_names_are_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    """`average` does so in an environment without fairseq, where nothing could be built from the names."""
    monkeypatch.delitem(checkpoint_names.sys.modules, "fairseq_posenc.models")
    own = harmless(model={"_name": "posenc_bert_base"}, task={"_name": "posenc_squad"}, criterion={"_name": "squad"})
    assert checkpoint_names.offence(own) is None
    assert checkpoint_names.offence(harmless()) is None
    assert "the model 'fconv'" in (checkpoint_names.offence(harmless(model={"_name": "fconv"})) or "")
