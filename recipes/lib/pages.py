"""Write the results of a run as Markdown, as JSON, and as a page of HTML that loads nothing from the network."""

from __future__ import annotations

import argparse
import base64
import html
import json
import os
import re
from collections.abc import Iterable, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple

from fairseq_posenc.core.words import visible
from fairseq_posenc.core.writing import write_all_whole

Row = dict[str, Any]
Cells = list[str]
SMOKE = "The preset `smoke` only checks that every step works. Its scores say nothing about position encodings."
STYLE = (
    "body{font:15px/1.5 sans-serif;max-width:75em;margin:2em auto;padding:0 1em}table{border-collapse:collapse}"
    "td,th{border:1px solid #999;padding:.2em .6em;text-align:left}pre{background:#eee;padding:.6em;overflow-x:auto}"
    "img{max-width:100%}"
)


class Part(NamedTuple):
    """Hold a part of the report: a heading, a paragraph, a code block, a table or the file name of a figure."""

    kind: str
    content: Any


def write(args: argparse.Namespace, facts: Row, metrics: list[str]) -> None:
    """Write results.md, results.html and results.json.

    Args:
        args: Command line of the report.
        facts: Content of results.json.
        metrics: Titles of the scores; the first is the main one.
    """
    parts = list(_parts(args, facts, metrics))
    texts = {
        "results.md": "\n\n".join(map(_markdown, parts)) + "\n",
        "results.html": _html([*parts, Part("code", _commands(facts))], args.run, facts["recipe"]),
        "results.json": json.dumps(facts, indent=1, ensure_ascii=False) + "\n",
    }
    write_all_whole({args.run / name: visible(text) for name, text in texts.items()})


def _commands(facts: Row) -> str:
    return "\n\n".join(f"# {step['name']}, {step['seconds']} s\n{step['command']}" for step in facts["steps"])


def _parts(args: argparse.Namespace, facts: Row, metrics: list[str]) -> Iterable[Part]:
    rows, seeds = facts["results"], facts["seeds"]
    yield Part("heading", f"# {facts['recipe']}")
    lines = (Path(os.environ["HERE"]) / "run.sh").read_text(encoding="utf-8").splitlines()[1:]
    yield Part("text", " ".join(line[2:] for line in takewhile(lambda line: re.match("# [^ ]", line), lines)))
    yield from (Part("text", SMOKE) for _ in "1" if facts["settings"]["preset"] == "smoke")
    numbers = f"{len(seeds)} seeds ({', '.join(map(str, seeds))})"
    one = f"one seed (seed {seeds[0]}): differences between rows may be chance"
    yield Part("heading", f"## Results from {numbers if len(seeds) > 1 else one}")
    items = list(dict.fromkeys(row[args.item] for row in rows))
    if len(items) > 1:
        yield Part("table", _overview(args, rows, metrics[0], items))
    yield Part("table", _main(args, rows, metrics))
    if _has(rows, "±"):
        yield Part("text", "± is half the width of the 95 % interval over the samples of the test set.")
    yield from (Part("text", text) for text in args.note)
    yield from (Part("text", args.notes.read_text(encoding="utf-8").strip()) for _ in "1" if args.notes)
    shown = {args.item, "encoding", "model", "sd", "seeds", "±", str(args.p).partition("=")[0], *metrics}
    further = [name for name in dict.fromkeys(name for row in rows for name in row) if _is_detail(name, rows, shown)]
    if further:
        yield Part("heading", "## Details")
        yield Part("table", _table(rows, [*_labels(args, rows), *further], args.digits))
    for name in dict.fromkeys(
        name for row in rows for name, value in row.items() if _is_text(name, value) and name != args.item
    ):
        texts = dict.fromkeys(row[name] for row in rows if row.get(name))
        yield Part("text", f"{name}: " + ", ".join(f"`{text}`" for text in texts))
    yield from (Part("figure", path.name) for path in sorted(args.run.glob("*.png")))
    yield Part("heading", "## How it was made")
    yield Part("code", facts["command"])
    host = facts["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in facts["versions"].items())
    where = f"{host['cores']} cores, {host['memory_gib']} GiB, {', '.join(host['gpus']) or 'no GPU'}"
    yield Part("text", f"Commit {facts['commit']}; {versions}; {where}.")
    yield Part("table", [["step", "runs", "seconds"], *_times(facts["steps"])])
    yield Part("text", "The first command of each kind (results.html and results.json have the commands of all steps):")
    firsts = {step["name"].partition(":")[0]: step["command"] for step in reversed(facts["steps"])}
    yield Part("code", "\n".join(reversed(firsts.values())))


def _times(steps: Sequence[Row]) -> Iterable[Cells]:
    """Yield the number and the duration of the steps of each kind."""
    for kind in dict.fromkeys(step["name"].partition(":")[0] for step in steps):
        seconds = [step["seconds"] for step in steps if step["name"].partition(":")[0] == kind]
        yield [kind, str(len(seconds)), str(sum(seconds))]


#: Texts of a row that the main table or the list of steps has.
OTHER_TEXTS = ("encoding", "model", "failed", "command", "commit", "differs from the paper")


def _is_text(name: str, value: object) -> bool:
    return (
        isinstance(value, str) and name not in OTHER_TEXTS and not name.startswith("paper") and " of seeds" not in name
    )


def _is_detail(name: str, rows: Sequence[Row], shown: set[str]) -> bool:
    values = [row[name] for row in rows if row.get(name) is not None]
    known = name in shown or name.startswith(("p (", "paper")) or name == "p"
    return bool(values) and not known and all(isinstance(value, int | float) for value in values)


def _labels(args: argparse.Namespace, rows: Sequence[Row]) -> list[str]:
    return [*([args.item] if any(row[args.item] for row in rows) else []), "encoding"]


def _overview(args: argparse.Namespace, rows: Sequence[Row], metric: str, items: Cells) -> list[Cells]:
    """Return a table with a row for each encoding and a column for each item."""
    names = dict.fromkeys(row.get("encoding") or row["model"] for row in rows)
    cells = {
        (row.get("encoding") or row["model"], row[args.item]): _score(row, metric, args.digits, row.get("±"))
        for row in rows
    }
    return [[metric, *items], *([name, *(cells.get((name, item), "–") for item in items)] for name in names)]


def _main(args: argparse.Namespace, rows: Sequence[Row], metrics: list[str]) -> list[Cells]:
    """Return the main table. Columns without any value are left out."""
    first = next(row["encoding"] for row in rows if row.get("encoding"))
    test = f"p against {first} (Welch's t-test, Holm's correction)"
    columns: dict[str, list[str]] = {name: [_label(row, name) for row in rows] for name in _labels(args, rows)}
    for metric in metrics:
        main = metric == metrics[0]
        title = (
            f"{metric}{' (lower is better)' * args.lower}{' [95 % interval]' * _has(rows, f'{metric}, 95 % interval')}"
        )
        columns[title] = [_score(row, metric, args.digits, row.get("±") if main else None) for row in rows]
        for name, heading in (
            ("p" if main else f"p ({metric})", test if main else f"p of {metric}"),
            ("paper" if main else f"paper's {metric}", args.paper or "paper" if main else f"{args.paper}: {metric}"),
        ):
            columns[heading] = [(_p if heading.startswith("p ") else _short)(row.get(name)) for row in rows]
    own = args.p.partition("=")[0] if args.p else "p of the recipe"
    columns[own] = [_p(row.get(own)) for row in rows]
    differs = [row.get("differs from the paper") for row in rows]
    columns["differs"] = ["–" if each is None else "; ".join(each) or "comparable" for each in differs]
    columns["failed"] = [_cell(row.get("failed"), 0) for row in rows]
    used = {title: cells for title, cells in columns.items() if any(cell != "–" for cell in cells)}
    return [list(used), *map(list, zip(*used.values(), strict=True))]


def _has(rows: Iterable[Row], name: str) -> bool:
    return any(row.get(name) is not None for row in rows)


def _label(row: Row, name: str) -> str:
    return str(row.get(name) or row.get("model") or "–")


def _score(row: Row, metric: str, digits: int, within: float | None) -> str:
    """Return a score with its interval over seeds or, for a single seed, half the width of its own interval."""
    text, ends = _cell(row.get(metric), digits), row.get(f"{metric}, 95 % interval")
    if ends:
        return f"{text} [{ends[0]:.{digits}f}, {'' if ends[1] is None else format(ends[1], f'.{digits}f')}]"
    return f"{text} ± {within:.{digits}f}" if within is not None and text != "–" else text


def _table(rows: Sequence[Row], names: list[str], digits: int) -> list[Cells]:
    cells = [
        [
            _label(row, name) if name == "encoding" else _cell(row.get(name), 1 if name == "minutes" else digits)
            for name in names
        ]
        for row in rows
    ]
    return [names, *cells]


def _cell(value: object, digits: int) -> str:
    if value is None or value == "":
        return "–"
    return f"{value:,}" if isinstance(value, int) else f"{value:.{digits}f}" if isinstance(value, float) else str(value)


def _p(value: float | None) -> str:
    """Return a p-value with three decimals."""
    return "–" if value is None else "< 0.001" if value < 0.0005 else f"{value:.3f}"


def _short(value: object) -> str:
    """Return a number of a paper with its own digits."""
    return f"{value:g}" if isinstance(value, float) else _cell(value, 0)


def _markdown(part: Part) -> str:
    match part.kind:
        case "table":
            head, *rows = [[cell.replace("|", r"\|").replace("\n", " ") for cell in row] for row in part.content]
            return "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows))
        case "code":
            return f"```\n{part.content}\n```"
        case "figure":
            return f"![{Path(part.content).stem}]({part.content})"
    return str(part.content)


def _html(parts: Iterable[Part], run: Path, title: str) -> str:
    body = "\n".join(_element(part, run) for part in parts)
    head = f'<meta charset="utf-8"><title>{html.escape(title)}</title><style>{STYLE}</style>'
    return f'<!DOCTYPE html>\n<html lang="en">\n<head>{head}</head>\n<body>\n{body}\n</body>\n</html>\n'


def _element(part: Part, run: Path) -> str:
    match part.kind:
        case "heading":
            marks, _, text = part.content.partition(" ")
            return f"<h{len(marks)}>{html.escape(text)}</h{len(marks)}>"
        case "table":
            head, *rows = [[html.escape(cell) for cell in row] for row in part.content]
            lines = ["".join(f"<th>{cell}</th>" for cell in head)]
            lines += ["".join(f"<td>{cell}</td>" for cell in row) for row in rows]
            return "<table>" + "".join(f"<tr>{line}</tr>" for line in lines) + "</table>"
        case "code":
            return f"<pre>{html.escape(part.content)}</pre>"
        case "figure":
            data = base64.b64encode((run / part.content).read_bytes()).decode()
            return f'<p><img alt="{html.escape(part.content)}" src="data:image/png;base64,{data}"></p>'
    return "<p>" + re.sub("`(.*?)`", r"<code>\1</code>", html.escape(part.content)) + "</p>"
