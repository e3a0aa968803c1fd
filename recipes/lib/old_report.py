"""Write result.json and report.md: the results, and everything that is needed to repeat the run."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypedDict

from .machine import machine, versions
from .outputs import RESULT
from .package import interval, write_whole
from .recipe import Hints, Plan, Recipe, Row, S
from .reported import as_text
from .stages import SKIPPED, Ledger, Stage

SMOKE = "The preset `smoke` only checks that every stage works. Its scores say nothing about position encodings."


class Result(TypedDict):
    """Describe result.json. Later versions of a recipe must be able to read old files, so no field may be renamed.

    `commit` holds several commits if the code changed during the run. `minutes` holds the duration of each stage.
    """

    recipe: str
    command: str
    commit: str
    versions: dict[str, str]
    seed: int
    seeds: list[int]
    machine: dict[str, object]
    minutes: dict[str, float]
    settings: dict[str, Any]
    results: list[Row]


def write(recipe: Recipe[S], settings: S, plan: Plan, ledger: Ledger, output: Path, arguments: list[str]) -> None:
    """Write the report first and result.json last, so that there is never a result.json without a report."""
    facts: Result = {
        "recipe": recipe.name,
        "command": shlex.join([recipe.program, *arguments]),
        "commit": " then ".join(commits(plan.stages(), ledger)),
        "versions": versions(),
        "seed": settings.seed,
        "seeds": list(settings.training_seeds.seeds),
        "machine": machine(),
        "minutes": {stage.name: minutes(stage, ledger) for stage in plan.stages()},
        "settings": asdict(settings),
        "results": recipe.results(settings, output),
    }
    if recipe.own_report is None:
        hints = recipe.hints(settings, output)
        smoke = (SMOKE,) if settings.preset == "smoke" else ()
        notes = (*smoke, *recipe.remarks(settings, output), *plan.notes)
        write_whole(output / recipe.report, markdown(recipe, notes, hints, facts))
    write_whole(output / RESULT, json.dumps(facts, indent=1) + "\n")


def commits(stages: Iterable[Stage], ledger: Ledger) -> list[str]:
    """Return the commits with which the stages ran, in order; several commits mean that the code has changed."""
    markers = sorted((ledger.read(stage) for stage in stages), key=lambda marker: float(marker.get("started", 0)))
    ran = [marker for marker in markers if not marker.get(SKIPPED)]
    named = " then ".join(str(marker.get("commit", "unknown")) for marker in ran)  # a stage may have several
    return list(dict.fromkeys(named.split(" then ")))


def minutes(stage: Stage, ledger: Ledger) -> float:
    """Return how many minutes a stage took."""
    marker = ledger.read(stage)
    return round(marker["seconds"] / 60, 2)


def table(rows: list[Row], forms: Mapping[str, str] | None = None) -> str:
    """Return a table in Markdown with the columns of the first row.

    Args:
        rows: Rows of the table.
        forms: Formats for the numbers of a column (default: `.4g`).
    """
    from tabulate import tabulate  # imported here, because --list and --dry-run must work without it

    if not rows:
        return "This recipe has no table of results."
    cells = [[_cell(row.get(name, ""), (forms or {}).get(name, ".4g")) for name in rows[0]] for row in rows]
    return tabulate(cells, list(rows[0]), tablefmt="github", disable_numparse=True)


def _cell(value: object, form: str = ".4g") -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = f"{value:,}" if isinstance(value, int) else f"{value:{form}}" if isinstance(value, float) else str(value)
    return text.replace("|", r"\|").replace("\n", " ")


def results(rows: list[Row], columns: tuple[str, ...], forms: Mapping[str, str] | None = None) -> str:
    """Return the table of results. Columns without any value are left out.

    A long value that all rows share, such as a signature of sacrebleu, is shown below the table.
    """
    used = dict.fromkeys(name for row in rows for name, value in row.items() if value is not None)
    rows = [{name: as_text(row.get(name)) for name in columns or used if name in used} for row in rows]
    same = {name: value for name, value in (rows[0] if rows else {}).items() if len(str(value)) > 20}
    same = {name: value for name, value in same.items() if all(row[name] == value for row in rows)}
    rows = [{name: value for name, value in row.items() if name not in same} for row in rows]
    return "\n\n".join([table(rows, forms), *(f"{name}: `{value}`" for name, value in same.items())])


def main_table(rows: list[Row], headings: Mapping[str, str], forms: Mapping[str, str] | None = None) -> str:
    """Return the main table. If the 95 % interval of a score is known, the score is followed by ± and half the
    interval's width.

    Args:
        rows: Rows of the results.
        headings: Heading of each column, keyed by the name of the column in the results. Columns without any value are
            left out.
        forms: Formats for the numbers of a column.
    """
    table_rows: list[Row] = [{} for _ in rows]
    for name, heading in headings.items():
        if all(row.get(name) is None for row in rows):
            continue
        widths = [None if row.get(name) is None else interval(row, name)[0] for row in rows]
        form = (forms or {}).get(name, ".4g")
        title = f"{heading} ± 95 % interval" if any(widths) else heading
        for cells, row, width in zip(table_rows, rows, widths, strict=True):
            of_width = form if form.endswith("f") else ".2g"  # as many decimals as the score
            cells[title] = as_text(row.get(name)) if width is None else f"{row[name]:{form}} ± {width:{of_width}}"
    return table(table_rows, {heading: (forms or {}).get(name, ".4g") for name, heading in headings.items()})


def heading(seeds: Sequence[int]) -> str:
    """Return the header of the table of results, which names the seeds of the training runs."""
    if len(seeds) == 1:
        return f"Results from one seed ({seeds[0]}): differences between rows may be chance"
    return f"Results from {len(seeds)} seeds ({', '.join(map(str, seeds))})"


def markdown(recipe: Recipe[S], notes: tuple[str, ...], hints: Hints, facts: Result) -> str:
    host: dict[str, Any] = facts["machine"]
    where = f"{host['cores']} cores, {host['memory_gib']} GiB, {', '.join(host['gpus']) or 'no GPU'}"
    versions = ", ".join(f"{name} {version}" for name, version in facts["versions"].items())
    stages: list[Row] = [{"stage": name, "minutes": time} for name, time in facts["minutes"].items()]
    details = results(facts["results"], recipe.columns, recipe.forms)
    parts = [f"# {facts['recipe']}", recipe.description, f"## {heading(facts['seeds'])}"]
    parts += [main_table(facts["results"], recipe.main, recipe.forms)] if recipe.main else [details]
    if recipe.figure:
        parts.append(f"![{recipe.name}]({recipe.figure})")
    parts += [f"{title}\n\n```\n{command}\n```" for title, command in hints.items()]
    parts += ["## Details", details] if recipe.main else []
    parts += ["## How it was made", *notes]
    parts.append(f"Seed {facts['seed']}; commit {facts['commit']}; {versions}; {where}.")
    parts += [f"```\n{facts['command']}\n```", table(stages)]
    return "\n\n".join(parts) + "\n"
