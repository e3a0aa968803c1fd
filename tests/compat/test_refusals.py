"""Refusals end in one line that says what to change, others keep their traceback, and the commands are quiet."""

from __future__ import annotations

import logging
import re
import warnings
from argparse import Namespace
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("fairseq")

from fairseq import options
from fairseq.distributed import utils as distributed
from fairseq.trainer import Trainer
from torch.utils.data import DataLoader, TensorDataset

from fairseq_posenc import positions
from fairseq_posenc.attention import PathRefusedError
from fairseq_posenc.compat import CheckpointError, quiet, refusals
from fairseq_posenc.compat.data_files import DataError
from fairseq_posenc.compat.divergence import DivergedError
from fairseq_posenc.core.quiet import without
from fairseq_posenc.core.reading import NotTextError
from fairseq_posenc.core.refusal import InputError
from fairseq_posenc.core.writing import NoSpaceError
from fairseq_posenc.encodings import StackShape, build

TRANSFORMER = ["--arch", "posenc_transformer"]
DECODER = StackShape(layers=1, heads=2, dim=8, max_length=8, causal=True, name_flag="--pos-enc")


def refused(*_: Any) -> None:
    build("linformer", None, DECODER)


def faulty(*_: Any) -> None:
    build("linformer", None, None)  # type: ignore[arg-type]


def config(data: str = "", **common: bool) -> Namespace:
    precision = {"cpu": True, "amp": False, "fp16": False, "memory_efficient_fp16": False, "tpu": False}
    precision |= {"fp16_no_flatten_grads": False, **common}
    several = Namespace(distributed_world_size=1, distributed_init_method=None, distributed_no_spawn=False)
    return Namespace(
        distributed_training=several, common=Namespace(**precision), task=Namespace(_name="translation", data=data)
    )


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(refusals.DEBUG, raising=False)
    monkeypatch.setattr(distributed, "infer_init_method", lambda *_: None)


def test_a_refusal_is_one_line_and_a_fault_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SystemExit, match=r"error: --pos-enc linformer does not work in a decoder.*--pos-enc-encoder"):
        distributed.call_main(config(), refused)
    with pytest.raises(AttributeError):
        distributed.call_main(config(), faulty)
    monkeypatch.setenv(refusals.DEBUG, "1")
    with pytest.raises(ValueError, match="does not work in a decoder"):
        distributed.call_main(config(), refused)


def misused(*_: Any) -> None:
    build(3, None, DECODER)  # type: ignore[arg-type]


def of_a_program(*_: Any) -> None:
    positions.Positions.of_tokens(torch.zeros(1, 3), pad=0)


def test_errors_that_the_package_raises_on_misuse_keep_their_traceback() -> None:
    with pytest.raises(TypeError, match="must be a name such as 'rope'"):
        distributed.call_main(config(), misused)
    with pytest.raises(ValueError, match="tokens must be whole numbers"):
        distributed.call_main(config(), of_a_program)


#: A function whose source nobody can read, as in an installation that has no sources.
WITHOUT_SOURCE = """
def run(error):
    if error is not None:
        raise error
    raise InputError("give another value")
"""


def test_the_class_of_an_error_decides_and_not_its_source(tmp_path: Path) -> None:
    names: dict[str, Any] = {"InputError": InputError}
    exec(compile(WITHOUT_SOURCE, str(tmp_path / "missing.py"), "exec"), names)
    with pytest.raises(SystemExit, match="error: give another value"):
        distributed.call_main(config(), lambda *_: names["run"](None))
    full = NoSpaceError(28, "no space", str(tmp_path / "a"))
    refused_errors = [CheckpointError("a.pt"), DataError("b.idx"), DivergedError("c"), PathRefusedError("d"), full]
    for error in (*refused_errors, NotTextError("e"), FileNotFoundError("f")):
        with pytest.raises(SystemExit, match=f"error: {re.escape(str(error))}"):
            distributed.call_main(config(), lambda *_, error=error: names["run"](error))
    for error in (ValueError("a"), TypeError("b"), RuntimeError("c"), OSError("d"), KeyError("e"), AssertionError("f")):
        with pytest.raises(type(error)):
            distributed.call_main(config(), lambda *_, error=error: names["run"](error))


@pytest.mark.parametrize("kind", [ValueError, RuntimeError, FloatingPointError])
def test_python_programs_catch_the_classes_that_they_caught(kind: type[Exception]) -> None:
    classes = {
        ValueError: [InputError, DataError],
        RuntimeError: [CheckpointError],
        FloatingPointError: [DivergedError],
    }
    assert all(issubclass(cls, kind) for cls in classes[kind])  # type: ignore[index]


def test_missing_data_are_named_before_anything_runs(tmp_path: Path) -> None:
    called: list[Any] = []
    with pytest.raises(SystemExit, match=r"the data folder .*nowhere does not exist. Give a folder"):
        distributed.call_main(config(f"{tmp_path}:{tmp_path}/nowhere"), called.append)
    assert not called
    distributed.call_main(config(str(tmp_path)), called.append)
    assert called


def test_a_colon_in_a_path_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """fairseq would look for the folder `12` and report that it has no dict.txt."""
    (tmp_path / "12:30").mkdir()
    (tmp_path / "12:30" / "model.pt").touch()
    message = "12:30.*: the path contains ':', at which fairseq splits a path into several. Choose a path without"
    with pytest.raises(SystemExit, match=f"the data folder .*{message}"):
        distributed.call_main(config(f"{tmp_path}/12:30"), refused)
    monkeypatch.setattr("sys.argv", ["fairseq-generate"])
    cases = [[f"{tmp_path}/12:30", "--path", "m.pt"], [str(tmp_path), "--path", f"{tmp_path}/12:30/model.pt"]]
    for words in cases:
        with pytest.raises(SystemExit, match="2"):
            options.parse_args_and_arch(options.get_generation_parser(), words)
        assert re.search(message, capsys.readouterr().err)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"amp": True}, "--amp has no effect with --cpu"),
        ({"amp": True, "cpu": False}, "--amp has no effect because torch finds no GPU"),
        ({"fp16": True, "cpu": False}, "Give --cpu --fp16-no-flatten-grads or --bf16"),
        ({"fp16": True}, "Give --fp16-no-flatten-grads or --bf16"),
    ],
)
def test_precisions_that_need_a_gpu_are_refused_without_one(
    flags: dict[str, bool], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ValueError, match=message):
        Trainer(config(**flags), None, None, None)
    with pytest.raises(TypeError, match="unhashable"):  # the constructor itself begins
        Trainer(config(fp16=True, fp16_no_flatten_grads=True), None, None, None)


def assert_refused_in_a_line(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that fairseq-train refuses the words, and that the error is one line with this message."""
    monkeypatch.setattr("sys.argv", ["fairseq-train"])
    with pytest.raises(SystemExit, match="2"):
        options.parse_args_and_arch(options.get_training_parser(), ["data", *words])
    (line,) = capsys.readouterr().err.splitlines()
    assert re.search(message, line), line


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--arch", "transformer_tiny", "--pos-enc", "shaw"], "Give --arch posenc_transformer_tiny"),
        (["--arch=lightconv", "--pos-enc-args=clip=3"], "has no --pos-enc-args.*Give one of: .*posenc_roberta_base"),
        (
            ["--arch", "posenc_transformer", "--pos-encc", "shaw"],
            "--pos-encc shaw. --pos-encc; did you mean --pos-enc. --help lists",
        ),
        (
            [*TRANSFORMER, "--max-positions", "512"],
            "Give --max-source-positions and --max-target-positions in place of --max-pos",
        ),
        (
            [*TRANSFORMER, "--tokens-per-sample=512"],
            "Give --max-source-positions and --max-target-positions in place of --tokens-p",
        ),
        (
            ["--arch", "posenc_transformer_lm", "--task", "language_modeling", "--max-positions", "512"],
            "Give --tokens-per-sample and --max-target-positions in place of --max-positions.",
        ),
        (
            ["--arch", "posenc_roberta", "--task", "masked_lm", "--decoder-layers", "2"],
            "Give --encoder-layers in place of --decoder-layers",
        ),
        (
            [*TRANSFORMER, "--mem-length", "3"],
            "--mem-length 3. --mem-length is a flag of --task posenc_lm_memory. --help",
        ),
        (
            [*TRANSFORMER, "--adam-betas", "3"],
            "--adam-betas is a flag of --optimizer adam, --optimizer cpu_adam. --help",
        ),
        (
            [*TRANSFORMER, "--label-smoothing=0.1"],
            "is a flag of --criterion label_smoothed_cross_entropy, .* and others. --help",
        ),
        ([*TRANSFORMER, "--beam", "5"], "--beam is a flag of fairseq-generate. --help"),
    ],
)
def test_flags_that_an_architecture_lacks_are_one_line(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert_refused_in_a_line(words, message, capsys, monkeypatch)


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--max-update", "is a flag of fairseq-train. "),
        ("--pos-enc", "is a flag of fairseq-train --arch posenc_.*, fairseq-train"),
    ],
)
def test_flags_of_another_command_are_named(
    flag: str, message: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["fairseq-generate"])
    with pytest.raises(SystemExit, match="2"):
        options.parse_args_and_arch(options.get_generation_parser(), ["data", flag, "3"])
    assert re.search(message, capsys.readouterr().err)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--arch", "posenc_transfomer_tiny"], r"--arch/-a: invalid choice: 'posenc_transfomer_tiny'; did you mean"),
        (["--task", "posenc_lm_memry"], r"--task: invalid choice: 'posenc_lm_memry'; did you mean posenc_lm_memory\?"),
        (["--arch", "zzzzzzzzzz"], r"invalid choice: 'zzzzzzzzzz' \(choose from .*posenc_roberta_tiny"),
    ],
)
def test_a_misspelt_name_is_refused_with_the_nearest(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """argparse itself lists all names: fairseq has more than 200 architectures."""
    assert_refused_in_a_line(words, message, capsys, monkeypatch)


def test_hydra_says_nothing_about_fairseq() -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        quiet.mend()
        warnings.warn_explicit("The strict flag is deprecated.", UserWarning, "compose.py", 1, module="hydra.compose")
        warnings.warn_explicit(
            "\n'config' is validated against ConfigStore schema", UserWarning, "sys", 1, module="sys"
        )
        warnings.warn_explicit("autocast is deprecated", FutureWarning, "t.py", 1, module="fairseq.tasks.fairseq_task")
        warnings.warn_explicit("something else", UserWarning, "x.py", 1, module="mine")
        warnings.warn_explicit("autocast is deprecated", FutureWarning, "x.py", 1, module="mine")
    assert [str(warning.message) for warning in seen] == ["something else", "autocast is deprecated"]


def test_a_warning_is_hidden_only_while_fairseq_is_imported() -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for hides in (without("`old` is", FutureWarning), nullcontext()):
            with hides:
                warnings.filterwarnings("ignore", "added by an import")
                for text in ("`old` is deprecated", "another", "added by an import"):
                    warnings.warn(text, FutureWarning, stacklevel=1)
    assert [str(warning.message) for warning in seen] == ["another", "`old` is deprecated", "another"]


@pytest.mark.parametrize(("chosen", "level"), [(None, logging.INFO), ("DEBUG", logging.DEBUG)])
def test_commands_show_no_debug_messages(
    chosen: str | None, level: int, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["fairseq-generate", "data-bin"])
    monkeypatch.delenv("LOGLEVEL", raising=False)
    if chosen:
        monkeypatch.setenv("LOGLEVEL", chosen)
    with caplog.at_level(logging.DEBUG), warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        options.parse_args_and_arch(options.get_generation_parser())
        assert logging.getLogger().level == level
        next(iter(DataLoader(TensorDataset(torch.ones(1)), pin_memory=True)))
    assert not seen


def test_a_level_of_the_user_stays(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING), warnings.catch_warnings():
        quiet.in_command()
        assert logging.getLogger().level == logging.WARNING
