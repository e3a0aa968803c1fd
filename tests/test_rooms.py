"""Test which files import which: only their own part and earlier parts of the package, and never in a circle."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from fairseq_posenc.__main__ import COMMANDS

ROOT = Path(__file__).parents[1]
PACKAGE, RECIPES, SCRIPTS = ROOT / "fairseq_posenc", ROOT / "recipes", ROOT / "data-bin-scripts"

#: The parts, each of which may import from those before it; docs/architecture.md describes them. `generation` comes
#: before `tasks`, because the tasks build the beam search and the scorers, and these know no task.
ROOMS = (
    *("ops", "positions", "core", "encodings", "attention", "stack", "metrics", "papers"),
    *("compat", "data", "hub", "models", "criterions", "generation", "tasks", "optim", "config"),
    *("analysis", "commands", "__init__", "__main__"),
)
#: The parts that need only torch, numpy and the libraries of metrics.
WITHOUT_FAIRSEQ = ROOMS[: ROOMS.index("papers") + 1]


def modules(folder: Path, root: Path = ROOT) -> dict[str, Path]:
    """Return the files of a folder by their names in Python, if Python looks for modules in `root`."""
    paths = {}
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        paths[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return paths


def imports(folder: Path, root: Path = ROOT) -> dict[str, set[str]]:
    """Return which modules of the folder each module imports, also inside functions and for type checkers."""
    files = modules(folder, root)
    return {
        name: files.keys() & {full if full in files else module for module, full in imported(path, root)}
        for name, path in files.items()
    }


def imported(path: Path, root: Path = ROOT) -> Iterator[tuple[str, str]]:
    """Yield (a, a.b) for each `from a import b` of a file, because b may be a module, and (a, a) for `import a`."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            folder = path.parents[node.level - 1].relative_to(root).parts if node.level else ()
            module = ".".join((*folder, *filter(None, [node.module])))
            yield from ((module, f"{module}.{alias.name}") for alias in node.names)


def room(module: str) -> str:
    """Return the part of the package to which a module belongs."""
    return [*module.split("."), "__init__"][1]


def outward(package: Path) -> list[str]:
    """Return the imports from a later part of the package."""
    return [
        f"{name} imports {other}"
        for name, others in imports(package, package.parent).items()
        for other in sorted(others)
        if name != package.name and ROOMS.index(room(other)) > ROOMS.index(room(name))
    ]


def circle(folder: Path, root: Path) -> list[str]:
    """Return modules that import each other in a circle, or an empty list. The package itself imports all its parts."""
    graph = {name: others - {name} for name, others in imports(folder, root).items() if name != folder.name}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return [str(name) for name in error.args[1]]
    return []


def test_the_page_lists_the_rooms_in_order_and_existing_files() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    rooms = re.findall(r"^\| `(\w+)(?:/|\.py)` \|", page, re.MULTILINE)
    assert rooms == [name for name in ROOMS if not name.startswith("__")]
    paths = set(re.findall(r"`([\w/-]+\.(?:py|sh))`", page)) - {"run.sh", "registry.py"}
    assert paths
    assert [path for path in paths if not ((PACKAGE / path).exists() or (ROOT / path).exists())] == []


def test_files_import_from_their_room_and_from_rooms_before_it() -> None:
    assert outward(PACKAGE) == []


def test_no_command_imports_another() -> None:
    """What two commands need is a fact of the core, or a file of its own."""
    commands = {f"{PACKAGE.name}.{module}" for module, _ in COMMANDS.values()}
    imported_by = imports(PACKAGE)
    assert {name: others for name in commands if (others := imported_by[name] & commands)} == {}


@pytest.mark.parametrize(("folder", "root"), [(PACKAGE, ROOT), (RECIPES, ROOT), (SCRIPTS, SCRIPTS)])
def test_no_two_files_import_each_other(folder: Path, root: Path) -> None:
    """Late imports count too. The registry finds its classes by names in strings, which is not an import."""
    assert circle(folder, root) == []


@pytest.mark.parametrize(
    ("late", "early"),
    [
        ("from ..core import base", "from ..ops.wrong import late"),
        ("import package.core.base", "from package.ops import wrong"),
    ],
    ids=["relative", "absolute"],
)
def test_wrong_imports_are_caught(tmp_path: Path, late: str, early: str) -> None:
    package = tmp_path / "package"
    for folder in ("ops", "core"):
        (package / folder).mkdir(parents=True)
    (package / "ops" / "wrong.py").write_text(f"def late() -> None:\n    {late}\n")
    (package / "core" / "base.py").write_text(f"{early}\n")
    assert outward(package) == ["package.ops.wrong imports package.core.base"]
    assert set(circle(package, tmp_path)) == {"package.ops.wrong", "package.core.base"}


def test_the_inner_rooms_import_no_fairseq() -> None:
    for path in (path for module, path in modules(PACKAGE).items() if room(module) in WITHOUT_FAIRSEQ):
        packages = {module.partition(".")[0] for module, _ in imported(path)}
        assert not packages & {"fairseq", "fairseq_cli", "hydra", "omegaconf"}, path


def test_recipes_import_the_library_of_recipes_and_never_each_other() -> None:
    wrong = [
        f"{name} imports {other}"
        for name, others in imports(RECIPES).items()
        for other in sorted(others)
        if other.split(".")[1] not in ("lib", name.split(".")[1])
    ]
    assert wrong == []
