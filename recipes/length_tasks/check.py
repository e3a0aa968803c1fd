"""Check the settings of the length tasks, and print a line for each task and encoding, which run.sh reads.

A line has the task, the encoding, the kind of the model, the encodings of its stacks, and flags of generate.py.
"""

from __future__ import annotations

import argparse
from fractions import Fraction

from fairseq_posenc.core.refusal import InputError
from recipes.lib.encodings import WORKS, check, facts, parse

from .tasks.registry import TASKS
from .tasks.task import SPLITS

ENCODER = "sinusoidal"  # used in the encoder if an encoding works in decoders only
RANDOM = "-random"  # end of the name of a model whose positions are drawn at random in training


def stacks(label: str, name: str) -> str:
    """Return the encoding of the model that learns a task; for an encoder-decoder, it may be ENCODER/DECODER.

    Raises:
        InputError: The encoding is unknown, or it does not work in the model of this task.
    """
    encoding, needed = label.removesuffix(RANDOM), TASKS[name].kind.split("-")
    try:
        if "/" in encoding and len(needed) == 1:
            raise InputError(f"--pos-enc {label}: the model has no two stacks. Give one encoding.")
        if "/" not in encoding and len(needed) == 2 and works(encoding) == {"decoder"}:
            encoding = f"{ENCODER}/{encoding}"
        check(encoding, needed)
    except InputError as error:
        raise InputError(f"the task {name}: {error}") from None
    return encoding


def works(encoding: str) -> set[str]:
    """Return the kinds of stacks in which all of the combined encodings work."""
    return {stack for stack, key in WORKS.items() if all(facts(name)[key] for name in parse(encoding).names)}


def multiples(text: str) -> list[Fraction]:
    """Return the multiples of the maximum length in training that the test sets have.

    Raises:
        InputError: The text has something else, or the multiples do not fill both test sets.
    """
    try:
        values = [Fraction(part) for part in text.split(",")]
    except (ValueError, ZeroDivisionError):
        raise InputError(f"--tested {text}: this is no list of numbers. Give multiples such as 1/2,1,3/2,2.") from None
    if not 0 < min(values) <= 1 < max(values):
        problem = "multiples up to 1 are for the test set `within`, and greater multiples are for `beyond`"
        advice = "Give multiples above 0, at least one of them up to 1 and at least one above 1, such as 1,2"
        raise InputError(f"--tested {text}: {problem}. {advice}.")
    return values


def sizes(name: str, longest: int | None, tested: list[Fraction], rows: list[str]) -> list[str]:
    """Return the flags of generate.py for the lengths and numbers of examples; a published split needs none.

    Raises:
        InputError: A length is given for a published split.
    """
    task = TASKS[name]
    if task.longest is None:
        if longest is not None:
            problem = "the published split decides the lengths of this task"
            raise InputError(f"--longest.{name}: {problem}. Leave this option out.")
        return []
    longest = longest or task.longest
    lengths = sorted({max(1, int(multiple * longest)) for multiple in tested})
    return ["--longest", str(longest), "--tested", *map(str, lengths), *rows]


def count(text: str) -> int:
    """Read a whole number of at least 1."""
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"{text} must be at least 1")
    return number


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    add = parser.add_argument
    add("--tasks", required=True, metavar="NAME,...", help="Tasks to learn.")
    add("--pos-enc", nargs="+", required=True, metavar="NAME", help="Encodings.")
    add("--tested", required=True, metavar="N,...", help="Lengths of the test examples, as multiples.")
    longest = "Maximum length of a training example of this task."
    for name in TASKS:
        add(f"--longest.{name}", dest=name, type=count, metavar="N", help=longest)
    number = "Number of examples of this split."
    for name in SPLITS:
        add(f"--rows.{name}", dest=name, type=count, required=True, metavar="N", help=number)
    chosen = vars(parser.parse_args())
    rows = [word for name in SPLITS for word in (f"--{name}", str(chosen[name]))]
    try:
        tested, labels, tasks = multiples(chosen["tested"]), chosen["pos_enc"], chosen["tasks"].split(",")
        if twice := [name for name in (*labels, *tasks) if [*labels, *tasks].count(name) > 1]:
            raise InputError(f"{twice[0]} is named twice in --tasks, --pos-enc and --once. Name it once.")
        for name in tasks:
            flags = sizes(name, chosen[name], tested, rows)
            for label in labels:
                print(name, label, TASKS[name].kind, stacks(label, name), *flags)
    except InputError as error:
        raise SystemExit(f"error: {error}") from None


if __name__ == "__main__":
    main()
