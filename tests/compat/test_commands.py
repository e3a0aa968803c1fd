"""Refusals end in one line, others keep their traceback, and flags mean what they say: the faults, then the fixes."""

from __future__ import annotations

import argparse
import logging
import re
import sys
import warnings
from argparse import Namespace
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("fairseq")

from fairseq import checkpoint_utils, options, utils
from fairseq.distributed import utils as distributed
from fairseq.logging import metrics
from fairseq.trainer import Trainer
from torch.utils.data import DataLoader, TensorDataset

import fairseq_posenc
from fairseq_posenc import compat
from fairseq_posenc.attention import PathRefusedError
from fairseq_posenc.compat import CheckpointError, commands, training
from fairseq_posenc.compat.data import DataError
from fairseq_posenc.core.quiet import without
from fairseq_posenc.core.reading import NotTextError
from fairseq_posenc.core.refusal import InputError
from fairseq_posenc.core.writing import NoSpaceError
from fairseq_posenc.encodings import StackShape, build

from . import run

PACKAGE = Path(compat.__file__).parents[1]
TRANSFORMER = ["--arch", "posenc_transformer"]


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(commands.DEBUG, raising=False)
    monkeypatch.setattr(distributed, "infer_init_method", lambda *_: None)
    monkeypatch.setattr(sys, "argv", ["fairseq-train"])  # get_parser looks for --user-dir there


# -- refusals


def config(processes: int = 1, **common: bool) -> Namespace:
    precision = {"cpu": True, "amp": False, "fp16": False, "memory_efficient_fp16": False, "tpu": False}
    precision |= {"fp16_no_flatten_grads": False, **common}
    several = {"distributed_init_method": "tcp://127.0.0.1:1" if processes > 1 else None, "distributed_no_spawn": False}
    return Namespace(
        distributed_training=Namespace(distributed_world_size=processes, distributed_rank=0, **several),
        common=Namespace(**precision),
    )


def called(function: Callable[[], Any]) -> None:
    distributed.call_main(config(), lambda *_: function())


def raising(error: Exception) -> Callable[[], None]:
    def run() -> None:
        raise error

    return run


def test_the_class_of_an_error_decides_whether_it_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full = NoSpaceError(28, "no space", str(tmp_path / "a"))
    refusals = [InputError("--lr 3"), CheckpointError("a.pt"), DataError("b.idx"), training.DivergedError("c")]
    for error in (*refusals, PathRefusedError("d"), full, NotTextError("e")):
        with pytest.raises(SystemExit, match=f"error: {re.escape(str(error))}"):
            called(raising(error))
    with pytest.raises(SystemExit, match=r"error: data/dict.txt: No such file or directory\.$"):
        called(raising(FileNotFoundError(2, "No such file or directory", "data/dict.txt")))
    with pytest.raises(SystemExit, match=r"error: Model file not found: no\.pt$"):
        called(lambda: checkpoint_utils.load_model_ensemble(["no.pt"]))
    with pytest.raises(SystemExit, match=r"error: --finetune-from-model no\.pt does not exist$"):
        called(raising(ValueError("--finetune-from-model no.pt does not exist")))  # checkpoint_utils.py:254
    for path in (tmp_path, tmp_path / "file" / "dict.txt"):
        (tmp_path / "file").touch()
        with pytest.raises(SystemExit, match=rf"error: {path}: (Is a|Not a) directory\.$"):
            called(path.read_text)
    for error in (ValueError("a"), TypeError("b"), RuntimeError("c"), OSError("d"), KeyError("e"), AssertionError("f")):
        with pytest.raises(type(error)):
            called(raising(error))
    monkeypatch.setenv(commands.DEBUG, "1")
    with pytest.raises(InputError):
        called(raising(InputError("--lr 3")))


def test_a_refusal_of_the_package_is_one_line_and_a_misuse_keeps_its_traceback() -> None:
    shape = StackShape(layers=1, heads=2, dim=8, max_length=8, causal=True, name_flag="--pos-enc")
    with pytest.raises(SystemExit, match=r"error: --pos-enc linformer does not work in a decoder.*--pos-enc-encoder"):
        called(lambda: build("linformer", None, shape))
    with pytest.raises(TypeError, match="must be a name such as 'rope'"):
        called(lambda: build(3, None, shape))  # type: ignore[arg-type]
    assert issubclass(InputError, ValueError)  # programs catch the classes that they caught
    assert issubclass(CheckpointError, RuntimeError)


def test_generate_ends_in_one_line_too() -> None:
    """fairseq-generate does not call `call_main`. A broken variant without the fix prints a traceback."""
    code = """
        import sys
        import fairseq, fairseq_posenc
        import fairseq_cli.generate as generate
        from fairseq_cli.generate import cli_main
        from fairseq_posenc.compat import commands
        from fairseq_posenc.core.refusal import InputError
        if sys.argv.pop() == "fault":
            commands.running = lambda name: None
        def main(cfg):
            raise InputError("--beam 0")
        generate.main = main
        sys.argv = ["fairseq-generate", "data-bin"]
        cli_main()
    """
    faulty, ended = run(code, "fault"), run(code, "mended")
    assert "Traceback" in faulty.stderr
    assert ended.returncode == 1
    assert "Traceback" not in ended.stderr
    assert ended.stderr.splitlines()[-1] == "fairseq-generate: error: --beam 0"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--arch", "transformer", "--pos-enc", "shaw"], "--pos-enc shaw. Only architectures whose names begin with"),
        ([*TRANSFORMER, "--pos-encc", "shaw"], "--pos-encc shaw. --pos-encc; did you mean --pos-enc.*--help lists"),
        (["--arch", "posenc_transfomer_tiny"], r"--arch/-a: invalid choice: 'posenc_transfomer_tiny'; did you mean"),
        (["--task", "posenc_lm_memry"], r"--task: invalid choice: 'posenc_lm_memry'; did you mean posenc_lm_memory\?"),
        (["--arch", "transformer", "--tokens-per-sample", "9"], r"--tokens-per-sample 9\. --help lists the flags"),
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


# -- --bf16, and precisions that need a GPU


@pytest.mark.skipif("torch_xla" in sys.modules, reason="--bf16 may mean a TPU here")
def test_bf16_means_bf16() -> None:
    def parsed(parse: Callable[..., argparse.Namespace], *flags: str) -> argparse.Namespace:
        words = ["data", "--task", "language_modeling", "--arch", "transformer_lm", *flags]
        return parse(options.get_training_parser(), words)

    assert parsed(options.parse_args_and_arch.__wrapped__, "--bf16").tpu  # the fault
    for flag in ("--bf16", "--memory-efficient-bf16"):
        args = parsed(options.parse_args_and_arch, flag)
        assert args.bf16
        assert not args.tpu
    assert parsed(options.parse_args_and_arch, "--bf16", "--tpu").tpu
    assert not parsed(options.parse_args_and_arch).bf16


@pytest.mark.parametrize("cpu", [True, False])
def test_precisions_that_need_a_gpu_are_refused_without_one(cpu: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(InputError, match="--amp has no effect without a GPU"):
        Trainer(config(amp=True, cpu=cpu), None, None, None)
    with pytest.raises(InputError, match="Give --cpu --fp16-no-flatten-grads or --bf16"):
        Trainer(config(fp16=True, cpu=cpu), None, None, None)
    with pytest.raises(AttributeError, match="_parameters"):  # the constructor itself begins
        Trainer(config(fp16=True, fp16_no_flatten_grads=True), None, None, None)


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


# -- a loss that is not finite


def test_the_update_and_the_mean_loss_are_logged_and_named(caplog: pytest.LogCaptureFixture) -> None:
    def diverge(trainer: Any) -> None:
        raise FloatingPointError("gradients are Nan/Inf")

    def diverge_and_fail(trainer: Any) -> None:
        """Fail as fairseq does if it cannot repeat the step to find the first NaN."""
        try:
            diverge(trainer)
        except FloatingPointError:
            raise RuntimeError("hooks") from None

    trainer = Namespace(get_num_updates=lambda: 46)
    for step, losses, shown in ((diverge, [], "null"), (diverge_and_fail, [4.0, 6.0], "5.0")):
        caplog.clear()
        with metrics.aggregate("train_inner", new_root=True), caplog.at_level(logging.ERROR):
            metrics.reset_meters("train_inner")
            for loss in losses:
                metrics.log_scalar("loss", loss)
            with pytest.raises(training.DivergedError, match=r"diverged in update 47: gradients are Nan/Inf\. Give"):
                training._with_update(step, trainer)
        assert caplog.messages == ['{"num_updates": 47, "loss": %s}' % shown]  # noqa: UP031
    with pytest.raises(RuntimeError, match="out of memory"):
        training._with_update(lambda _: raising(RuntimeError("out of memory"))(), trainer)


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


# -- warnings and messages


def test_warnings_about_fairseqs_own_code_are_hidden() -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        commands.mend()
        warnings.warn_explicit("The strict flag is deprecated.", UserWarning, "compose.py", 1, module="hydra.compose")
        warnings.warn_explicit(
            "\n'config' is validated against ConfigStore schema", UserWarning, "sys", 1, module="sys"
        )
        warnings.warn_explicit("autocast is deprecated", FutureWarning, "t.py", 1, module="fairseq.tasks.fairseq_task")
        warnings.warn_explicit("something else", UserWarning, "x.py", 1, module="mine")
        warnings.warn_explicit("autocast is deprecated", FutureWarning, "x.py", 1, module="mine")
        for hides in (without("`old` is", FutureWarning), nullcontext()):  # only while fairseq is imported
            with hides:
                warnings.warn("`old` is deprecated", FutureWarning, stacklevel=1)
    assert [str(warning.message) for warning in seen] == [
        "something else",
        "autocast is deprecated",
        "`old` is deprecated",
    ]


@pytest.mark.parametrize(("chosen", "level"), [(None, logging.INFO), ("DEBUG", logging.DEBUG)])
def test_commands_show_no_debug_messages(
    chosen: str | None, level: int, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LOGLEVEL", raising=False)
    if chosen:
        monkeypatch.setenv("LOGLEVEL", chosen)
    with caplog.at_level(logging.DEBUG), warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        options.parse_args_and_arch(options.get_generation_parser(), ["data-bin"])
        assert logging.getLogger().level == level
        next(iter(DataLoader(TensorDataset(torch.ones(1)), pin_memory=True)))
    assert not seen
