"""Copy the code of a model into its folder, so that transformers loads it without this package and without fairseq.

transformers copies the files of a model's folder, but not its subfolders. Therefore the files of this package get flat
names (`core/base.py` becomes `core_base.py`), and their relative imports are changed accordingly. Only the files that
the model needs are copied: those that its classes import, and those of its position encoding.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from ..encodings import get
from ..encodings.registry import ENCODINGS, kind_of

PACKAGE = Path(__file__).parents[1]
#: The file with the classes for transformers, and its name in a model's folder.
START, ENTRY = "hub.transformers_models", "modeling_fairseq_posenc"
#: The first line of a relative import.
IMPORT = re.compile(r"^( *)from (\.+)([\w.]*) import (.+)$", re.MULTILINE)

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
    texts: dict[str, str] = {}
    waiting = [START, *_of_encoding(pos_enc)]
    while waiting:
        module = waiting.pop()
        if module not in texts:
            header = HEADER.format(path=_path(module).relative_to(PACKAGE).as_posix(), version=version)
            text, imported = _flattened(module)
            texts[module] = header + text
            waiting += imported
    others = sorted(flat(module) for module in texts if module != START)
    imports = "\n".join(f"from .{name} import __name__ as _{name}" for name in others)
    texts[START] += ENTRY_IMPORTS.format(imports=imports)
    return {f"{flat(module)}.py": text for module, text in sorted(texts.items())}


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


def _flattened(module: str) -> tuple[str, list[str]]:
    """Return the text of a module with its relative imports changed to flat names, and the modules that it imports."""
    path, imported = _path(module), list[str]()
    folder = path.relative_to(PACKAGE).parent.parts

    def changed(statement: re.Match[str]) -> str:
        indent, dots, name, what = statement.groups()
        source = ".".join([*folder[: len(folder) - len(dots) + 1], *filter(None, [name])])
        parts = [part.strip().partition(" as ") for part in what.split(",")]
        inside = [f"{source}.{part}".strip(".") for part, _, _ in parts]
        if not _path(inside[0]).is_file():  # names from a module; the rest of the statement stays
            imported.append(source)
            return f"{indent}from .{SPACE * (module != START)}{flat(source)} import {what}"
        imported.extend(inside)
        aliases = zip(inside, parts, strict=True)
        return "\n".join(f"{indent}from . import {flat(name)} as {alias or part}" for name, (part, _, alias) in aliases)

    return IMPORT.sub(changed, path.read_text("utf-8")), imported
