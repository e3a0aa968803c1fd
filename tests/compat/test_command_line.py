"""Test --bf16, --user-dir, and several processes on a machine without GPUs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("fairseq")

from fairseq import options, utils
from fairseq.distributed import utils as distributed

import fairseq_posenc
from fairseq_posenc import compat

# -- --restore-previous


@pytest.mark.usefixtures("no_arguments")
def test_only_training_accepts_the_flag_to_restore_the_previous_checkpoint() -> None:
    assert "--restore-previous" in options.get_training_parser().format_help()
    for parser in (options.get_generation_parser(), options.get_eval_lm_parser(), options.get_validation_parser()):
        assert "--restore-previous" not in parser.format_help()


# -- --bf16


def parsed(parse: Callable[..., argparse.Namespace], *flags: str) -> argparse.Namespace:
    parser = options.get_training_parser()
    return parse(parser, ["data", "--task", "language_modeling", "--arch", "transformer_lm", *flags])


@pytest.fixture
def no_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["fairseq-train"])  # get_parser looks for --user-dir there


@pytest.mark.usefixtures("no_arguments")
@pytest.mark.skipif("torch_xla" in sys.modules, reason="--bf16 may mean a TPU here")
def test_bf16_means_bf16() -> None:
    assert parsed(options.parse_args_and_arch.__wrapped__, "--bf16").tpu  # the fault
    for flag in ("--bf16", "--memory-efficient-bf16"):
        args = parsed(options.parse_args_and_arch, flag)
        assert args.bf16
        assert not args.tpu
    assert parsed(options.parse_args_and_arch, "--bf16", "--tpu").tpu
    assert not parsed(options.parse_args_and_arch).bf16


# -- --user-dir

PACKAGE = Path(compat.__file__).parents[1]


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


@pytest.mark.usefixtures("fresh_memo")
def test_the_imported_copy_is_accepted_by_every_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(PACKAGE.parent)
    (tmp_path / PACKAGE.name).symlink_to(PACKAGE)
    with pytest.raises(ImportError, match="not globally unique"):
        utils.import_user_module.__wrapped__(user_dir(tmp_path / PACKAGE.name))  # the fault: it is the same folder
    clone = tmp_path / "elsewhere" / PACKAGE.name  # a clone, which contains the package
    clone.parent.mkdir()
    clone.symlink_to(PACKAGE.parent)
    for path in (PACKAGE, f"{PACKAGE}/", PACKAGE.name, tmp_path / PACKAGE.name, clone):
        utils.import_user_module(user_dir(path))


@pytest.mark.usefixtures("fresh_memo")
def test_other_user_dirs_are_imported_as_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "posenc_other_plugin").mkdir()
    (tmp_path / "posenc_other_plugin" / "__init__.py").write_text("VALUE = 3\n")
    monkeypatch.setattr(sys, "path", list(sys.path))
    utils.import_user_module(user_dir(tmp_path / "posenc_other_plugin"))
    assert sys.modules.pop("posenc_other_plugin").VALUE == 3
    with pytest.raises(FileNotFoundError):
        utils.import_user_module(user_dir(tmp_path / "missing"))
    utils.import_user_module(argparse.Namespace())


# -- several processes on a machine without GPUs


def _two_processes() -> argparse.Namespace:
    options = {"distributed_init_method": "tcp://127.0.0.1:1", "distributed_rank": 0, "distributed_no_spawn": False}
    return argparse.Namespace(
        distributed_training=argparse.Namespace(distributed_world_size=2, **options),
        common=argparse.Namespace(tpu=False),
        task=None,
    )


def test_spawning_no_process_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    called: list[Any] = []
    distributed.call_main.__wrapped__(_two_processes(), called.append)
    assert called == []  # the fault: nothing ran, and no error was raised
    with pytest.raises(SystemExit, match="--distributed-no-spawn"):
        distributed.call_main(_two_processes(), called.append)
