"""Check the position encodings that a user names, such as `rope`, `learned+t5`, `shaw[clip=16]` or `rope/t5`.

Names and options come from encodings.json, because importing the encodings themselves would take seconds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from fairseq_posenc.core.refusal import InputError
from fairseq_posenc.core.syntax import Spec, parse_spec
from fairseq_posenc.core.words import nearest
from fairseq_posenc.papers.matching import are_those_of, option_values
from fairseq_posenc.papers.reading import Figure

#: Written by `python docs/_generate`, which must run anyway when an encoding is added.
FACTS = Path(__file__).with_name("encodings.json")
COMMON = ("layers", "window")  # options of every encoding, which encodings.json does not repeat
WORKS = {"encoder": "bidirectional", "decoder": "causal"}


@cache
def _all_facts() -> dict[str, dict[str, Any]]:
    facts_by_name: dict[str, dict[str, Any]] = json.loads(FACTS.read_text(encoding="utf-8"))
    return facts_by_name


def facts(name: str) -> dict[str, Any]:
    """Return where an encoding works, whether it supports a memory, and its options; `rope-2` is another `rope`.

    Raises:
        InputError: There is no such encoding.
    """
    kind = name if name in _all_facts() else re.sub(r"-\d+$", "", name)
    if kind not in _all_facts():
        raise InputError(f"--pos-enc: there is no position encoding '{name}'{nearest(name, _all_facts())}")
    return _all_facts()[kind]


def _options(name: str) -> list[str]:
    return [*facts(name)["options"], *COMMON]


def parse(label: str) -> Spec:
    """Return the encodings and options of a label without `/`; the model checks the options' values.

    Raises:
        InputError: The label has another form, or the name of an encoding or an option is unknown.
    """
    return parse_spec(label.replace(" ", ""), None, _options, "--pos-enc")


def check(label: str, stacks: Iterable[str] = ()) -> None:
    """Check a label for both stacks of a model, or `ENCODER/DECODER`.

    Args:
        stacks: The stacks that the model has: `encoder`, `decoder` or both. Empty: not checked.

    Raises:
        InputError: The label is wrong, or an encoding does not work in its stack.
    """
    parts = label.split("/")
    if len(parts) > 2:
        raise InputError(
            f"--pos-enc {label}: a model has only an encoder and a decoder. Write NAME or ENCODER/DECODER."
        )
    specs = [parse(part) for part in parts]
    places = zip(WORKS, specs, strict=True) if len(specs) == 2 else ((stack, specs[0]) for stack in stacks)
    for stack, spec in places:
        if not all(facts(name)[WORKS[stack]] for name in spec.names):
            advice = f"rope/{spec.label}" if stack == "encoder" else f"{spec.label}/rope"
            advice = f" Write ENCODER/DECODER, such as {advice}." if len(list(stacks)) > 1 else ""
            raise InputError(f"--pos-enc {label}: {spec.label} does not work in the {stack} of a model.{advice}")


def published(figures: Iterable[Figure], label: str, unset: Mapping[str, object] | None = None) -> Figure | None:
    """Return the paper's number for an encoding with the same values of all options; None if there is none.

    Args:
        figures: Numbers from the tables of the paper.
        unset: The paper's values of the options that have no default.
    """
    if "/" in label:  # no paper uses different encodings in the two stacks
        return None
    ours = parse(label)
    for figure in figures:
        theirs = parse(figure.encoding) if figure.encoding else Spec([], {}, {})
        same = ours.names == theirs.names
        if same and are_those_of(figure.paper, options_of(theirs, unset), options_of(ours, unset)):
            return figure
    return None


def options_of(spec: Spec, unset: Mapping[str, object] | None = None) -> dict[str, str]:
    """Return the values of all options, including defaults, keyed by names such as `m4.clip`."""
    return option_values(spec.options, lambda name: facts(name)["options"], unset)
