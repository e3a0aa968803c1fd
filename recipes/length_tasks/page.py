"""Keep the results of a run in the documentation: tables in docs/length-tasks.md, the figures, and all rows as JSON.

python -m recipes.length_tasks.page --run results/length_tasks
"""

from __future__ import annotations

import argparse
import json
import re
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import mean, median
from typing import Any

from PIL import Image
from tabulate import tabulate

from recipes.lib import records
from recipes.lib.outputs import RESULT
from recipes.lib.package import write_whole
from recipes.lib.recipe import ROOT, Row
from recipes.lib.stages import read_json

from .compare import BASELINES
from .tasks.registry import task

DOCS = ROOT / "docs"
PAGE, ROWS = DOCS / "length-tasks.md", DOCS / "length-tasks.json"
FIGURES = {"lengths.png": "length-tasks.png", "tasks.png": "length-tasks-map.png"}
IMAGES = """\
The first figure shows the encodings with several seeds: the mean, and the range of all seeds as a band.
[length-tasks.json](length-tasks.json) has the values of all encodings.

![Exact match by length, with the range of the seeds](figures/length-tasks.png)

![Heat map of the exact match on the test set beyond](figures/length-tasks-map.png)"""
BLOCK = re.compile(r"(<!-- results -->\n).*(<!-- end -->)", re.DOTALL)
LEVEL = 0.05  # differences with smaller p-values are called significant
KEPT = ("command", "commit", "versions", "machine", "seeds")  # facts in length-tasks.json, besides the results


def tables(results: Sequence[Row]) -> str:
    """Return the tables of exact match, beyond and within, and the lists of significant differences."""
    return "\n\n".join(
        [
            "### Beyond the lengths of training",
            wrapped(
                "The table shows exact match in percent, with the standard deviation over seeds and, in brackets, how "
                "many of the training runs solved the task."
            ),
            table(results, "beyond"),
            "### Within the lengths of training",
            "The table shows exact match in percent.",
            table(results, "within"),
            "### Significant differences",
            wrapped(
                f"A difference of `beyond` is significant if p < {LEVEL} after Holm's correction, which covers the "
                "encodings of one task and one baseline. Only encodings with at least two seeds can differ "
                "significantly. A few seeds reveal only large differences between models whose seeds agree: no "
                "significant difference does not mean equal."
            ),
            "\n".join(wrapped(line) for baseline in BASELINES for line in differences(results, baseline)),
            *printed([*dict.fromkeys(row["task"] for row in results)]),
        ]
    )


def printed(tasks: Sequence[str]) -> list[str]:
    """Return a heading and a list of what papers report for the same tasks, or nothing if they report nothing."""
    found = {name: task(name) for name in tasks if task(name).printed}
    lines = [wrapped(f"- `{name}`, beyond ({of.source}): {of.printed}") for name, of in found.items()]
    return ["### Numbers of the papers", "\n".join(lines)] if lines else []


def table(results: Sequence[Row], split: str) -> str:
    """Return a table with a row for each encoding and a column for each task."""
    tasks, encodings = ([*dict.fromkeys(row[column] for row in results)] for column in ("task", "encoding"))
    cells = {(row["encoding"], row["task"]): _cell(row, split) for row in results}
    lines = [[f"`{label}`", *(cells[label, name] for name in tasks), _seeds(results, label)] for label in encodings]
    head = ["encoding", *(f"`{name}`" for name in tasks), "seeds"]
    return tabulate(
        lines, head, tablefmt="pipe", disable_numparse=True, colalign=("left", *["right"] * (len(head) - 1))
    )


def _seeds(results: Sequence[Row], encoding: str) -> str:
    """Return the number of seeds of an encoding, or the smallest and the largest number if runs of a task diverged."""
    numbers = [row["seeds"] for row in results if row["encoding"] == encoding]
    return str(min(numbers)) if len(set(numbers)) == 1 else f"{min(numbers)} to {max(numbers)}"


def _cell(row: Row, split: str) -> str:
    if row[split] is None:
        return "diverged"
    if split == "within":
        return f"{row['within']:.1f}"
    deviation = f" ± {row['sd']:.1f}" if row["sd"] is not None else ""
    solved = f" ({row['solved']})" if row["solved"] else ""
    return f"{mean(row['beyond of seeds']):.1f}{deviation}{solved}"  # row["beyond"] is rounded already


def differences(results: Sequence[Row], baseline: str) -> Iterable[str]:
    """Yield a line for each task, which names the encodings that differ significantly from the baseline, and the
    encodings that do not.
    """
    for of in dict.fromkeys(row["task"] for row in results):
        rows = {row["encoding"]: row for row in results if row["task"] == of}
        compared = {name: row for name, row in rows.items() if row[f"p {baseline}"] is not None}
        clear = {name: row for name, row in compared.items() if row[f"p {baseline}"] < LEVEL}
        parts = {
            f"better than `{baseline}`": [n for n, row in clear.items() if row["beyond"] > rows[baseline]["beyond"]],
            f"worse than `{baseline}`": [n for n, row in clear.items() if row["beyond"] < rows[baseline]["beyond"]],
            f"no significant difference from `{baseline}`": [name for name in compared if name not in clear],
            f"different from `{baseline}` in every seed, but the test is undefined without variation": [
                name for name, row in rows.items() if _constant(row, rows.get(baseline, row))
            ],
        }
        texts = [f"{text}: {', '.join(f'`{name}`' for name in names)}" for text, names in parts.items() if names]
        yield f"- `{of}`: {'; '.join(texts) or f'nothing is compared with `{baseline}`'}."


def _constant(row: Row, baseline: Row) -> bool:
    """Return whether a row and its baseline have several seeds, but no p-value: each repeats a value of its own."""
    return row is not baseline and min(row["seeds"], baseline["seeds"]) > 1 and row[f"p {baseline['encoding']}"] is None


def cost(facts: dict[str, Any], busy: float | None) -> str:
    """Return how long the training runs took, on which machine, and the command of the run.

    Args:
        facts: Contents of the run's result.json.
        busy: Minutes in which at least one stage was running; None if they are not known.
    """
    training = {stage: minutes for stage, minutes in facts["minutes"].items() if stage.startswith("train:")}
    slowest = max(training, key=lambda stage: training[stage])
    text = wrapped(
        f"The {len(training)} training runs took {60 * median(training.values()):.0f} seconds in the median and "
        f"{60 * training[slowest]:.0f} seconds at most (`{slowest}`), on {facts['machine']['cores']} CPU cores with "
        f"{facts['settings']['jobs']} runs at a time. Together they took {sum(training.values()) / 60:.1f} hours"
        + (f"; the whole run, with all examples and scores, took {busy / 60:.1f} hours. " if busy else ". ")
        + f"torch {facts['versions']['torch']}, commit {facts['commit']}. The command is:"
    )
    return f"{text}\n\n```bash\n{facts['command']}\n```"


def kept(facts: dict[str, Any]) -> str:
    """Return the facts to keep as JSON with a line for each row, so that differences between runs can be read."""
    head = json.dumps({key: facts[key] for key in KEPT}, indent=1).removesuffix("\n}")
    rows = ",\n  ".join(json.dumps(row) for row in facts["results"])
    return f'{head},\n "results": [\n  {rows}\n ]\n}}\n'


def wrapped(text: str) -> str:
    """Return a paragraph or an item of a list in lines of at most 120 characters."""
    return textwrap.fill(text, 120, subsequent_indent="  " * text.startswith("- "), break_on_hyphens=False)


def main() -> None:
    """Copy the results of the run that the command line names.

    Raises:
        SystemExit: The page has no place for the results.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", type=Path, required=True, metavar="DIR", help="Folder of the finished run.")
    run = parser.parse_args().run
    facts, page = read_json(run / RESULT), PAGE.read_text(encoding="utf-8")
    text = f"{tables(facts['results'])}\n\n{IMAGES}\n\n### Cost\n{cost(facts, records.busy_minutes(run))}\n"
    page, count = BLOCK.subn(lambda block: f"{block[1]}{text}{block[2]}", page)
    if count != 1:
        raise SystemExit(f"error: {PAGE} has {count} places between <!-- results --> and <!-- end -->, but needs one.")
    for figure, name in FIGURES.items():
        with Image.open(run / figure) as picture:  # 256 colours need a third of the space
            picture.convert("RGB").quantize(256).save(DOCS / "figures" / name, optimize=True)
    write_whole(ROWS, kept(facts))
    write_whole(PAGE, page)


if __name__ == "__main__":
    main()
