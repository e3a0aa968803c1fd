"""Test `average`: the mean, and which checkpoints of a folder it takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from fairseq_posenc.commands import average
from fairseq_posenc.compat.checkpoints import CheckpointError, safe_load


def test_the_mean_equals_that_of_the_script_of_fairseq(tmp_path: Path) -> None:
    random, models = torch.Generator().manual_seed(0), []
    for seed in range(3):
        model = {"w": torch.randn(3, 4, generator=random), "double": torch.randn(5, generator=random).double()}
        model |= {"half": torch.full((2,), 0.1 + seed).half(), "brain": torch.full((2,), 0.1 + seed).bfloat16()}
        model |= {"steps": torch.tensor([3, 4 + seed]), "flag": torch.tensor([True, False])}
        torch.save({"model": model, "cfg": {"seed": seed}, "extra_state": {}}, tmp_path / f"{seed}.pt")
        models.append(model)
    paths = [str(tmp_path / f"{seed}.pt") for seed in range(3)]
    assert average.main(["--inputs", *paths, "--output", str(tmp_path / "new" / "mean.pt")]) == 0
    averaged = safe_load(tmp_path / "new" / "mean.pt")
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
