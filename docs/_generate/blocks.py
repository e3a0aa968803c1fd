"""Fill the generated blocks of pages that are otherwise written by hand.

The first line of a block says what the block contains:

    <!-- derived: capabilities -->          the papers, parameters and capabilities of every encoding
    <!-- derived: options -->               the options of every encoding
    <!-- derived: whole models -->          the parameters of whole models, next to those of a paper
    <!-- derived: families -->              a table with a line for each family of encodings, with links to their pages
    <!-- derived: flags -->                 the flags that the plugin adds to fairseq's commands
    <!-- derived: quote PAGE | ... -->      rows of a table on another page (see `quoting.py`)
    <!-- end -->
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import training_flags
from quoting import MARK, quote
from tabulate import tabulate

from fairseq_posenc.commands import params, whole_models
from fairseq_posenc.core.families import FAMILIES
from fairseq_posenc.core.options import describe
from fairseq_posenc.encodings import Composition, get, names, spec_of, specs
from fairseq_posenc.encodings.facts import BASE, at_base_size, declared, on_meta

DOCS = Path(__file__).resolve().parents[1]
BLOCK = re.compile(r"(<!-- derived: (.+?) -->\n).*?(<!-- end -->)", re.DOTALL)
#: Alignment of tables whose second column contains numbers.
ONE_NUMBER = ("left", "right")
#: What each capability means.
CAPABILITIES = {
    "causal": "works in decoders",
    "bidirectional": "works in encoders",
    "memory": "supports segment memory",
    "documents": "can separate the documents that share a sequence",
    "extrapolates": "works beyond the training length",
    "shift_invariant": "depends on distances only",
    "directional": "distinguishes left from right",
    "any_positions": "works at any positions",
}


def filled(text: str, folder: Path = DOCS) -> str:
    """Return the text of a page with its blocks filled with current content.

    Args:
        text: The text of the page.
        folder: The folder from which the text names the pages that it quotes.

    Raises:
        ValueError: An encoding is unknown, a quoted row or table is missing on its page, or a block has no start or no
            end. Filling a block without a start or an end could overwrite hand-written text.
    """
    counts = text.count("<!-- derived:"), text.count("<!-- end -->"), len(BLOCK.findall(text))
    if len(set(counts)) > 1:
        raise ValueError("{} 'derived' and {} 'end' markers form {} blocks. Each block needs both.".format(*counts))
    return BLOCK.sub(partial(_block, folder=folder), text)


def by_hand(text: str) -> str:
    """Return the hand-written text of a page, without the generated blocks."""
    return BLOCK.sub("", text)


def _block(block: re.Match[str], folder: Path) -> str:
    head, what, end = block.groups()
    return f"{head}\n{quote(what, folder) if what.startswith(MARK) else TABLES[what]()}\n\n{end}"


def capabilities_table() -> str:
    """Return a table with one row per encoding: its title, its paper, its parameters and what it can do."""
    head = ["encoding", "method", "paper", "parameters", *CAPABILITIES.values(), "also reads"]
    lines = []
    for name in names():
        facts = get(name).facts
        lines.append([f"[`{name}`]({name}.md)", facts.title, facts.paper, *_cells(spec_of(name))])
    alignment = ("left", "left", "left", "right")
    return tabulate(lines, head, tablefmt="pipe", disable_numparse=True, colalign=alignment)


def whole_models_table() -> str:
    """Return a table with the parameters of whole models, and a note on it."""
    return f"{whole_models.text(params.rows(), 'pipe')}\n\n{whole_models.ROUNDED}"


def families() -> str:
    """Return a table with a line for each family of encodings: what they do, and links to their pages."""
    members: dict[str, list[str]] = {family: [] for family in FAMILIES}
    for name in names():
        members[get(name).facts.family].append(f"[`{name}`](docs/encodings/{name}.md)")
    lines = [f"| {family} | {text} | {', '.join(members[family])} |" for family, text in FAMILIES.items()]
    return "\n".join(["| family | what it does | `--pos-enc` |", "|---|---|---|", *lines])


def options_table() -> str:
    """Return a table with one row per encoding: its title and its options, some with their choices."""
    lines = []
    for name in names():
        options = [_with_choices(row) for row in describe(get(name).Options)]
        lines.append([f"`{name}`", get(name).facts.title, ", ".join(options)])
    return tabulate(lines, ["`--pos-enc`", "method", "options"], tablefmt="github", disable_numparse=True)


def _with_choices(option: dict[str, Any]) -> str:
    """Return an option of an encoding with its choices.

    The choices of `share`, `init` and `extend` are left out, because a text below the table explains them.
    """
    is_common = option["name"] in ("share", "init", "extend")
    choices = "" if is_common or not option["choices"] else "=" + r"\|".join(option["choices"])
    return f"`{option['name']}{choices}`"


#: What makes the content of a block, by what its first line says.
TABLES = {
    "families": families,
    "flags": training_flags.table,
    "capabilities": capabilities_table,
    "options": options_table,
    "whole models": whole_models_table,
}


def _cells(spec: str) -> list[str]:
    """Return the number of parameters at base size, the capabilities, and the inputs besides tokens of an encoding."""
    built, can = at_base_size(spec), declared(spec)
    count = sum(parameter.numel() for parameter in built.parameters())
    return [f"{count:,}", *("yes" if can.get(key) else "" for key in CAPABILITIES), ", ".join(_reads(built, spec))]


def _reads(built: Composition, spec: str) -> list[str]:
    """Return the inputs that the encoding reads besides the tokens and their padding."""
    needs = {"segments": built.needs_segments, "sentence ends": built.needs_boundaries}
    cls = _of_cls(spec)
    return [text for text, needed in needs.items() if needed] + ([cls] if cls else [])


def _of_cls(spec: str, options: str = "") -> str:
    """Return how the encoding uses a [CLS].

    An encoding uses [CLS] if its number of parameters depends on whether the encoder has a [CLS].
    """
    without, with_cls = (_size(spec, options, has_cls) for has_cls in (False, True))
    if without != with_cls:
        return "[CLS]" if without is None else "[CLS], if there is one"
    if options or spec not in specs():
        return ""
    choices = [(row["name"], choice) for row in describe(get(spec.split("+")[-1]).Options) for choice in row["choices"]]
    users = dict.fromkeys(f"`{name}`" for name, choice in choices if _of_cls(spec, f"{name}={choice}") == "[CLS]")
    return f"[CLS], with {', '.join(users)}" if users else ""


def _size(spec: str, options: str, has_cls: bool) -> int | None:
    """Return the number of parameters of the encoding in an encoder; None if it does not work in this encoder."""
    built = on_meta(spec, options, replace(BASE, has_cls=has_cls))
    return None if built is None else sum(parameter.numel() for parameter in built.parameters())
