"""Test that checkpoints of fairseq load as data, that other objects are refused by name, and averaging."""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import pickle
import shutil
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import support_warm
import torch

pytest.importorskip("fairseq")

from fairseq import checkpoint_utils
from fairseq.data import Dictionary
from fairseq.data.indexed_dataset import make_builder

from fairseq_posenc import compat
from fairseq_posenc.commands import average
from fairseq_posenc.compat.checkpoints import CheckpointError, UnsafeCheckpointError, safe_load

compat.apply()
ROOT = Path(__file__).resolve().parents[2]

# Real checkpoints of fairseq-train

DRIVER = "from fairseq_posenc import compat; compat.apply(); from fairseq_cli.train import cli_main; cli_main()"
COMMON = """--optimizer adam --lr 0.001 --max-tokens 60 --log-format none --save-interval-updates 2
    --keep-interval-updates 3 --dropout 0 --cpu --disable-validation""".split()
TRANSLATION = """--task translation -s a -t b --arch lstm --encoder-embed-dim 8 --encoder-hidden-size 8
    --decoder-embed-dim 8 --decoder-hidden-size 8 --decoder-out-embed-dim 8 --max-update 5""".split()
LANGUAGE_MODEL = """--task language_modeling --arch transformer_lm --decoder-layers 1 --decoder-embed-dim 8
    --decoder-ffn-embed-dim 8 --decoder-attention-heads 2 --tokens-per-sample 10 --sample-break-mode eos
    --max-update 4 --bf16 --ema-decay 0.9 --store-ema""".split()


def write_corpus(folder: Path) -> None:
    """Write random lines as a translation corpus and as a corpus of a language model."""
    folder.mkdir()
    dictionary = Dictionary()
    for letter in "abcdefgh":
        dictionary.add_symbol(letter)
    for name in ("dict.a.txt", "dict.b.txt", "dict.txt"):
        dictionary.save(str(folder / name))
    random = torch.Generator().manual_seed(0)
    lines = [torch.randint(4, 12, (3 + i % 6,), generator=random) for i in range(60)]
    for name in ("train.a-b.a", "train.a-b.b", "train"):
        builder = make_builder(str(folder / f"{name}.bin"), "mmap", len(dictionary))
        for line in lines:
            builder.add_item(torch.cat([line, torch.tensor([dictionary.eos()])]))
        builder.finalize(str(folder / f"{name}.idx"))


def train(folder: Path, name: str, options: list[str]) -> Path:
    """Train for a few updates, stop inside an epoch, and return the checkpoints."""
    save = folder / name
    (folder / "driver.py").write_text(DRIVER)
    command = [sys.executable, folder / "driver.py", folder / "data", *options, *COMMON, "--save-dir", save]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = support_warm.run(command, env=environment)
    assert done.returncode == 0, done.stderr
    return save


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("trained")
    write_corpus(folder / "data")
    return {
        "translation": train(folder, "translation", TRANSLATION),
        "language model": train(folder, "lm", LANGUAGE_MODEL),
    }


@pytest.mark.parametrize("name", ["translation", "language model"])
def test_checkpoints_of_fairseq_train_load(trained: dict[str, Path], name: str) -> None:
    state = checkpoint_utils.load_checkpoint_to_cpu(str(trained[name] / "checkpoint_last.pt"))
    assert state["optimizer_history"][-1]["num_updates"] == {"translation": 5, "language model": 4}[name]
    assert all(torch.is_tensor(value) for value in state["model"].values())


def test_a_legacy_checkpoint_needs_the_allow_list(trained: dict[str, Path]) -> None:
    """A model without a dataclass stores its options as argparse.Namespace."""
    path = str(trained["translation"] / "checkpoint_last.pt")
    assert isinstance(safe_load(path)["cfg"]["model"], argparse.Namespace)
    allowed = torch.serialization.get_safe_globals()
    torch.serialization.clear_safe_globals()
    try:
        with pytest.raises(pickle.UnpicklingError, match=r"argparse\.Namespace"):
            torch.load(path, weights_only=True)
    finally:
        torch.serialization.add_safe_globals(allowed)
    assert "model" in torch.load(path, weights_only=True)


def test_bf16_trains_on_this_device(trained: dict[str, Path]) -> None:
    state = safe_load(trained["language model"] / "checkpoint_last.pt")
    assert state["cfg"]["common"]["bf16"]
    assert not state["cfg"]["common"]["tpu"]


def test_ema_weights_load_as_data(trained: dict[str, Path]) -> None:
    state = checkpoint_utils.load_ema_from_checkpoint(str(trained["language model"] / "checkpoint_last.pt"))
    assert state["model"]


def test_numpy_numbers_load_as_numpy_1_and_2_write_them(tmp_path: Path) -> None:
    numbers = {str(np.dtype(t)): np.dtype(t).type(1) for t in "?bhilqBHILQefdFD"}
    state = {"best": np.float64(0.25), "numbers": numbers, "array": np.arange(6, dtype=np.int64).reshape(2, 3)}
    torch.save(state, tmp_path / "numpy.pt")
    loaded = safe_load(tmp_path / "numpy.pt")
    assert loaded["best"] == 0.25
    assert loaded["numbers"] == numbers
    assert (loaded["array"] == state["array"]).all()

    written = pickle.dumps(state["best"], protocol=2)
    other = (b"numpy._core.", b"numpy.core.") if b"numpy._core." in written else (b"numpy.core.", b"numpy._core.")
    for data in (written, written.replace(*other)):
        assert torch._weights_only_unpickler.load(io.BytesIO(data)) == 0.25


# What is refused


class Touch:
    """Run a command when an object of this class is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.system, (f"touch '{self.path}'",)


class Options:
    """Stand for a harmless class, which checkpoints may not contain either."""


def save(value: Any, path: Path, form: str) -> str:
    state = {"model": {"w": torch.ones(2)}, "extra_state": value}
    if form == "pickle":
        path.write_bytes(pickle.dumps(state["extra_state"]))
    elif form == "zip, protocol 4":
        torch.save(state, path, pickle_protocol=4)
    else:
        torch.save(state, path, _use_new_zipfile_serialization=form == "zip")
    return str(path)


@pytest.fixture
def shipped(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Return fairseq's loader without the fix."""
    monkeypatch.setattr(checkpoint_utils, "torch", torch)
    return


#: Loaders of checkpoints: fairseq's function, and the plugin's function with a text or a path.
LOADERS = {
    "fairseq": checkpoint_utils.load_checkpoint_to_cpu,
    "text": safe_load,
    "path": lambda path: safe_load(Path(path)),
}


@pytest.mark.parametrize("loader", LOADERS)
@pytest.mark.parametrize("form", ["zip", "zip, protocol 4", "legacy", "pickle"])
def test_a_malicious_checkpoint_is_refused_and_does_nothing(
    tmp_path: Path, form: str, loader: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")  # also if torch is set not to check
    path = save(Touch(tmp_path / "touched"), tmp_path / "evil.pt", form)
    with pytest.raises(UnsafeCheckpointError) as refusal:
        LOADERS[loader](path)
    assert path in str(refusal.value)
    assert f"{os.system.__module__}.system" in str(refusal.value)
    assert not (tmp_path / "touched").exists()


@pytest.mark.usefixtures("shipped")
def test_the_loader_of_fairseq_would_run_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    path = save(Touch(tmp_path / "touched"), tmp_path / "evil.pt", "zip")
    with pytest.warns(UserWarning, match="forcing weights_only=False"), contextlib.suppress(KeyError):
        checkpoint_utils.load_checkpoint_to_cpu(path)
    assert (tmp_path / "touched").exists()


@pytest.mark.parametrize(
    ("value", "name"),
    [(Options(), "test_checkpoints.Options"), (eval, "eval"), (shutil.rmtree, "shutil.rmtree")],
)
def test_unlisted_objects_are_named(tmp_path: Path, value: Any, name: str) -> None:
    path = save(value, tmp_path / "other.pt", "zip")
    with pytest.raises(UnsafeCheckpointError, match=name) as refusal:
        safe_load(path)
    assert path in str(refusal.value)


@pytest.mark.usefixtures("shipped")
def test_the_error_of_fairseq_names_no_file(tmp_path: Path) -> None:
    path = save(Options(), tmp_path / "other.pt", "zip")
    with pytest.raises(pickle.UnpicklingError) as refusal:
        checkpoint_utils.load_checkpoint_to_cpu(path)
    assert path not in str(refusal.value)


def test_a_torchscript_program_is_refused(tmp_path: Path) -> None:
    torch.jit.script(torch.nn.Linear(1, 1)).save(str(tmp_path / "program.pt"))
    with (
        pytest.warns(UserWarning, match="TorchScript"),
        pytest.raises(UnsafeCheckpointError, match="TorchScript"),
    ):
        safe_load(tmp_path / "program.pt")


@pytest.mark.parametrize("checksums", [True, False], ids=["checksums", "no-checksums"])
@pytest.mark.parametrize("part", ["data.pkl", "data/0"])
def test_a_compressed_part_may_be_a_bomb_and_is_refused(tmp_path: Path, part: str, checksums: bool) -> None:
    """torch.load itself uncompresses a part of any size into memory."""
    path, bomb = save({}, tmp_path / "model.pt", "zip"), tmp_path / "bomb.pt"
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(bomb, "w") as new:
        for entry in old.infolist():
            is_compressed = entry.filename.endswith(part)
            new.writestr(entry.filename, old.read(entry), zipfile.ZIP_DEFLATED if is_compressed else zipfile.ZIP_STORED)
        for entry in new.infolist():
            entry.CRC *= checksums
    for options in ({}, {"mmap": True}):
        with pytest.raises(CheckpointError, match=rf"bomb\.pt: .*its part model/{part} is compressed"):
            safe_load(bomb, **options)


def test_no_argument_makes_the_loader_unsafe(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="weights_only"):
        safe_load(save(1, tmp_path / "one.pt", "zip"), weights_only=False)


@pytest.mark.parametrize("loader", LOADERS)
@pytest.mark.parametrize("content", ["cut", "empty", "text", "zeros"])
def test_a_damaged_file_is_named_with_what_to_do(
    tmp_path: Path, content: str, loader: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here").mkdir()
    (tmp_path / "checkpoint_last.pt").write_bytes(b"another file of the same name")
    path = tmp_path / "here" / "checkpoint_last.pt"
    save({"a": torch.ones(5000)}, path, "zip")
    whole = path.read_bytes()
    path.write_bytes({"cut": whole[:-200], "empty": b"", "text": b"hello there\n", "zeros": bytes(99)}[content])
    with pytest.raises(CheckpointError, match=r"incomplete.*--restore-file") as refusal:
        LOADERS[loader](str(path))
    assert not isinstance(refusal.value, UnsafeCheckpointError)
    assert str(path) in str(refusal.value)
    assert f"{path.stat().st_size:,} bytes" in str(refusal.value)


def test_a_missing_file_raises_file_not_found(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"none\.pt"):
        checkpoint_utils.load_checkpoint_to_cpu(str(tmp_path / "none.pt"))


# The mean of checkpoints


def write(path: Path, seed: int, **more: torch.Tensor) -> Path:
    random = torch.Generator().manual_seed(seed)
    model = {"w": torch.randn(3, 4, generator=random), "double": torch.randn(5, generator=random).double(), **more}
    torch.save({"model": model, "cfg": {"seed": seed}, "extra_state": {}}, path)
    return path


def mean(*arguments: str | Path) -> int:
    return average.main([str(a) for a in arguments])


def test_the_mean_equals_that_of_the_script_of_fairseq(tmp_path: Path) -> None:
    paths = [
        write(
            tmp_path / f"{seed}.pt",
            seed,
            half=torch.full((2,), 0.1 + seed).half(),
            brain=torch.full((2,), 0.1 + seed).bfloat16(),
            steps=torch.tensor([3, 4 + seed]),
            flag=torch.tensor([True, False]),
        )
        for seed in range(3)
    ]
    assert mean("--inputs", *paths, "--output", tmp_path / "new" / "mean.pt") == 0
    averaged = safe_load(tmp_path / "new" / "mean.pt")
    models = [safe_load(path)["model"] for path in paths]
    for name in ("w", "double"):
        total = models[0][name].clone()
        total += models[1][name]
        total += models[2][name]
        assert torch.equal(averaged["model"][name], total.div_(3))  # bit-identical, in this order
        assert averaged["model"][name].dtype == models[0][name].dtype
    for name in ("half", "brain"):
        assert averaged["model"][name].dtype == torch.float32
        assert torch.equal(averaged["model"][name], sum(m[name].float() for m in models) / 3)
    assert averaged["model"]["steps"].tolist() == [3, 5]
    assert averaged["model"]["steps"].dtype == torch.int64
    assert averaged["model"]["flag"].tolist() == [True, False]
    assert averaged["cfg"] == {"seed": 0}
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["mean.pt"]


def test_real_checkpoints_average_and_load(trained: dict[str, Path], tmp_path: Path) -> None:
    folder, output = trained["translation"], tmp_path / "mean.pt"
    for source in (["--checkpoint-dir", folder], ["--inputs", folder]):  # the second form is that of fairseq's script
        assert mean(*source, "--num-update-checkpoints", "2", "--output", output) == 0
        (model,), _, _ = checkpoint_utils.load_model_ensemble_and_task(
            [str(output)], arg_overrides={"data": str(folder.parent / "data")}
        )
        first, second = (safe_load(path)["model"] for path in average.last_checkpoints(folder, 2, by_update=True))
        for name, value in model.state_dict().items():
            assert torch.equal(value, (first[name] + second[name]) / 2)
    assert any(not torch.equal(first[name], second[name]) for name in first)


def test_the_last_checkpoints_are_the_newest_by_number(tmp_path: Path) -> None:
    for name in ("checkpoint2.pt", "checkpoint9.pt", "checkpoint10.pt", "checkpoint_1_7.pt", "checkpoint_last.pt"):
        (tmp_path / name).touch()

    def names(*arguments: Any) -> list[str]:
        return [path.name for path in average.last_checkpoints(tmp_path, *arguments)]

    assert names(2, False) == ["checkpoint10.pt", "checkpoint9.pt"]
    assert names(2, False, 9) == ["checkpoint9.pt", "checkpoint2.pt"]
    assert names(1, True) == ["checkpoint_1_7.pt"]
    with pytest.raises(CheckpointError, match="cannot average the checkpoints of the last 4 epochs"):
        names(4, False)


def test_regular_checkpoints_are_refused_if_any_is_missing(tmp_path: Path) -> None:
    torch.save({"model": {}, "optimizer_history": [{"num_updates": 300}]}, tmp_path / "checkpoint_last.pt")
    for name in ("checkpoint_1_50.pt", "checkpoint_1_150.pt", "checkpoint_2_200.pt", "checkpoint_2_250.pt"):
        (tmp_path / name).touch()

    def names(*arguments: Any) -> list[str]:
        return [path.name for path in average.regular_checkpoints(tmp_path, *arguments)]

    assert names(3, 50) == ["checkpoint_last.pt", "checkpoint_2_250.pt", "checkpoint_2_200.pt"]
    assert names(2, 50, 249) == ["checkpoint_2_200.pt", "checkpoint_1_150.pt"]
    with pytest.raises(CheckpointError, match="of these updates are missing: 100 "):
        names(3, 50, 199)


def test_an_input_is_neither_replaced_nor_counted_twice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = write(tmp_path / "first.pt", 0), write(tmp_path / "second.pt", 1)
    (tmp_path / "link.pt").symlink_to(first)
    before = first.read_bytes()
    output = tmp_path / "mean.pt"
    cases = {
        (first, second, "--output", first): f"--output {first}: this would replace the input {first}",
        (first, second, "--output", tmp_path / "link.pt"): f"this would replace the input {first}",
        (first, second, first, "--output", output): f"{first} is named twice. Name each checkpoint once",
        (first, tmp_path / "link.pt", "--output", output): f"named twice (it is the same file as {first})",
        (first, second, "--output", tmp_path): f"--output {tmp_path} is a folder. Name a file",
    }
    for words, message in cases.items():
        assert mean("--inputs", *words) == 1
        error = capsys.readouterr().err
        assert message in error
        assert error.count("\n") == 1
    assert first.read_bytes() == before
    assert not output.exists()


def test_a_folder_needs_the_number_of_its_checkpoints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As in fairseq's script, which takes a folder in --inputs only together with a number."""
    for epoch in (1, 2, 3):
        write(tmp_path / f"checkpoint{epoch}.pt", epoch)
    assert mean("--inputs", tmp_path, "--output", tmp_path / "mean.pt") == 1
    error = capsys.readouterr().err
    assert f"--inputs {tmp_path} is a folder. Say how many of its checkpoints to average with --num-epoch-c" in error
    assert mean("--inputs", tmp_path, "--num-epoch-checkpoints", "2", "--output", tmp_path / "mean.pt") == 0
    assert mean("--inputs", tmp_path, "--num-epoch-checkpoints", "2", "--output", tmp_path / "checkpoint3.pt") == 1
    assert "this would replace the input" in capsys.readouterr().err


def test_checkpoints_that_have_no_mean_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = write(tmp_path / "first.pt", 0, flag=torch.tensor([True]))
    torch.save({"weights": {}}, tmp_path / "other.pt")
    (tmp_path / "evil.pt").write_bytes(pickle.dumps(Touch(tmp_path / "touched")))
    reasons = {
        write(tmp_path / "keys.pt", 1, more=torch.ones(1), flag=torch.tensor([True])): "additional: more",
        write(tmp_path / "fewer.pt", 1): "missing: flag",
        write(tmp_path / "shape.pt", 1, flag=torch.tensor([True, True])): "flag has the shape [2], but [1]",
        write(tmp_path / "flag.pt", 1, flag=torch.tensor([False])): "boolean",
        tmp_path / "other.pt": "not a fairseq checkpoint",
        tmp_path / "evil.pt": "refused",
        tmp_path / "missing.pt": "No such file",
    }
    for path, reason in reasons.items():
        assert mean("--inputs", first, path, "--output", tmp_path / "mean.pt") == 1
        error = capsys.readouterr().err
        assert error.startswith("average: ")
        assert error.count("\n") == 1
        assert reason in error
        assert path.name in error
    assert not (tmp_path / "mean.pt").exists()
    assert not (tmp_path / "touched").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ["--checkpoint-dir", "d"],
        ["--inputs", "a", "b", "--num-epoch-checkpoints", "2"],
        ["--inputs", "a", "--checkpoint-upper-bound", "2"],
        ["--num-epoch-checkpoints", "2"],
    ],
)
def test_a_command_line_without_a_clear_choice_is_refused(arguments: list[str]) -> None:
    with pytest.raises(SystemExit):
        mean(*arguments, "--output", "mean.pt")
