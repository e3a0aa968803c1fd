"""Test the estimate of the time that a run still takes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from recipes.lib.logs import log_of
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
    return Remaining([*TRAININGS, SCORE], Ledger(tmp_path / ".stages"), tmp_path, 1, lambda: clock[0])


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
    assert remaining.seconds(TRAININGS[:1]) == pytest.approx(60 * 3.5 + 2 * 60 * 5)
    assert remaining.text(TRAININGS[:1]) == "about 14 min left | "
    remaining.slots = 2
    assert remaining.text(TRAININGS[:1]) == "about 7 min left | "


def test_finished_stages_tell_how_long_others_of_their_kind_take(remaining: Remaining) -> None:
    remaining.ledger.start(TRAININGS[0])
    remaining.ledger.finish(TRAININGS[0])
    path = remaining.ledger.folder / "train.a.done"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"seconds": 30.0}))
    assert remaining.text([]) == "about 60 s left | "
    remaining.stages = [TRAININGS[0], SCORE]
    assert remaining.text([SCORE]) == ""
