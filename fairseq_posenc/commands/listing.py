"""`python -m fairseq_posenc list`: list the encodings that --pos-enc takes."""

from __future__ import annotations

import json
import shutil
import textwrap
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ..core.arguments import Parser
from ..core.options import describe, describe_common
from ..core.quiet import warnings_only
from ..core.syntax import NAME_FLAG, Spec, prefix
from ..encodings import build, get, names, spec_of
from ..encodings.building import parse
from ..encodings.facts import BASE, acts_in_layers, declared
from ..encodings.registry import kind_of


def rows() -> list[dict[str, Any]]:
    """Return a row for each encoding, with its name, paper, equation, options and capabilities."""
    return [_row(name) for name in names()]


def main(argv: Sequence[str]) -> int:
    """Print the encodings as text or, with --json, as a JSON list."""
    parser = Parser(
        prog="python -m fairseq_posenc list",
        description="List the position encodings that --pos-enc takes, with their options (--pos-enc-args).",
        epilog="examples:\n  python -m fairseq_posenc list shaw t5\n  python -m fairseq_posenc list 'm4[clip=64]'\n"
        "  python -m fairseq_posenc list --json",
    )
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="Encodings to list, such as t5 or 'm4[clip=64]'. Default: all."
    )
    parser.add_argument("--json", action="store_true", help="Print one JSON list of objects and nothing else.")
    args = parser.parse_args(argv)
    try:
        with warnings_only():  # what encodings log is for training
            listed = [_row(label, "NAME") for label in args.names] or rows()
    except ValueError as error:
        parser.error(str(error))
    print(json.dumps(listed, indent=2) if args.json else "\n\n".join(_text(row) for row in listed))
    return 0


def _row(label: str, flag: str = NAME_FLAG) -> dict[str, Any]:
    """Return the row of an encoding or a composition; its capabilities are those with the options in brackets.

    Raises:
        ValueError: An encoding, an option or a value is unknown, or the encodings cannot be combined. The message names
            the setting `flag`.
    """
    spec = parse(label, None, flag)
    facts = [get(kind_of(name)).facts for name in spec.names]
    joined = {
        key: "; ".join(dict.fromkeys(getattr(each, key) for each in facts)) for key in ("paper", "equation", "formula")
    }
    return {
        "name": spec.label,
        "title": " + ".join(each.title for each in facts),
        **joined,
        "parameters": " ".join(each.count for each in facts),
        "options": [row for name in spec.names for row in _options(name, spec)],
        "capabilities": _capabilities(spec, flag),
    }


def _options(name: str, spec: Spec) -> list[dict[str, Any]]:
    """Return a row for each option of an encoding, with its `value` if it is set."""
    options = describe(get(kind_of(name)).Options)
    options += describe_common() if acts_in_layers(kind_of(name)) else []
    before, values = prefix(name) if len(spec.names) > 1 else "", spec.options[name]
    return [
        {**row, "name": before + row["name"]} | ({"value": values[row["name"]]} if row["name"] in values else {})
        for row in options
    ]


def _capabilities(spec: Spec, flag: str) -> list[str]:
    name = spec_of(spec.name) if spec.name in names() else spec.name
    capabilities = declared(name, spec.by_owner())
    if not capabilities:  # build it again, for the error that says why
        build(spec.label, None, replace(BASE, name_flag=flag, args_flag=flag))
    return [key for key, value in capabilities.items() if value]


def _text(row: dict[str, Any]) -> str:
    """Return an encoding as text that is as wide as the terminal, or 80 characters wide without a terminal."""
    facts = {
        "paper": f"{row['paper']}, {row['equation']}",
        "parameters": row["parameters"],
        "capabilities": ", ".join(row["capabilities"]),
    }
    lines = [_wrapped(f"  {name:<14}{text}", 16) for name, text in facts.items()]
    for option in row["options"]:
        allowed = "|".join(option["choices"]) or option["range"]
        allowed = f" [{allowed}]" if allowed else ""
        value = f"{option['value']} (default {option['default']})" if "value" in option else option["default"]
        lines.append(_wrapped(f"  {option['name']}={value}{allowed}  {option['help']}", 6))
    return "\n".join([_wrapped(f"{row['name']}: {row['title']}", 2), *lines])


def _wrapped(line: str, indent: int) -> str:
    width = max(shutil.get_terminal_size().columns, 40)
    return textwrap.fill(line, width, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False)
