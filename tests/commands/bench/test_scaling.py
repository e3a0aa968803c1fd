"""Test the exponents with which time and memory grow with the length."""

from __future__ import annotations

from typing import Any

import pytest

from fairseq_posenc.commands.bench import memory, scaling
from fairseq_posenc.commands.bench.settings import Shape

from .scene import Clock


@pytest.mark.parametrize("power", [0.0, 1.0, 1.5, 2.0])
def test_the_exponent_of_a_power_is_exact(power: float) -> None:
    lengths = [128, 256, 512, 1024, 4096]
    assert scaling.exponent(lengths, [3.0 * n**power for n in lengths]) == pytest.approx(power, abs=1e-12)


def test_one_length_has_no_exponent() -> None:
    assert scaling.exponent([128], [1.0]) is None


def test_exponents_of_time_and_memory(run: Any, time: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = ((16, 1), (32, 1), (64, 1), (128, 1))
    monkeypatch.setattr(scaling, "SHAPE", Shape("scaling", 16, 2, sizes, sizes))
    monkeypatch.setattr(memory, "measured", lambda subject, setting: 1024 * setting.length**2)
    monkeypatch.setattr(scaling, "MOST", 1024 * 100**2)  # length 64 needs 4096 * 1024 bytes; 128 would need too many
    _, rows = run("--encodings", "t5", "--parts", "scaling", "--rounds", "1")
    exponents = {row["mode"]: row for row in rows if row["what"] == "exponent"}
    assert {mode: row["exponent"] for mode, row in exponents.items()} == {
        "train": pytest.approx(0.0), "infer": pytest.approx(0.0), "memory": pytest.approx(2.0, abs=1e-3),
    }  # fmt: skip
    assert {(row["first"], row["length"]) for row in exponents.values()} == {(16, 64)}
    assert {row["length"] for row in rows if row["what"] == "length"} == {16, 32, 64}
