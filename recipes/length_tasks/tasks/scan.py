"""Translate all commands of SCAN to actions (Lake and Baroni 2018), in two published splits.

The grammar has 20,910 commands: `jump twice and turn opposite left` becomes JUMP JUMP LTURN LTURN. In `scan-length`,
the training commands have at most 22 actions, and those of the test 24 to 48 (experiment 2 of the paper). In
`scan-template`, no training command contains `around right`, and the test commands contain phrases such as `walk around
right` (Loula et al. 2018); commands with `turn around right` are in no set.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

from .task import Example, Kind, Sizes, Task

ACTIONS = {"walk": "WALK", "look": "LOOK", "run": "RUN", "jump": "JUMP"}
TURNS = {"left": "LTURN", "right": "RTURN"}
TIMES = {"": 1, "twice": 2, "thrice": 3}
LONGEST = 22  # actions of a training example of `scan-length`
Meaning = tuple[list[str], list[str]]  # words of a command, and the actions that it means


def phrases() -> Iterator[Meaning]:
    """Yield all phrases without `twice`, `thrice`, `and` and `after`."""
    for verb, action in ACTIONS.items():
        yield [verb], [action]
    for verb, actions in [*((verb, [action]) for verb, action in ACTIONS.items()), ("turn", [])]:
        for direction, turn in TURNS.items():
            yield [verb, direction], [turn, *actions]
            yield [verb, "opposite", direction], [turn, turn, *actions]
            yield [verb, "around", direction], [turn, *actions] * 4


def commands() -> Iterator[Meaning]:
    """Yield all commands with their actions."""
    repeated = [
        ([*words, *([times] if times else [])], actions * number)
        for words, actions in phrases()
        for times, number in TIMES.items()
    ]
    yield from repeated
    for first, first_actions in repeated:
        for second, second_actions in repeated:
            yield [*first, "and", *second], first_actions + second_actions
            yield [*first, "after", *second], second_actions + first_actions


def split_by(
    part: Callable[[list[str], list[str]], str | None],
) -> Callable[[random.Random, Sizes], dict[str, list[Example]]]:
    """Return a function that divides the commands of SCAN into the sets of a published split.

    The set `beyond` is the published test set. A twentieth of the published training set becomes the validation set,
    and another twentieth becomes the test set `within`. The length of an example is its number of actions.

    Args:
        part: Function that takes a command and its actions, and returns the published set of the command: `train` or
            `beyond` (the test set). If the command is in no set, the function returns None.
    """

    def split(rng: random.Random, sizes: Sizes) -> dict[str, list[Example]]:
        parts: dict[str | None, list[Example]] = {"train": [], "beyond": [], None: []}
        for words, actions in commands():
            parts[part(words, actions)].append(Example(len(actions), words, actions))
        train, number = parts["train"], len(parts["train"]) // 20
        rng.shuffle(train)
        valid, within = train[:number], train[number : 2 * number]
        return {"train": train[2 * number :], "valid": valid, "within": within, "beyond": parts["beyond"]}

    return split


def part_by_length(words: list[str], actions: list[str]) -> str:
    return "train" if len(actions) <= LONGEST else "beyond"


def part_by_template(words: list[str], actions: list[str]) -> str | None:
    command = " ".join(words)
    if "around right" not in command:
        return "train"
    return None if "turn around right" in command else "beyond"


KIND: Kind = "encoder-decoder"
TASKS = {
    "scan-length": Task(KIND, "actions", "Lake and Baroni 2018", None, split_by(part_by_length)),
    "scan-template": Task(KIND, "actions", "Loula et al. 2018", None, split_by(part_by_template)),
}
