"""Test the benchmark of segment memory: two rows per encoding, each with a target."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from fairseq_posenc.commands.bench import lm_memory, targets
from fairseq_posenc.commands.bench.rows import Row
from fairseq_posenc.commands.bench.settings import Setting, Shape, Subject, default_subjects

from .scene import CPU, Clock

TINY = Shape("tiny-lm", 16, 2, ((8, 2),), ((8, 2),))


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"SHAPE": TINY, "FFN": 16, "MEMORY": 6, "LAYERS": 2}.items():
        monkeypatch.setattr(lm_memory, name, value)


def test_training_and_evaluation_have_a_row_each(run: Any, time: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    """All steps take equally long here. A step on a window scores one token, a step on a segment eight."""
    _, rows = run("--parts", "lm-memory", "--encodings", "xl", "learned", "shaw:clip=3", "--rounds", "2")
    assert [(row["encoding"], row["mode"]) for row in rows] == [
        (name, mode) for mode in ("train", "infer") for name in ("xl", "shaw")
    ]
    assert {row["mode"]: row["ratio"] for row in rows} == {"train": 1.0, "infer": 1 / 8}
    assert {row["mode"]: row["target"] for row in rows} == {"train": 1.6, "infer": 0.02}
    assert {row["mode"]: row["holds"] for row in rows} == {"train": True, "infer": False}
    assert all(row["what"] == "lm-memory" and row["causal"] and row["layers"] == 2 for row in rows)


def test_every_encoding_is_measured_or_has_no_memory() -> None:
    for subject in default_subjects():
        if not lm_memory.remembers(subject):
            continue
        for mode in ("train", "infer"):
            setting = Setting("lm-memory", mode, TINY, 8, 2, CPU, causal=True, layers=2)
            for step in lm_memory.steps(subject, setting):
                step()


def test_the_steps_are_what_they_are_called(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, int, int]] = []
    plain = lm_memory.Stack.forward

    def watched(self: Any, x: torch.Tensor, where: Any, **options: Any) -> Any:
        seen.append((x.shape[1], where.key_length, where.memory))
        return plain(self, x, where, **options)

    monkeypatch.setattr(lm_memory.Stack, "forward", watched)
    for mode in ("train", "infer"):
        for step in lm_memory.steps(Subject("t5"), Setting("lm-memory", mode, TINY, 8, 2, CPU, causal=True, layers=2)):
            step()
    assert seen == [(8, 8, 0), (8, 14, 6), (7, 7, 0), (8, 14, 6)]


def test_the_target_of_evaluation_has_no_tolerance() -> None:
    setting = Setting("lm-memory", "infer", TINY, 8, 2, CPU, causal=True)
    row = Row.of(Subject("xl"), setting, ratio=0.021, spread=0.0, target=targets.MEMORY_EVALUATION)
    assert row.holds is False


def test_the_flag_adds_the_part() -> None:
    from fairseq_posenc.commands.bench import arguments

    assert arguments.parsed(["--quick", "--memory"]).parts == ["layer", "lm-memory"]
