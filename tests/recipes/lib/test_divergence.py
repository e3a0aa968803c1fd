"""Test that the log of a training tells whether it diverged. test_laws.py tests what recipes then do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fairseq_posenc.core.training_log import Divergence, read_divergence
from recipes.lib import divergence

ERROR = "Traceback (most recent call last):\nFloatingPointError: gradients are Nan/Inf\n"
LINE = "fairseq-train: error: The training with --pos-enc shaw diverged in update 47: gradients are Nan/Inf.\n"
EXACT = 'x | ERROR | diverged | {"num_updates": 47, "loss": 8.5}\n'


def log(*losses: float | str, end: str = "") -> str:
    lines = [
        f"x | train_inner | {json.dumps({'num_updates': 20 * n, 'loss': str(loss), 'wps': '9'})}\n"
        for n, loss in enumerate(losses, 1)
    ]
    return "$ fairseq-train\n" + "".join(lines) + end


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (log(7, 5, end=ERROR), Divergence(40, 5, finite=False)),
        (log(7, 5, end=EXACT + ERROR), Divergence(47, 8.5, finite=False)),
        (log(7, 5, end=EXACT + LINE), Divergence(47, 8.5, finite=False)),
        (log(end=ERROR), Divergence(0, None, finite=False)),
        (log(7, 5, "nan"), Divergence(40, 5, finite=False)),
        (log(7, 5, 6, 8, 9), Divergence(80, 9, finite=True)),
        (log(7, 5, 6, 6.9), None),
        (log(7, 6.9, 7.0, 7.1), None),  # it learned nothing, but lost nothing either
        (log(7, 5, end=ERROR) + log(7, 5, 4), None),  # the error of an earlier attempt
        (log(7, 5, end=EXACT + LINE) + log(7, 5, 4), None),
        (log(7, 5, end="RuntimeError: out of memory\n"), None),
    ],
)
def test_a_log_tells_whether_its_training_diverged(text: str, expected: Divergence | None, tmp_path: Path) -> None:
    (tmp_path / "log").write_text(text)
    assert read_divergence(tmp_path / "log") == expected
    assert divergence.text(tmp_path / "log") == (f"diverged at {expected}" if expected else "")
    assert read_divergence(tmp_path / "missing") is None
