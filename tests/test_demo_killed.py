"""The demo at preset smoke, killed in every stage: it ends in what an unbroken run ends in."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
KINDS = ("corpus", "subwords", "binarise", "train", "generate", "score", "measure", "report")
MEASURED = ("speed_ratio", "command")  # a time, and the path of the output


def start(output: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "recipes.demo", "--preset", "smoke", "--jobs", "1", "--output", str(output)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, start_new_session=True)


def kill_in(kind: str, output: Path) -> None:
    """The run and its commands at once, as when the machine goes down, as soon as such a stage has begun."""
    with start(output) as process:
        while not list((output / ".stages").glob(f"{kind}*.begun")):
            assert process.poll() is None, f"no {kind} began"
            time.sleep(0.02)
        time.sleep(1.5 if kind in ("binarise", "train", "generate", "measure") else 0.1)  # into its work
        os.killpg(process.pid, signal.SIGKILL)
    assert not (output / "result.json").exists()


def outcome(output: Path) -> tuple[list[dict[str, object]], dict[str, str]]:
    rows = json.loads((output / "results.json").read_text())
    texts = {path.parent.name: path.read_text() for path in output.glob("generated/*/generate-test.txt")}
    return [{key: row[key] for key in row if key not in MEASURED} for row in rows], texts


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_demo_killed_in_every_stage_ends_in_the_same_result(tmp_path: Path) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken in pieces"
    for kind in KINDS:
        kill_in(kind, broken)
    for output in (broken, whole):
        with start(output) as process:
            assert process.wait() == 0
    assert outcome(broken) == outcome(whole)
    assert outcome(whole)[1]
