"""Test `average`: the mean, which checkpoints of a folder it takes, and what it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from fairseq_posenc.commands import average
from fairseq_posenc.compat.checkpoints import CheckpointError, safe_load


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


def test_the_last_checkpoints_are_the_newest_by_number(tmp_path: Path) -> None:
    for name in ("checkpoint2.pt", "checkpoint9.pt", "checkpoint10.pt", "checkpoint_1_7.pt", "checkpoint_last.pt"):
        (tmp_path / name).touch()
    for arguments, expected in (
        ((2, False), ["checkpoint10.pt", "checkpoint9.pt"]),
        ((2, False, 9), ["checkpoint9.pt", "checkpoint2.pt"]),
        ((1, True), ["checkpoint_1_7.pt"]),
    ):
        assert [path.name for path in average.last_checkpoints(tmp_path, *arguments)] == expected


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


def test_what_cannot_be_averaged_is_refused_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second, flag = write(tmp_path / "first.pt", 0), write(tmp_path / "second.pt", 1), torch.tensor([True])
    third = write(tmp_path / "checkpoint3.pt", 2, flag=flag)
    fourth = write(tmp_path / "checkpoint4.pt", 3, flag=~flag)
    (tmp_path / "link.pt").symlink_to(first)
    torch.save({"weights": {}}, tmp_path / "other.pt")
    before, output = first.read_bytes(), tmp_path / "mean.pt"
    cases = [
        ([first, second], first, f"--output {first}: this would replace the input {first}"),
        ([first, second], tmp_path / "link.pt", f"this would replace the input {first}"),
        ([first, second], tmp_path, f"--output {tmp_path} is a folder. Name a file"),
        ([first, tmp_path / "link.pt"], output, f"named twice (it is the same file as {first})"),
        ([tmp_path], output, f"--inputs {tmp_path} is a folder. Say how many of its checkpoints to average"),
        ([tmp_path, "--num-epoch-checkpoints", "3"], output, "because the folder has 2 files"),
        ([first, third], output, f"{third}: 1 of its parameters differ from those of the first"),
        ([third, fourth], output, f"{fourth}: the boolean tensor flag differs"),
        ([first, tmp_path / "other.pt"], output, "other.pt: this is not a fairseq checkpoint"),
    ]
    for inputs, path, message in cases:
        assert mean("--inputs", *inputs, "--output", path) == 1
        (error,) = capsys.readouterr().err.splitlines()
        assert error.startswith("average: ")
        assert message in error
    for words in (
        "a b --num-epoch-checkpoints 2",
        "a --checkpoint-upper-bound 2",
        ". --num-epoch-checkpoints 2 --every 2",
    ):
        with pytest.raises(SystemExit, match="2"):
            mean("--inputs", *words.split(), "--output", output)
    assert first.read_bytes() == before
    assert not output.exists()
