"""Generate the examples of a task, as a folder that fairseq_posenc/tasks/answers.py reads."""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path

from fairseq_posenc.core.writing import whole_folder
from recipes.lib.lines import write

from .tasks.registry import TASKS
from .tasks.task import END, SPLITS, UNCOUNTED, Example, Sizes, Task


def write_task(folder: Path, task: Task, splits: Mapping[str, Sequence[Example]]) -> None:
    """Write the files of a task into a folder."""
    for name, examples in splits.items():
        lines = ("\t".join((str(item.length), " ".join(item.input), " ".join(item.output))) for item in examples)
        write(folder / f"{name}.tsv", lines)
    every = [item for examples in splits.values() for item in examples]
    symbols = {token for item in every for token in (*item.input, *item.output)} - {UNCOUNTED, END}
    write(folder / "dict.txt", (f"{symbol} 1" for symbol in sorted(symbols)))
    facts = {
        "kind": task.kind,
        "unit": task.unit,
        "source": task.source,
        "longest_input": 1 + max(len(item.input) for item in every),  # with <s>
        "longest_output": 1 + max(len(item.output) for item in every),  # with <s> or </s>
        "rows": {name: len(examples) for name, examples in splits.items()},
    }
    (folder / "answers.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--task", required=True, choices=TASKS, metavar="NAME", help="Task to generate.")
    add("--seed", type=int, required=True, metavar="N", help="Random seed of the examples.")
    text = "Maximum length of a training example (0: use the published split)."
    add("--longest", type=int, default=0, metavar="N", help=text)
    add("--tested", type=int, nargs="*", default=[], metavar="N", help="Lengths of the test examples.")
    for name in SPLITS:
        each = " and per length" if name in ("within", "beyond") else ""
        add(f"--{name}", type=int, default=0, metavar="N", help=f"Number of examples of the split {name}{each}.")
    add("--output", type=Path, required=True, metavar="DIR", help="Folder to write.")
    arguments = parser.parse_args()
    rows, task = {name: getattr(arguments, name) for name in SPLITS}, TASKS[arguments.task]
    try:
        splits = task.split(random.Random(arguments.seed), Sizes(arguments.longest, tuple(arguments.tested), rows))
    except ValueError as error:
        raise SystemExit(f"error: --tasks {arguments.task}: {error}") from None
    with whole_folder(arguments.output) as folder:
        write_task(folder, task, splits)


if __name__ == "__main__":
    main()
