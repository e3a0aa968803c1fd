"""Refusals end in one line, others keep their traceback, and flags mean what they say: the faults, then the fixes."""

from __future__ import annotations

import argparse
import logging
import re
import sys
import warnings
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("fairseq")

from fairseq import options, utils
from fairseq.distributed import utils as distributed
from torch.utils.data import DataLoader, TensorDataset

import fairseq_posenc
from fairseq_posenc import compat
from fairseq_posenc.attention import PathRefusedError
from fairseq_posenc.compat import CheckpointError, commands
from fairseq_posenc.compat.training import DivergedError
from fairseq_posenc.core.reading import NotTextError
from fairseq_posenc.core.refusal import InputError
from fairseq_posenc.core.writing import NoSpaceError

PACKAGE = Path(compat.__file__).parents[1]


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(commands.DEBUG, raising=False)
    monkeypatch.setattr(distributed, "infer_init_method", lambda *_: None)
    monkeypatch.setattr(sys, "argv", ["fairseq-train"])  # get_parser looks for --user-dir there


# -- refusals


def config(processes: int = 1) -> Namespace:
    several = {"distributed_init_method": "tcp://127.0.0.1:1" if processes > 1 else None, "distributed_no_spawn": False}
    return Namespace(
        distributed_training=Namespace(distributed_world_size=processes, distributed_rank=0, **several),
        common=Namespace(cpu=True, tpu=False),
    )


def called(function: Callable[[], Any]) -> None:
    distributed.call_main(config(), lambda *_: function())


def raising(error: Exception) -> Callable[[], None]:
    def run() -> None:
        raise error

    return run


#: Errors that end a command with one line, and what the line says.
REFUSALS = [
    (InputError("--lr 3"), "--lr 3"),
    (CheckpointError("a.pt"), r"a\.pt"),
    (DivergedError("b"), "b"),
    (PathRefusedError("c"), "c"),
    (NotTextError("d.txt:1"), r"d\.txt:1"),
    (NoSpaceError(28, "no space", "./e"), r"\./e: the disk is full"),
    (FileNotFoundError(2, "No such file or directory", "dict.txt"), r"dict\.txt: No such file or directory\.$"),
    (IsADirectoryError(21, "Is a directory", "f"), r"f: Is a directory\.$"),
    (ValueError("--finetune-from-model no.pt does not exist"), r"--finetune-from-model no\.pt does not exist$"),
    (OSError("Model file not found: no.pt"), r"Model file not found: no\.pt$"),
]


@pytest.mark.parametrize(("error", "line"), REFUSALS, ids=repr)
def test_an_error_about_what_the_user_gave_is_one_line(
    error: Exception, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SystemExit, match=f"^fairseq-train: error: {line}"):
        called(raising(error))
    monkeypatch.setenv(commands.DEBUG, "1")
    with pytest.raises(type(error)):
        called(raising(error))


@pytest.mark.parametrize("kind", [ValueError, TypeError, RuntimeError, OSError, KeyError, AssertionError])
def test_other_errors_keep_their_traceback(kind: type[Exception]) -> None:
    with pytest.raises(kind):
        called(raising(kind("a")))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--arch", "transformer", "--pos-enc", "shaw"], "--pos-enc shaw. Only architectures whose names begin with"),
        (["--arch", "posenc_transformer", "--pos-encc", "shaw"], "--pos-encc shaw. --pos-encc; did you mean --pos-enc"),
        (["--task", "posenc_lm_memry"], r"--task: invalid choice: 'posenc_lm_memry'; did you mean posenc_lm_memory\?"),
        (["--arch", "zzzzzzzzzz"], r"invalid choice: 'zzzzzzzzzz' \(choose from .*posenc_roberta_tiny"),
    ],
)
def test_a_wrong_command_line_is_refused_in_one_line(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """argparse also prints the usage, and all of fairseq's more than 200 architectures."""
    with pytest.raises(SystemExit, match="2"):
        options.parse_args_and_arch(options.get_training_parser(), ["data", *words])
    (line,) = capsys.readouterr().err.splitlines()
    assert re.search(message, line), line


# -- --bf16


def test_bf16_means_bf16() -> None:
    def parsed(parse: Callable[..., argparse.Namespace], *flags: str) -> argparse.Namespace:
        words = ["data", "--task", "language_modeling", "--arch", "transformer_lm", *flags]
        return parse(options.get_training_parser(), words)

    assert parsed(options.parse_args_and_arch.__wrapped__, "--bf16").tpu  # the fault
    args = parsed(options.parse_args_and_arch, "--bf16")
    assert (args.bf16, args.tpu) == (True, False)
    assert parsed(options.parse_args_and_arch, "--bf16", "--tpu").tpu


# -- several processes


def test_several_processes_without_a_gpu_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    ran: list[Any] = []
    distributed.call_main.__wrapped__(config(2), ran.append)
    assert ran == []  # the fault: nothing ran, and no error was raised
    with pytest.raises(SystemExit, match="--distributed-no-spawn"):
        distributed.call_main(config(2), ran.append)


def test_processes_that_would_train_alone_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("TORCHELASTIC_RUN_ID", "none"), ("WORLD_SIZE", "2")):
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    ran: list[Any] = []
    with pytest.raises(SystemExit, match=r"torchrun started 2 processes.*--distributed-rank R"):
        distributed.call_main(config(), ran.append)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with pytest.raises(SystemExit, match=r"Give --distributed-world-size 2$"):
        distributed.call_main(config(), ran.append)
    monkeypatch.setenv("WORLD_SIZE", "1")
    distributed.call_main(config(), ran.append)
    assert len(ran) == 1


# -- --user-dir


@pytest.fixture
def fresh_memo(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let fairseq forget what it has imported, and find the plain path that other packages have."""
    monkeypatch.setattr(utils.import_user_module, "memo", set(), raising=False)
    monkeypatch.setattr(fairseq_posenc, "__path__", list(fairseq_posenc.__path__))


def user_dir(path: Path | str) -> argparse.Namespace:
    return argparse.Namespace(user_dir=str(path))


@pytest.mark.usefixtures("fresh_memo")
def test_a_second_copy_is_refused_every_time(tmp_path: Path) -> None:
    copy = tmp_path / PACKAGE.name
    copy.mkdir()
    shipped = utils.import_user_module.__wrapped__
    with pytest.raises(ImportError, match="not globally unique"):
        shipped(user_dir(copy))
    shipped(user_dir(copy))  # the fault: the second call ignores it silently
    for _ in range(2):
        with pytest.raises(ImportError, match="another copy") as refusal:
            utils.import_user_module(user_dir(copy))
        assert str(copy) in str(refusal.value)
        assert str(PACKAGE) in str(refusal.value)


# -- warnings and messages


def test_commands_hide_debug_messages_and_warnings_about_fairseqs_own_code(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LOGLEVEL=DEBUG shows the messages."""
    levels = []
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        commands.mend()
        for chosen in ("DEBUG", ""):
            monkeypatch.setenv("LOGLEVEL", chosen) if chosen else monkeypatch.delenv("LOGLEVEL", raising=False)
            with caplog.at_level(logging.DEBUG):
                options.parse_args_and_arch(options.get_generation_parser(), ["data-bin"])
                levels.append(logging.getLogger().level)
        next(iter(DataLoader(TensorDataset(torch.ones(1)), pin_memory=True)))
        for category, module in ((UserWarning, "hydra.core"), (FutureWarning, "fairseq.trainer"), (FutureWarning, "a")):
            warnings.warn_explicit(f"of {module}", category, "file.py", 1, module=module)
    assert levels == [logging.DEBUG, logging.INFO]
    assert [str(warning.message) for warning in seen] == ["of a"]
