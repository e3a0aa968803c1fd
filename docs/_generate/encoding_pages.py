"""Write the page of each encoding from its docstring, its facts and its options."""

from __future__ import annotations

import inspect
from typing import Any

from blocks import CAPABILITIES, ONE_NUMBER
from tabulate import tabulate

from fairseq_posenc.commands.params import rows
from fairseq_posenc.core.options import describe, fill
from fairseq_posenc.encodings import PositionEncoding, StackShape, build, get, names, spec_of
from fairseq_posenc.encodings.building import form_of
from fairseq_posenc.encodings.facts import acts_in_layers, declared

LAYERS = "The option [`layers`](index.md#active-in-some-layers) limits the encoding to some layers."
WINDOW = "The option [`window`](index.md#windows) limits attention in these layers to near tokens."
#: The kinds of stacks in which a part of an encoding may be without effect.
STACKS = {
    "encoders with a [CLS]": StackShape(layers=1, heads=2, dim=8, max_length=8, has_cls=True),
    "encoders without [CLS]": StackShape(layers=1, heads=2, dim=8, max_length=8),
    "decoders": StackShape(layers=1, heads=2, dim=8, max_length=8, causal=True),
}


def _common(name: str) -> list[str]:
    """Return what the page says about the options of all encodings that act in layers."""
    if not acts_in_layers(name):
        return []
    compresses = get(name).compress is not PositionEncoding.compress  # then keys have no positions
    return [LAYERS if compresses else f"{LAYERS} {WINDOW}"]


def pages() -> dict[str, str]:
    """Return the Markdown of each page, keyed by the name of the encoding."""
    counted = rows()
    return {name: page(name, [row for row in counted if row["encoding"] == spec_of(name)]) for name in names()}


def page(name: str, counted: list[dict[str, Any]]) -> str:
    cls = get(name)
    facts = cls.facts
    parts = [
        f"# `{name}`: {facts.title}",
        f"$${facts.formula}$$",
        f"{facts.paper}, {facts.equation}",
        inspect.cleandoc(cls.__doc__ or ""),
        *_forms(name),
        *([facts.notes] if facts.notes else []),
        "## What it can do",
        "\n".join(f"- {text}: {_answer(name, key)}" for key, text in CAPABILITIES.items()),
        "## Options",
        _options(describe(cls.Options)),
        *(_common(name)),
        "## Parameters",
        f"Number of parameters: {_sentence(facts.count)} "
        "Here m is the number of layers, h the number of heads, d the width and n the maximum length.",
        "At base size (12 layers, 12 heads, width 768, length 512):",
        _counts(counted),
        *_no_decay(name),
        *_without_effect(name),
    ]
    return "\n\n".join(parts) + "\n"


def _answer(name: str, key: str) -> str:
    return "yes" if declared(spec_of(name)).get(key) else "no"


def _forms(name: str) -> list[str]:
    """Return the docstrings of the classes that implement the choices of an option, if there are several classes."""
    texts = []
    for option in describe(get(name).Options):
        forms = {choice: _form(name, {option["name"]: choice}) for choice in option["choices"]}
        for choice, form in forms.items() if len(set(forms.values()) - {None}) > 1 else ():
            texts.append(f"`{option['name']}={choice}`: {inspect.cleandoc(getattr(form, '__doc__', None) or '')}")
    return texts


def _form(name: str, options: dict[str, str]) -> type | None:
    """Return the class that implements the encoding with these options; None if they need further options."""
    cls = get(name)
    try:
        return form_of(cls, fill(cls.Options, options))
    except ValueError:
        return None


def _sentence(text: str) -> str:
    return text if text.endswith(".") else f"{text}."


def _options(options: list[dict[str, Any]]) -> str:
    if not options:
        return "None."
    lines = []
    for option in options:
        default = "unset" if option["default"] is None else str(option["default"])
        help = option["help"].replace("|", r"\|")
        lines.append([f"`{option['name']}`", default, ", ".join(option["choices"]) or option["range"], help])
    return tabulate(
        lines, ["option", "default", "choices or range", "meaning"], tablefmt="github", disable_numparse=True
    )


def _counts(counted: list[dict[str, Any]]) -> str:
    names = {"printed": "printed in the papers", "time": "time", "memory": "memory"}
    names |= {"printed memory": "memory in the papers"} if any(row["printed memory"] for row in counted) else {}
    names |= {"note": "note"}
    lines = []
    for row in counted:
        options = f"`{row['options']}`" if row["options"] else "defaults"
        lines.append([options, f"{row['count']:,}", *(row[name] for name in names)])
    head = ["options", "parameters", *names.values()]
    return tabulate(lines, head, tablefmt="pipe", disable_numparse=True, colalign=ONE_NUMBER)


def _no_decay(name: str) -> list[str]:
    parameters = ", ".join(f"`{parameter}`" for parameter in get(name).no_decay)
    text = (
        f"Weight decay would pull {parameters} to values at which attention is uniform or all gradients through the "
        f"logits are zero. `--pos-enc-no-decay` excludes {parameters} from weight decay."
    )
    return [text] if parameters else []


def _without_effect(name: str) -> list[str]:
    lines = []
    for part, setting, stacks in _constant(name):
        where = ", ".join([*([f"`{setting}`"] if setting else []), *stacks])
        lines.append(f"- `{part}`" + (f" ({where})" if where else ""))
    text = (
        "The softmax cancels a number that is added to all logits of a query. The following parameters only add such a "
        "number, so they get no gradient:"
    )
    return ["## Parameters without effect", text, "\n".join(lines)] if lines else []


def _constant(name: str) -> list[tuple[str, str, list[str]]]:
    """Return the parts of an encoding that add the same number to all logits of a query, which the softmax cancels.

    Returns:
        A list of tuples (part, option, stacks). `option`, such as `form=original`, is a setting with which the encoding
        has the part; it is empty if the encoding has the part with its default options. `stacks` lists the keys of
        `STACKS` for which the encoding has the part; the list is empty if the encoding has the part wherever it works.
    """
    parts: dict[str, tuple[str, str, list[str]]] = {}
    for setting in _settings(name):
        built = {words: encoding for words, stack in STACKS.items() if (encoding := _built(name, setting, stack))}
        for part in sorted({part for encoding in built.values() for part in encoding.constant_along_row}):
            where = [words for words, encoding in built.items() if part in encoding.constant_along_row]
            parts.setdefault(part, (part, setting, where if len(where) < len(built) else []))
    return list(parts.values())


def _settings(name: str) -> list[str]:
    """Return the options to try: the defaults (an empty text), then each choice of each option."""
    options = describe(get(name).Options)
    return ["", *(f"{option['name']}={choice}" for option in options for choice in option["choices"])]


def _built(name: str, setting: str, stack: StackShape) -> PositionEncoding | None:
    try:
        return build(spec_of(name), setting, stack).members[name]
    except ValueError:
        return None
