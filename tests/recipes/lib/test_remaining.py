"""Test the estimate of the time that a run still takes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from recipes.lib.logs import log_of, progress
from recipes.lib.remaining import Remaining
from recipes.lib.stages import Ledger, Stage

TRAININGS = [Stage(f"train:{name}", ("fairseq-train", "--max-update", "100"), ()) for name in ("a", "b", "c")]
SCORE = Stage("score:a", ("score",), ())


def trained(stage: Stage, output: Path, updates: int) -> None:
    log = log_of(stage, output)
    log.parent.mkdir(parents=True, exist_ok=True)
    facts = {"epoch": 1, "update": 0.5, "loss": "3", "num_updates": str(updates)}
    log.write_text(f"$ fairseq-train\n2026 | INFO | train_inner | {json.dumps(facts)}\n")


@pytest.fixture
def clock() -> list[float]:
    return [0.0]


@pytest.fixture
def remaining(tmp_path: Path, clock: list[float]) -> Remaining:
    chains = [[TRAININGS[0], SCORE], *([training] for training in TRAININGS[1:])]
    return Remaining([chains], Ledger(tmp_path / ".stages"), tmp_path, 1, lambda: clock[0])


def test_nothing_is_said_before_a_training_shows_its_speed(remaining: Remaining, tmp_path: Path) -> None:
    assert remaining.text([]) == ""
    trained(TRAININGS[0], tmp_path, 10)
    assert remaining.text(TRAININGS[:1]) == ""


def test_a_running_training_tells_how_long_the_others_take(
    remaining: Remaining, tmp_path: Path, clock: list[float]
) -> None:
    trained(TRAININGS[0], tmp_path, 10)  # an earlier attempt made these updates
    remaining.text(TRAININGS[:1])
    clock[0] = 60.0
    trained(TRAININGS[0], tmp_path, 30)  # 20 updates per minute
    assert remaining.seconds(TRAININGS[:1]) == (pytest.approx(60 * 3.5 + 2 * 60 * 5), 1)
    assert remaining.text(TRAININGS[:1]) == "more than 14 min left (1 stage not counted) | "
    remaining.slots = 2
    assert remaining.text(TRAININGS[:1]) == "more than 7 min left (1 stage not counted) | "
    remaining.slots = 8  # but a training run takes 5 minutes
    assert remaining.text(TRAININGS[:1]) == "more than 5 min left (1 stage not counted) | "


def test_the_first_updates_are_no_estimate(remaining: Remaining, tmp_path: Path, clock: list[float]) -> None:
    trained(TRAININGS[0], tmp_path, 10)
    remaining.text(TRAININGS[:1])
    clock[0] = 5.0
    trained(TRAININGS[0], tmp_path, 11)
    assert remaining.text(TRAININGS[:1]) == ""


def finished(remaining: Remaining, stage: Stage, seconds: float) -> None:
    remaining.ledger.start(stage)
    remaining.ledger.finish(stage)
    path = remaining.ledger.folder / f"{stage.name.replace(':', '.')}.done"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"seconds": seconds}))


def test_finished_stages_tell_how_long_others_of_their_kind_take(remaining: Remaining, clock: list[float]) -> None:
    finished(remaining, TRAININGS[0], 30.0)
    assert remaining.text([]) == "more than 60 s left (1 stage not counted) | "
    assert remaining.text([SCORE]) == "more than 60 s left (1 stage not counted) | "
    finished(remaining, SCORE, 8.0)
    assert remaining.text([]) == "about 60 s left | "
    remaining.phases = [*remaining.phases, [[other := Stage("score:b", ("score",), ())]]]  # a later phase
    remaining.slots = 2
    assert remaining.text([]) == "about 38 s left | "
    remaining.text([other])
    clock[0] = 3.0
    assert remaining.text([other]) == "about 35 s left | "


def test_a_translation_counts_its_sentences(tmp_path: Path, clock: list[float]) -> None:
    stage = Stage("generate:a", ("fairseq-generate",), (tmp_path / "generated",))
    log = log_of(stage, tmp_path)
    assert progress(stage, log) == "generate:a 0 sentences"
    log.parent.mkdir()
    log.write_text("$ fairseq-generate\nINFO:data_utils:loaded 1,000 examples from: data-bin/test.en-de.en\n")
    remaining = Remaining([[[stage]]], Ledger(tmp_path / ".stages"), tmp_path, 1, lambda: clock[0])
    assert remaining.text([stage]) == ""
    (tmp_path / "generated").mkdir()
    lines = [f"{kind}-{number}\ttext S-\n" for number in range(200) for kind in "STHD"]
    (tmp_path / "generated" / "generate-test.txt").write_text("".join(lines))
    assert progress(stage, log) == "generate:a 200/1,000 sentences"
    clock[0] = 20.0
    assert remaining.text([stage]) == "about 80 s left | "
