"""Translate commands to actions: train on at most 22 actions, test on 24 to 48 (Lake and Baroni 2018, experiment 2)."""

from __future__ import annotations

from .commands import split_by
from .task import Task

LONGEST = 22  # actions of a training example


def part(words: list[str], actions: list[str]) -> str:
    return "train" if len(actions) <= LONGEST else "beyond"


TASK = Task("encoder-decoder", "actions", "Lake and Baroni 2018", None, split_by(part))
