"""Test the measurement of layers: targets are enforced, results survive a kill, and bad arguments are refused."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from fairseq_posenc.encodings import specs
from tests.benchmarks import clock, layers, steps, targets
from tests.benchmarks.clock import Rounds
from tests.benchmarks.steps import Setting, Subject

CPU = torch.device("cpu")
TINY = "--encodings none shaw alibi+dape --sizes 128x1 --rounds 1 --json".split()


@pytest.fixture
def seconds(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """Replace the clock: each step takes the given seconds; the baseline, None, takes one."""
    spent, now = {"None": 1.0}, [0.0]

    def fake(subject: object, setting: Setting) -> Callable[[], None]:
        return lambda: now.__setitem__(0, now[0] + spent.get(str(subject), 1.0))

    monkeypatch.setattr(steps, "step_of", fake)
    monkeypatch.setattr(clock, "now", lambda: now[0])
    return spent


def rows_of(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return rows


def test_a_target_is_enforced_within_the_noise(seconds: dict[str, float], capsys: pytest.CaptureFixture[str]) -> None:
    target = targets.target_of(Subject("shaw"), Setting("layer", "train", 128, 1, 768, 12, CPU, torch.float32))
    assert target is not None
    seconds["shaw"] = target + 0.9 * targets.NOISE
    assert layers.main(TINY) == 0
    assert {row["encoding"]: row["holds"] for row in rows_of(capsys)}["shaw"] is True
    seconds["shaw"] = target + 1.1 * targets.NOISE
    assert layers.main(TINY) == 1
    captured = capsys.readouterr()
    assert re.search(r"above its target: shaw, layer train, n = 128: ", captured.err)
    assert {row["encoding"] for row in json.loads(captured.out) if row["holds"] is False} == {"shaw"}


def test_rows_say_what_was_measured(seconds: dict[str, float], capsys: pytest.CaptureFixture[str]) -> None:
    assert layers.main(TINY) == 0
    for row in rows_of(capsys):
        assert {"encoding", "what", "mode", "length", "ratio", "target", "torch", "commit", "device"} <= set(row)


def test_a_stopped_run_goes_on(seconds: dict[str, float], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    layers.main([*TINY, "--modes", "train", "--output", str(tmp_path)])
    file = tmp_path / "layers.jsonl"
    stored = file.read_text(encoding="utf-8").splitlines()
    file.write_text("\n".join(stored[:2]) + "\n", encoding="utf-8")
    capsys.readouterr()
    layers.main([*TINY, "--modes", "train", "--output", str(tmp_path)])
    captured = capsys.readouterr()
    assert "none" not in captured.err
    assert stored[2].split('"')[3] in captured.err
    assert len(file.read_text(encoding="utf-8").splitlines()) == len(stored) == 3
    assert "| shaw" in (tmp_path / "layers.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--encodings shw", "--encodings: .*shaw"),
        ("--encodings m4[clip=64", "--encodings: 'm4.clip=64' is not an encoding"),
        ("--sizes 512", "512x4"),
        ("--sizes 0x4", "512x4"),
        ("--device cuda", "torch sees no GPU"),
    ],
)
def test_bad_arguments_are_refused(
    words: str, message: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(SystemExit):
        layers.main(words.split())
    assert re.search(message, capsys.readouterr().err)


def test_steps_are_timed_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    clock.interleaved([lambda: order.append("a"), lambda: order.append("b")], Rounds(2, 2), CPU)
    assert "".join(order) == "ab" + "ab" + "ba", "each round begins with another step"


@pytest.mark.parametrize("part", layers.PARTS)
def test_every_part_measures(part: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layers, "DECODING", (16, 1))
    monkeypatch.setattr(layers, "WIDTHS", {"base": (32, 2)})
    found = [peer for peer in layers.peers.installed() if peer.name in ("fairseq", "hf-t5")]
    monkeypatch.setattr(layers.peers, "installed", lambda: found)
    layers.main([*TINY[:4], "--parts", part, "--sizes", "16x1", "--rounds", "1", "--modes", "train", "--json"])
    rows = rows_of(capsys)
    assert rows
    assert all(row["ratio"] > 0 for row in rows)


def test_every_encoding_has_a_step_and_known_targets() -> None:
    """Build every registered encoding, and read the options of every encoding with targets."""
    for name in specs():
        assert Subject.of(name).hooks() is not None
    for name in targets.subjects():
        Subject.of(name)


def test_a_layer_that_is_slower_than_another_package_s_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    peer = next(peer for peer in layers.peers.PEERS if peer.name == "hf-t5")
    monkeypatch.setattr(layers.peers, "installed", lambda: [peer])
    shape = {"what": "layer", "mode": "train", "width": 768, "length": 512, "batch": 4, "dropout": 0.0, "dtype": "x"}
    theirs = {**shape, "encoding": str(peer), "ratio": 1.1, "spread": 0.01}
    for ours, slower in ((1.12, 0), (1.3, 1)):
        rows = [theirs, {**shape, "encoding": "t5", "ratio": ours, "spread": 0.01}]
        assert len(list(layers.slower_than_peers(rows))) == slower
