"""Translate commands to actions: train on at most 22 actions, test on 24 to 48 (Lake and Baroni 2018, experiment 2)."""

from __future__ import annotations

from .commands import split_by
from .task import Task

LONGEST = 22  # actions of a training example


def part(words: list[str], actions: list[str]) -> str:
    return "train" if len(actions) <= LONGEST else "beyond"


PRINTED = (
    "13.8 % with the network that is best over all experiments (an LSTM of two layers of width 200, without "
    "attention); 20.8 % with the network that is best in this experiment (a GRU of one layer of width 50, with "
    "attention). Both are means of five runs with 100,000 updates of one example."
)

TASK = Task("encoder-decoder", "actions", "Lake and Baroni 2018", None, split_by(part), PRINTED)
