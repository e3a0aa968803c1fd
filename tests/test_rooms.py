"""Test which files import which: only their own part and earlier parts of the package, and never in a circle."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from fairseq_posenc.__main__ import COMMANDS

ROOT = Path(__file__).parents[1]
PACKAGE, RECIPES, SCRIPTS = ROOT / "fairseq_posenc", ROOT / "recipes", ROOT / "data-bin-scripts"
PAGE = (ROOT / "docs" / "architecture.md").read_text("utf-8")
#: The parts that the page lists, each of which may import from those before it.
ROOMS = [*re.findall(r"^\| `(\w+)(?:/|\.py)` \|", PAGE, re.MULTILINE), "__init__", "__main__"]
#: The parts that need only torch, numpy and the libraries of metrics.
WITHOUT_FAIRSEQ = ROOMS[: ROOMS.index("papers") + 1]


def imported(path: Path, root: Path) -> Iterator[tuple[str, str]]:
    """Yield (a, a.b) for each `from a import b` of a file, because b may be a module, and (a, a) for `import a`."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            folder = path.parents[node.level - 1].relative_to(root).parts if node.level else ()
            module = ".".join((*folder, *filter(None, [node.module])))
            yield from ((module, f"{module}.{alias.name}") for alias in node.names)


@functools.cache
def imports(folder: Path, root: Path = ROOT) -> dict[str, set[str]]:
    """Return what each module of a folder imports, also inside functions, if Python looks for modules in `root`."""
    names = {path: ".".join(path.relative_to(root).with_suffix("").parts) for path in folder.rglob("*.py")}
    files = {name.removesuffix(".__init__"): path for path, name in names.items()}
    return {
        name: {full if full in files else module for module, full in imported(path, root)}
        for name, path in files.items()
    }


def room(module: str) -> str:
    """Return the part of the package to which a module belongs."""
    return [*module.split("."), "__init__"][1]


def test_every_file_imports_from_its_room_and_from_rooms_before_it() -> None:
    ours = imports(PACKAGE)
    assert {room(name) for name in ours} <= {*ROOMS}
    later = [
        f"{name} imports {other}"
        for name in ours.keys() - {PACKAGE.name}
        for other in ours[name] & ours.keys() - {PACKAGE.name}
        if ROOMS.index(room(other)) > ROOMS.index(room(name))
    ]
    assert later == []


def test_the_inner_rooms_import_no_fairseq() -> None:
    for name, others in imports(PACKAGE).items():
        packages = {other.partition(".")[0] for other in others} & {"fairseq", "fairseq_cli", "hydra", "omegaconf"}
        assert not packages or room(name) not in WITHOUT_FAIRSEQ, name


def test_no_command_imports_another() -> None:
    """What two commands need is a fact of the core, or a file of its own."""
    commands = {f"{PACKAGE.name}.{module}" for module, _ in COMMANDS.values()}
    imported_by = imports(PACKAGE)
    assert {name: others for name in commands if (others := imported_by[name] & commands)} == {}


@pytest.mark.parametrize(("folder", "root"), [(PACKAGE, ROOT), (RECIPES, ROOT), (SCRIPTS, SCRIPTS)])
def test_no_two_files_import_each_other(folder: Path, root: Path) -> None:
    """Late imports count too. The registry finds its classes by names in strings, which is not an import."""
    ours = {name: others for name, others in imports(folder, root).items() if name != folder.name}
    TopologicalSorter({name: others & ours.keys() - {name} for name, others in ours.items()}).prepare()


def test_recipes_import_the_library_of_recipes_and_never_each_other() -> None:
    ours = imports(RECIPES)
    wrong = [
        f"{name} imports {other}"
        for name, others in ours.items()
        for other in others & ours.keys()
        if other.split(".")[1] not in ("lib", name.split(".")[1])
    ]
    assert wrong == []
