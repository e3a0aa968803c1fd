"""Make single changes of the package's Python code with Cosmic Ray, and draw those that `make mutants` tries."""

from __future__ import annotations

import ast
import difflib
import functools
import hashlib
import itertools
import json
import warnings
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators.provider import OperatorProvider

from tests.faults import table

SEED, NUMBER = 20261124, 300
ROOMS = ("core", "ops", "attention", "metrics")
#: Operators that need names of variables, and that draw a part of each change anew whenever they make it.
NAMED = ("VariableReplacer", "VariableInserter")
DRAWN = Path(__file__).with_name("drawn.json")


@dataclass(frozen=True)
class Mutant:
    """A change of a source file: the change number `occurrence` that an operator of Cosmic Ray can make.

    Args:
        file: The source.
        operator: Name of the operator.
        occurrence: Number of the change among those of the operator in this file.
        key: Name of the change. It depends on the changed line and its equals only, so that edits of other lines leave
            the choice of the mutants and their results as they are.
    """

    file: str
    operator: str
    occurrence: int
    key: str = ""

    @property
    def path(self) -> Path:
        return table.ROOT / self.file

    @functools.cached_property
    def text(self) -> str:
        """Return the changed source, or an empty text if the operator fails, as it does for `except module.Error`."""
        try:
            return str(mutate_code(read(self.path), OperatorProvider()[self.operator](), self.occurrence))
        except AttributeError:
            return ""

    @functools.cached_property
    def change(self) -> tuple[int, str, str]:
        """Return the number of the first changed line, the lines before and the lines after."""
        before, after = read(self.path).splitlines(), self.text.splitlines()
        matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
        parts = [part for part in matcher.get_opcodes() if part[0] != "equal"]
        (_, first, _, start, _), (_, _, last, _, stop) = parts[0], parts[-1]
        return first + 1, _joined(before[first:last]), _joined(after[start:stop])


@functools.cache
def read(path: Path) -> str:
    """Return the text of a source."""
    return path.read_text("utf-8")


def _joined(lines: list[str]) -> str:
    return " ".join(line.strip() for line in lines)


def sources() -> list[Path]:
    return sorted(path for room in ROOMS for path in (table.ROOT / "fairseq_posenc" / room).glob("*.py"))


def changes() -> list[Mutant]:
    """Return all changes that the operators of Cosmic Ray can make, except the operators of NAMED."""
    operators = {name: OperatorProvider()[name]() for name in OperatorProvider() if name not in NAMED}
    found = []
    for path in sources():
        file, lines = str(path.relative_to(table.ROOT)), read(path).splitlines()
        nodes = list(ast_nodes(get_ast(read(path))))
        for name, operator in operators.items():
            places = [place for node in nodes for place in operator.mutation_positions(node)]
            seen: Counter[str] = Counter()
            for occurrence, ((line, _), _) in enumerate(places):
                text = lines[line - 1].partition("  # ")[0].strip()
                seen[text] += 1
                found.append(Mutant(file, name, occurrence, f"{file} | {text} | {name} {seen[text]}"))
    return found


@functools.cache
def program(source: str) -> str | None:
    """Return what Python executes of a source: all but the annotations in functions; None if it does not compile."""
    try:
        tree = ast.parse(source)
        compile(source, "mutant", "exec", dont_inherit=True)
    except SyntaxError:
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            node.returns = None
            for part in ast.walk(node):
                if isinstance(part, ast.arg):
                    part.annotation = None
                elif isinstance(part, ast.AnnAssign):
                    part.annotation = ast.Constant(None)
    return ast.dump(tree)


def is_executed(mutant: Mutant) -> bool:
    """Return whether Python compiles the mutant to another program."""
    warnings.simplefilter("ignore", SyntaxWarning)  # of `x is 1`
    changed = program(mutant.text) if mutant.text else None
    return changed is not None and changed != program(read(mutant.path))


@functools.cache
def chosen(number: int = NUMBER) -> list[Mutant]:
    """Return mutants drawn from all changes of what Python executes.

    DRAWN keeps the names of those that were drawn, so that an edit of some lines leaves the others. If a name no longer
    exists, the change with the smallest hash of seed and name takes its place.
    """
    by_key = {mutant.key: mutant for mutant in changes()}
    drawn = [key for key in json.loads(DRAWN.read_text("utf-8")) if key in by_key]
    others = sorted(by_key.keys() - drawn, key=lambda key: hashlib.sha256(f"{SEED} {key}".encode()).digest())
    return list(itertools.islice(filter(is_executed, map(by_key.__getitem__, [*drawn, *others])), number))
