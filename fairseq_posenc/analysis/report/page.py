"""Write the report page: one HTML file that loads nothing from the network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..results import SCORES
from .charts import PALETTE, Chart, axes, cost_charts, library, loss_charts
from .columns import Column, columns
from .markup import code, element, image, json_script, package_file, policy, wrapped
from .papers import PaperCell, PaperTable, paper_tables
from .runs import Entry, Run
from .targets import BOOKS, MODEL

SCRIPTS = ("table.js", "charts.js")
TITLE = "Comparison of runs"


def page(runs: Sequence[Run]) -> str:
    """Return the page that compares the runs.

    Raises:
        BokehMissingError: Bokeh is not installed.
    """
    entries = [entry for run in runs for entry in run.entries]
    losses = loss_charts([item for run in runs for item in run.losses])
    scores = cost_charts(entries)
    sections = {
        "Results": _results(entries),
        "Losses": _charts(
            losses, "loss", "Use the buttons of a chart to zoom. Point at a curve to see its training run."
        ),
        "Scores": _cost_choice(entries) + _charts(scores, "cost", "Bars are 95 % intervals.") if scores else "",
        "Papers": _papers(paper_tables(entries)),
        "Figures": "".join(map(_figures, runs)),
        "Runs": "".join(map(_run, runs)),
    }
    data = [
        {"target": f"{kind}-{number}", "item": chart.item, "entries": chart.entries}
        for kind, charts in (("loss", losses), ("cost", scores))
        for number, chart in enumerate(charts)
    ]
    return _document({name: content for name, content in sections.items() if content}, data)


def _document(sections: Mapping[str, str], data: list[dict[str, Any]]) -> str:
    scripts = [library(), *map(package_file, SCRIPTS)]
    links = "".join(element("a", name, href=f"#{_identifier(name)}") for name in sections)
    head = [
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy(scripts)}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        element("title", TITLE),
        f"<style>{package_file('page.css')}</style>",
    ]
    theme = '<button type="button" id="theme">Dark colours</button>'
    header = f"{element('h1', TITLE)}<nav aria-label='Sections'>{links}{theme}</nav>"
    main = [
        wrapped("section", f"{element('h2', name)}{content}", id=_identifier(name))
        for name, content in sections.items()
    ]
    body = [wrapped("header", header), wrapped("main", "\n".join(main)), json_script("charts", data)]
    body += [f"<script>{script}</script>" for script in scripts]
    lines = ["<!DOCTYPE html>", '<html lang="en">', wrapped("head", "\n".join(head)), wrapped("body", "\n".join(body))]
    return "\n".join([*lines, "</html>", ""])


def _identifier(name: str) -> str:
    return name.lower().replace(" ", "-")


def _results(entries: Sequence[Entry]) -> str:
    shown = columns(entries)
    filter_ = (
        '<div class="controls"><label for="filter">Filter</label>'
        '<input id="filter" type="search" autocomplete="off" placeholder="words that a row must contain">'
        '<output id="count" for="filter"></output></div>'
    )
    head = wrapped("tr", "".join(map(_heading, shown)))
    rows = "".join(_row(number, entry, shown) for number, entry in enumerate(entries))
    table = wrapped("table", f"{wrapped('thead', head)}{wrapped('tbody', rows)}", id="results-table")
    note = "Numbers after ± are half the width of the 95 % confidence interval. The filter also applies to the charts."
    scroll = wrapped("div", table, class_="scroll", tabindex="0", role="region", aria_label="Table of results")
    return f"{filter_}{scroll}{element('p', note, class_='note')}"


def _heading(column: Column) -> str:
    button = element("button", column.title, type="button", title=column.about)
    kind = "number" if column.numeric else "text"
    return wrapped("th", button, scope="col", aria_sort="none", class_=kind)


def _row(number: int, entry: Entry, shown: Sequence[Column]) -> str:
    cells = []
    for place, column in enumerate(shown):
        cell = column.cell(entry)
        within = "" if cell.within is None else element("span", f" ± {cell.within:.2g}", class_="within")
        attributes = {"class_": "number" if column.numeric else "text"}
        attributes |= {"data_value": repr(cell.value)} if cell.value is not None else {}
        attributes |= {"title": cell.full} if cell.full not in ("", cell.text) else {}
        content = element("span", cell.text) + within
        cells.append(
            wrapped("th", content, scope="row", **attributes) if not place else wrapped("td", content, **attributes)
        )
    return wrapped("tr", "".join(cells), data_entry=str(number))


def _charts(charts: Sequence[Chart], kind: str, note: str) -> str:
    if not charts:
        return ""
    boxes = "".join(_chart(chart, f"{kind}-{number}") for number, chart in enumerate(charts))
    return element("p", note, class_="note") + wrapped("div", boxes, class_="charts")


def _chart(chart: Chart, identifier: str) -> str:
    swatches = [
        wrapped("li", f"{_swatch(colour, again=number >= len(PALETTE))}{element('span', name)}")
        for number, (name, colour) in enumerate(chart.legend.items())
    ]
    legend = wrapped("ul", "".join(swatches), class_="legend")
    frame = wrapped("div", "", id=identifier, class_="chart", role="group", aria_label=chart.title)
    return wrapped("figure", f"{element('figcaption', chart.title)}{frame}{legend}")


def _cost_choice(entries: Sequence[Entry]) -> str:
    options = "".join(element("option", text, value=name) for name, text in axes(entries).items())
    return f'<div class="controls"><label for="cost">Axis</label><select id="cost">{options}</select></div>'


def _swatch(colour: str, again: bool) -> str:
    """Return a short line for the legend; it is dashed if another line already has its colour."""
    return f'<span class="swatch{" again" * again}" style="border-color:{colour}"></span>'


def _papers(tables: Sequence[PaperTable]) -> str:
    if not tables:
        return ""
    note = "Each cell shows the paper's number above our score. "
    note += "If our score is missing, the cell has a command that computes it, or a reason why no recipe does. "
    note += f"{MODEL} stands for a checkpoint that was pretrained with the encoding of the row, "
    note += f"and {BOOKS} for a folder with one file per book."
    return element("p", note, class_="note") + "".join(map(_paper, tables))


def _paper(table: PaperTable) -> str:
    """Return a paper's table in a section, which is folded if no cell has a score of a recipe run."""
    head = "".join(element("th", name, scope="col", class_="text") for name in ("Row", *table.columns))
    lines = []
    for name, cells in table.rows.items():
        row = "".join(wrapped("td", _paper_cell(cells.get(column))) for column in table.columns)
        lines.append(wrapped("tr", wrapped("th", element("span", name), scope="row") + row))
    content = wrapped("table", wrapped("thead", wrapped("tr", head)) + wrapped("tbody", "".join(lines)))
    scroll = wrapped("div", content, class_="scroll", tabindex="0", role="region", aria_label=table.title)
    summary = element("summary", f"{table.title}: {table.filled or 'no'} score{'s' * (table.filled != 1)} of ours")
    return wrapped("details", summary + scroll, **({"open": "open"} if table.filled else {}), class_="paper")


def _paper_cell(cell: PaperCell | None) -> str:
    if cell is None:
        return ""
    if cell.reason:
        return f"{element('span', cell.printed)}<br>{element('small', cell.reason)}"
    if cell.ours is None:
        return element("span", cell.printed) + wrapped("details", element("summary", "command") + code(cell.command))
    within = "" if cell.ours.within is None else f" ± {cell.ours.within:.2g}"
    within += f" (median of {cell.ours.seeds})" if cell.ours.median else ""
    differs = element("small", cell.differs) if cell.differs else ""
    return f"{element('span', cell.printed)}<br>{element('b', f'{cell.ours.value:.4g}{within}')} {differs}"


def _figures(run: Run) -> str:
    return "".join(
        wrapped(
            "figure", f"{element('figcaption', f'{run.name}: {path.name}')}{image(path, f'{run.name}: {path.stem}')}"
        )
        for path in run.figures
    )


def _run(run: Run) -> str:
    """Return the software environment and the commands of a run in a folded section."""
    facts = run.facts
    lines = {
        "Recipe": facts["recipe"],
        "Commit": facts.get("commit", ""),
        "Seed": facts.get("seed", ""),
        "Machine": _pairs(facts.get("machine")),
        "Versions": _pairs(facts.get("versions")),
    }
    terms = "".join(f"{element('dt', name)}{element('dd', str(text))}" for name, text in lines.items() if text != "")
    commands = {f"{entry.label}, training": entry.command for entry in run.entries if entry.command}
    commands = {"The whole run": str(facts.get("command", "")), **commands}
    blocks = "".join(element("h3", name) + code(text) for name, text in commands.items() if text)
    scores = sorted({score.column for entry in run.entries for name, score in entry.scores.items() if name in SCORES})
    about = f"{facts['recipe']}, {len(run.entries)} rows{', ' + ', '.join(scores) if scores else ''}"
    summary = wrapped("summary", f"{element('b', run.name)} {element('span', about)}")
    return wrapped("details", f"{summary}{wrapped('dl', terms)}{blocks}")


def _pairs(facts: object) -> str:
    """Return names and values as one line of text, with `none` for an empty list."""
    if not isinstance(facts, dict):
        return ""
    texts = {
        name: ", ".join(map(str, value)) or "none" if isinstance(value, list) else value
        for name, value in facts.items()
    }
    return ", ".join(f"{name} {text}" for name, text in texts.items())
