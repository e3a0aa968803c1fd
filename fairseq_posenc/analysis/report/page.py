"""Write the report page: one HTML file that loads nothing from the network."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from ..results import SCORES
from .charts import PALETTE, X, axes, cost_charts, library, loss_charts
from .columns import columns
from .papers import paper_tables
from .runs import Run
from .targets import BOOKS, MODEL

FOLDER = Path(__file__).parent
SCRIPTS = ("table.js", "charts.js")
#: Characters of JSON that could end a script or begin a comment of HTML.
UNSAFE = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}


def page(runs: Sequence[Run]) -> str:
    """Return the page that compares the runs.

    Raises:
        BokehMissingError: Bokeh is not installed.
    """
    entries = [entry for run in runs for entry in run.entries]
    losses = loss_charts([item for run in runs for item in run.losses])
    scores = cost_charts(entries)
    scripts = [library(), *(_text(name) for name in SCRIPTS)]
    charts = [
        {"target": f"{kind}-{number}", "item": chart.item, "entries": chart.entries}
        for kind, group in (("loss", losses), ("cost", scores))
        for number, chart in enumerate(group)
    ]
    # Jinja2 escapes all texts from results, except those that the template marks as safe.
    environment = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html").render(
        policy=_policy(scripts),
        style=_text("page.css"),
        scripts=scripts,
        charts=_json(charts),
        entries=entries,
        columns=columns(entries),
        losses=losses,
        scores=scores,
        axes={X + label: label for label in axes(entries)},
        colours=len(PALETTE),
        tables=paper_tables(entries),
        figures=[(run, path, b64encode(path.read_bytes()).decode()) for run in runs for path in run.figures],
        runs=[(run, _about(run), _facts(run.facts), _commands(run)) for run in runs],
        model=MODEL,
        books=BOOKS,
    )


def _text(name: str) -> str:
    """Return the text of a style sheet or script in this folder."""
    return (FOLDER / name).read_text(encoding="utf-8")


def _policy(scripts: Sequence[str]) -> str:
    """Return the content security policy that lets the browser run only these scripts, and load nothing."""
    hashes = " ".join(f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'" for script in scripts)
    return f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src {hashes}"


def _json(value: object) -> str:
    """Return data for the page's scripts, escaped so that no text in the data ends the element that holds it."""
    return "".join(UNSAFE.get(character, character) for character in json.dumps(value))


def _about(run: Run) -> str:
    """Return the recipe of a run, its number of rows and its main scores."""
    scores = sorted({name for entry in run.entries for name in entry.scores if name in SCORES})
    return ", ".join([run.facts["recipe"], f"{len(run.entries)} rows", *scores])


def _facts(facts: Mapping[str, Any]) -> dict[str, str]:
    """Return what is known about a run, keyed by its title."""
    lines = {
        "Recipe": facts["recipe"],
        "Commit": facts.get("commit", ""),
        "Seed": facts.get("seed", ""),
        "Machine": _pairs(facts.get("machine")),
        "Versions": _pairs(facts.get("versions")),
    }
    return {name: str(text) for name, text in lines.items() if text != ""}


def _pairs(facts: object) -> str:
    """Return names and values as one line of text, with `none` for an empty list."""
    if not isinstance(facts, dict):
        return ""
    texts = {
        name: ", ".join(map(str, value)) or "none" if isinstance(value, list) else value
        for name, value in facts.items()
    }
    return ", ".join(f"{name} {text}" for name, text in texts.items())


def _commands(run: Run) -> dict[str, str]:
    """Return the commands of a run, keyed by their headings."""
    trainings = {f"{entry.label}, training": entry.facts.get("command") for entry in run.entries}
    commands = {"The whole run": run.facts.get("command"), **trainings}
    return {name: str(text) for name, text in commands.items() if text}
