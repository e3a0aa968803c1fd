"""Copy the code of a model into its folder, so that transformers loads it without this package and without fairseq.

transformers copies the files of a model's folder, but not its subfolders. Therefore the files of this package get flat
names (`core/base.py` becomes `core_base.py`), and their relative imports are changed accordingly. Only the files that
the model needs are copied: those that its classes import, and those of its position encoding.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path

from ..encodings import get
from ..encodings.registry import ENCODINGS, kind_of

PACKAGE = Path(__file__).parents[1]
#: The file with the classes for transformers, and its name in a model's folder.
START, ENTRY = "hub.transformers_models", "modeling_fairseq_posenc"

#: Written after the dot of relative imports, except in the first file. Python ignores it. It hides the imports from
#: transformers, which would follow them from file to file along every path, thousands of times.
SPACE = " "

HEADER = "# A copy of fairseq_posenc/{path}, version {version}, for transformers. MIT License.\n"
ENTRY_IMPORTS = """

# transformers copies only those files of this folder that this file imports.
{imports}
"""


def code(pos_enc: str) -> dict[str, str]:
    """Return the contents of all files that a model with the encoding `pos_enc` needs, by file name."""
    version = import_module(PACKAGE.name).__version__
    modules = sorted(_closure([START, *_of_encoding(pos_enc)]))
    texts = {}
    for module in modules:
        path = _path(module)
        header = HEADER.format(path=path.relative_to(PACKAGE).as_posix(), version=version)
        texts[f"{flat(module)}.py"] = header + _rewritten(module)
    others = (flat(module) for module in modules if module != START)
    imports = "\n".join(f"from .{name} import __name__ as _{name}" for name in others)
    texts[f"{ENTRY}.py"] += ENTRY_IMPORTS.format(imports=imports)
    return texts


def flat(module: str) -> str:
    """Return the name of a module's file in a model's folder, without `.py`: `core.base` becomes `core_base`."""
    return ENTRY if module == START else module.replace(".", "_")


def _of_encoding(pos_enc: str) -> Iterator[str]:
    """Yield the modules of an encoding, which the registry names in strings."""
    for name in pos_enc.split("+"):
        kind = kind_of(name.strip())
        for place in (ENCODINGS[kind], *get(kind).forms.values()):
            yield f"encodings.{place.partition(':')[0]}"


def _path(module: str) -> Path:
    path = PACKAGE.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def _closure(modules: Iterable[str]) -> set[str]:
    """Return the given modules and all modules that they import, directly or indirectly."""
    known: set[str] = set()
    waiting = list(modules)
    while waiting:
        module = waiting.pop()
        if module not in known:
            known.add(module)
            waiting += _imported(module)
    return known


@functools.cache
def _imported(module: str) -> tuple[str, ...]:
    """Return the modules that a module imports."""
    tree = ast.parse(_path(module).read_text("utf-8"))
    return tuple(name for node in _relative(tree) for name in _targets(module, node))


def _relative(tree: ast.AST) -> list[ast.ImportFrom]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level]


def _source(module: str, node: ast.ImportFrom) -> str:
    """Return the module or folder from which a relative import of `module` imports."""
    parts = module.split(".") if _path(module).name == "__init__.py" else module.split(".")[:-1]
    parts = parts[: len(parts) - (node.level - 1)]
    return ".".join([*parts, *([node.module] if node.module else [])])


def _is_module(name: str) -> bool:
    return bool(name) and _path(name).is_file()


def _targets(module: str, node: ast.ImportFrom) -> list[str]:
    """Return the modules that a relative import reads."""
    source = _source(module, node)
    inside = [f"{source}.{alias.name}".strip(".") for alias in node.names]
    return [name if _is_module(name) else source for name in inside]


@functools.cache
def _rewritten(module: str) -> str:
    """Return the text of a module with its relative imports changed to flat names."""
    text = _path(module).read_text("utf-8")
    lines = text.split("\n")
    for node in _relative(ast.parse(text)):
        source, targets = _source(module, node), _targets(module, node)
        assert node.end_lineno is not None
        if all(target == source for target in targets):  # names from a module; the rest of the statement stays
            first = lines[node.lineno - 1]
            new = f"from .{SPACE * (module != START)}{flat(source)}"
            lines[node.lineno - 1] = re.sub(r"from \.[.\w]*", new, first, count=1)
            continue
        indent = " " * node.col_offset
        aliases = zip(targets, node.names, strict=True)
        statements = [f"{indent}from . import {flat(name)} as {alias.asname or alias.name}" for name, alias in aliases]
        lines[node.lineno - 1 : node.end_lineno] = ["\n".join(statements)] + [""] * (node.end_lineno - node.lineno)
    return "\n".join(lines)
