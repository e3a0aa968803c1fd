"""Test the status lines in a file, where a line cannot be rewritten."""

from __future__ import annotations

import time

import pytest

from recipes.lib import screen


def test_the_same_status_is_repeated_once_a_minute(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    shown = screen.Screen()
    for now, text in ((9, "a"), (10, "a"), (20, "a"), (69, "a"), (70, "a"), (75, "b"), (80, "b"), (90, "a")):  # noqa: B007
        shown.status(text)
    assert capsys.readouterr().out.splitlines() == ["[  10s] ... a", "[  70s] ... a", "[  80s] ... b", "[  90s] ... a"]
