"""Test the measurement of layers: targets are enforced, results survive a kill, and every part measures."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from fairseq_posenc.encodings import specs
from tests.benchmarks import layers, steps
from tests.benchmarks.layers import Work
from tests.benchmarks.steps import Setting

TINY = "--encodings none shaw alibi+dape --sizes 128x1 --rounds 1 --json --modes train".split()
SETTING = Setting("layer", "train", 128, 1, 768, 12, torch.device("cpu"), torch.float32)


@pytest.fixture
def seconds(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """Replace the clock: each step takes the given seconds, or one."""
    spent, now = dict[str, float](), [0.0]

    def fake(label: str | None, setting: Setting) -> Callable[[], None]:
        return lambda: now.__setitem__(0, now[0] + spent.get(str(label), 1.0))

    monkeypatch.setattr(steps, "step_of", fake)
    monkeypatch.setattr(layers, "now", lambda: now[0])
    return spent


def test_a_target_is_enforced_within_the_noise(seconds: dict[str, float], capsys: pytest.CaptureFixture[str]) -> None:
    target = Work("shaw", SETTING).target
    assert target is not None
    seconds["shaw"] = target + 0.9 * layers.TARGETS["noise"]
    assert layers.main(TINY) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {row["encoding"]: row["holds"] for row in rows} == {"none": True, "shaw": True, "alibi+dape": True}
    seconds["shaw"] = target + 1.1 * layers.TARGETS["noise"]
    assert layers.main(TINY) == 1
    captured = capsys.readouterr()
    assert re.search(r"above its target: shaw, layer train, n = 128: ", captured.err)
    assert {row["encoding"] for row in json.loads(captured.out) if row["holds"] is False} == {"shaw"}


def test_every_part_measures_and_a_stopped_run_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layers, "DECODING", (16, 1))
    monkeypatch.setattr(layers, "WIDTHS", {"base": (32, 2)})
    found = [peer for peer in layers.peers.installed() if peer.name in ("fairseq", "hf-t5")]
    monkeypatch.setattr(layers.peers, "installed", lambda: found)
    few = "--encodings shaw linformer fox --sizes 16x1 --rounds 1 --modes train --json".split()
    words = [*few, "--output", str(tmp_path), "--parts", *layers.PARTS]
    layers.main(words)
    rows = json.loads(capsys.readouterr().out)
    assert {row["what"] for row in rows} == {"layer", "decode", "memory"}
    assert {row["encoding"] for row in rows} == {"shaw", "linformer", "fox", "none", "t5", *map(str, found)}
    assert all(row["ratio"] > 0 for row in rows)
    *stored, last = (tmp_path / "layers.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(stored) == len(rows) - 1
    (tmp_path / "layers.jsonl").write_text("\n".join(stored) + "\n", encoding="utf-8")
    layers.main(words)
    assert capsys.readouterr().err.count(f": {json.loads(last)['encoding']}\n") == 1
    assert (tmp_path / "layers.jsonl").read_text(encoding="utf-8").count("\n") == len(rows)
    assert "| shaw" in (tmp_path / "layers.md").read_text(encoding="utf-8")


def test_every_encoding_and_every_encoding_with_targets_has_a_step() -> None:
    for name in (*specs(), *layers.FAMILIES):
        assert steps.hooks(steps.checked(name)) is not None
