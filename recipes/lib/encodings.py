"""The position encodings that a recipe compares, as its user names them: `rope`, `learned+t5`, `shaw[clip=16]`."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cache

from .recipe import ROOT
from .values import Refused, nearest

REGISTRY = ROOT / "fairseq_posenc" / "encodings" / "registry.py"


@dataclass(frozen=True)
class Encoding:
    label: str  # as it was asked for; tables and figures show it
    name: str  # for --pos-enc
    args: str  # for --pos-enc-args

    @property
    def slug(self) -> str:
        """Its name in paths and stages: `shaw.clip=16`."""
        return re.sub(r"[\[,]", ".", self.label).replace("]", "")

    def flags(self) -> list[str]:
        return ["--pos-enc", self.name, *(["--pos-enc-args", self.args] if self.args else [])]


def parse(label: str) -> Encoding:
    """What `NAME` or `NAME[OPTION=VALUE,...]` means.

    Raises:
        Refused: an unknown name, with the nearest known one, or brackets that do not close.
    """
    label = label.replace(" ", "")
    found = re.fullmatch(r"([^\[\]]+)(?:\[([^\[\]]+)\])?", label)
    if not found:
        raise Refused(f"--pos-enc {label}: write NAME or NAME[OPTION=VALUE,...], in quotes")
    for name in found[1].split("+"):
        if name not in known():
            raise Refused(f"--pos-enc {label}: no position encoding '{name}'{nearest(name, known())}")
    return Encoding(label, found[1], found[2] or "")


def parse_all(labels: list[str]) -> list[Encoding]:
    if not labels:
        raise Refused("--pos-enc is empty: name at least one encoding")
    return [parse(label) for label in dict.fromkeys(labels)]


@cache
def known() -> tuple[str, ...]:
    """The names of the registry, read and not imported: --dry-run works without torch."""
    for node in ast.parse(REGISTRY.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == ["_ENCODINGS"]:
            return tuple(ast.literal_eval(node.value))
    raise RuntimeError(f"{REGISTRY} has no _ENCODINGS")
