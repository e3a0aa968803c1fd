"""`python -m fairseq_posenc list`: what --pos-enc takes."""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Sequence
from typing import Any

import torch

from ..core.options import describe
from ..encodings import PositionEncoding, StackShape, build, get, names

CAPABILITIES = {
    "causal": "decoders",
    "bidirectional": "encoders",
    "memory": "segment memory",
    "extrapolates": "beyond the length of training",
    "shift_invariant": "depends on distances only",
    "directional": "tells left from right",
}


def rows() -> list[dict[str, Any]]:
    """One flat row an encoding: name, paper, equation, options, capabilities."""
    return [_row(name) for name in names()]


def main(argv: Sequence[str]) -> int:
    """Print the encodings as text or, with --json, as one list."""
    parser = argparse.ArgumentParser(
        prog="python -m fairseq_posenc list",
        description="The position encodings that --pos-enc takes, with their options (--pos-enc-args).",
        epilog="examples: python -m fairseq_posenc list shaw t5    python -m fairseq_posenc list --json",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these")
    parser.add_argument("--json", action="store_true", help="one list of objects and nothing else")
    args = parser.parse_args(argv)
    try:
        wanted = [_row(name) for name in args.names] or rows()
    except ValueError as error:
        parser.error(str(error))
    print(json.dumps(wanted, indent=2) if args.json else "\n\n".join(_text(row) for row in wanted))
    return 0


def _row(name: str) -> dict[str, Any]:
    cls = get(name)
    return {
        "name": name,
        "title": cls.facts.title,
        "paper": cls.facts.paper,
        "equation": cls.facts.equation,
        "formula": cls.facts.formula,
        "parameters": cls.facts.count,
        "options": describe(cls.Options),
        "capabilities": _capabilities(name),
    }


def declared(spec: str, options: str | None = None) -> dict[str, bool]:
    """What the encoding declares in an encoder or a decoder, with a [CLS] only where it is refused without."""
    return _declared(spec, options, has_cls=False) or _declared(spec, options, has_cls=True)


def _declared(spec: str, options: str | None, has_cls: bool) -> dict[str, bool]:
    can: dict[str, bool] = {}
    for causal in (True, False):
        shape = StackShape(layers=1, heads=12, dim=768, max_length=512, causal=causal, has_cls=has_cls)
        try:
            with torch.device("meta"):
                built = build(spec, options, shape)
        except ValueError:
            continue
        for key, value in dataclasses.asdict(built.capabilities).items():
            can[key] = value or can.get(key, False)
    return can


STACKS = {
    "encoders with a [CLS]": StackShape(layers=1, heads=2, dim=8, max_length=8, has_cls=True),
    "encoders without [CLS]": StackShape(layers=1, heads=2, dim=8, max_length=8),
    "decoders": StackShape(layers=1, heads=2, dim=8, max_length=8, causal=True),
}


def constant(name: str) -> list[tuple[str, str, list[str]]]:
    """What the softmax cannot see of its parameters: part, the option with which it is one, and in which stacks.

    No option where the defaults do; no stacks where all that take the option do.
    """
    found: dict[str, tuple[str, str, list[str]]] = {}
    for setting in _settings(name):
        built = {words: one for words, stack in STACKS.items() if (one := _built(name, setting, stack))}
        for part in sorted({part for one in built.values() for part in one.constant_along_row}):
            where = [words for words, one in built.items() if part in one.constant_along_row]
            found.setdefault(part, (part, setting, where if len(where) < len(built) else []))
    return list(found.values())


def _settings(name: str) -> list[str]:
    """The defaults, and every choice of every option alone."""
    return ["", *(f"{one['name']}={choice}" for one in describe(get(name).Options) for choice in one["choices"])]


def _built(name: str, setting: str, stack: StackShape) -> PositionEncoding | None:
    try:
        return build(name, setting, stack).members[name]
    except ValueError:
        return None


def _capabilities(name: str) -> list[str]:
    return [key for key, value in declared(name).items() if value]


def _text(row: dict[str, Any]) -> str:
    lines = [
        f"{row['name']}: {row['title']}",
        f"  paper         {row['paper']}, {row['equation']}",
        f"  parameters    {row['parameters']}",
        f"  capabilities  {', '.join(row['capabilities'])}",
    ]
    for option in row["options"]:
        choices = f" [{'|'.join(option['choices'])}]" if option["choices"] else ""
        lines.append(f"  {option['name']}={option['default']}{choices}  {option['help']}")
    return "\n".join(lines)
