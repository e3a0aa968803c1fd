"""Test the parts of the package: files import only from their own part and earlier parts, and never in a circle."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "fairseq_posenc"

#: The parts, each of which may import from those before it; docs/architecture.md describes them.
ROOMS = (
    *("ops", "positions", "core", "encodings", "attention", "stack", "metrics", "papers"),
    *(
        "compat",
        "data",
        "hub",
        "models",
        "criterions",
        "generation",
        "tasks",
        "optim",
        "config",
        "analysis",
        "commands",
    ),
    *("__init__", "__main__"),
)
#: The parts that need only torch, numpy and the libraries of metrics.
WITHOUT_FAIRSEQ = ROOMS[: ROOMS.index("papers") + 1]


def modules(package: Path) -> dict[str, Path]:
    """Return the files of a package by dotted name; the name of a folder stands for its __init__.py."""
    paths = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package).with_suffix("").parts
        paths[".".join(parts[:-1] if len(parts) > 1 and parts[-1] == "__init__" else parts)] = path
    return paths


def imports(package: Path) -> dict[str, set[str]]:
    """Return which modules of the package each module imports, also inside functions and for type checkers."""
    files = modules(package)
    return {
        name: {*_imported(ast.parse(path.read_text("utf-8")), path, package, files)} for name, path in files.items()
    }


def _imported(tree: ast.Module, path: Path, package: Path, files: dict[str, Path]) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            folder = path.parents[node.level - 1].relative_to(package).parts
            start = ".".join((*folder, *filter(None, [node.module])))
            for alias in node.names:
                full = f"{start}.{alias.name}".strip(".")
                yield full if full in files else start or "__init__"


def room(module: str) -> str:
    """Return the first part of a module's name."""
    return module.partition(".")[0]


def outward(package: Path) -> list[str]:
    """Return the imports from a later part of the package."""
    return [
        f"{name} imports {other}"
        for name, others in imports(package).items()
        for other in sorted(others)
        if name != "__init__" and ROOMS.index(room(other)) > ROOMS.index(room(name))
    ]


def circle(package: Path) -> list[str]:
    """Return modules that import each other in a circle, or an empty list."""
    graph = {name: others - {name} for name, others in imports(package).items() if name != "__init__"}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return [str(name) for name in error.args[1]]
    return []


def test_the_page_lists_the_rooms_in_order_and_existing_files() -> None:
    page = (PACKAGE.parent / "docs" / "architecture.md").read_text("utf-8")
    rooms = re.findall(r"^\| `(\w+)(?:/|\.py)` \|", page, re.MULTILINE)
    assert rooms == [name for name in ROOMS if not name.startswith("__")]
    paths = set(re.findall(r"`([\w/-]+\.(?:py|sh))`", page)) - {"run.sh", "registry.py"}
    assert paths
    assert [path for path in paths if not ((PACKAGE / path).exists() or (PACKAGE.parent / path).exists())] == []


def test_every_file_is_in_a_known_room() -> None:
    assert {room(name) for name in modules(PACKAGE)} <= set(ROOMS)


def test_files_import_from_their_room_and_from_rooms_before_it() -> None:
    assert outward(PACKAGE) == []


def test_no_two_files_import_each_other() -> None:
    """Late imports count too. The registry finds its classes by names in strings, which is not an import."""
    assert circle(PACKAGE) == []


def test_wrong_imports_are_caught(tmp_path: Path) -> None:
    for folder in ("ops", "core"):
        (tmp_path / folder).mkdir()
    (tmp_path / "ops" / "wrong.py").write_text("def late() -> None:\n    from ..core import base\n")
    (tmp_path / "core" / "base.py").write_text("from ..ops.wrong import late\n")
    assert outward(tmp_path) == ["ops.wrong imports core.base"]
    assert set(circle(tmp_path)) == {"ops.wrong", "core.base"}


@pytest.mark.parametrize("name", WITHOUT_FAIRSEQ)
def test_the_inner_rooms_import_no_fairseq(name: str) -> None:
    for path in (path for module, path in modules(PACKAGE).items() if room(module) == name):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            assert not {name.partition(".")[0] for name in names} & {"fairseq", "fairseq_cli", "hydra", "omegaconf"}, (
                path
            )


def test_recipes_import_the_library_of_recipes_and_never_each_other() -> None:
    recipes = PACKAGE.parent / "recipes"
    wrong = [
        f"{path.relative_to(recipes)} imports {name}"
        for path in sorted(recipes.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else [])
        if name.startswith("recipes.") and name.split(".")[1] not in ("lib", path.relative_to(recipes).parts[0])
    ]
    assert wrong == []


def recipes_named_in(tree: ast.Module, recipes: Sequence[str]) -> list[str]:
    """Return the imports and strings of a module that name a module or file of a recipe.

    A text may name the folder of a recipe or its run.sh, because users start recipes in this way.
    """
    names = "|".join(recipes)
    pattern = re.compile(rf"^(?:{names})(?:\.|$)|\brecipes\.(?:{names})\b|\brecipes/(?:{names})/(?!run\.sh)\w")
    texts = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            start = node.module or "recipes"
            texts += [start, *(f"{start}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Import):
            texts += [alias.name for alias in node.names]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            texts.append(node.value)
    return [text for text in texts if pattern.search(text)]


def test_the_library_of_recipes_names_no_recipe() -> None:
    folder = PACKAGE.parent / "recipes"
    recipes = [path.parent.name for path in folder.glob("*/__main__.py")]
    named = {
        str(path.relative_to(folder)): recipes_named_in(ast.parse(path.read_text("utf-8")), recipes)
        for path in sorted((folder / "lib").rglob("*.py"))
    }
    assert {path: texts for path, texts in named.items() if texts} == {}


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("from recipes.finetune_glue.published import paper", True),
        ("from recipes import finetune_glue", True),
        ("from .. import finetune_glue", True),
        ("from ..finetune_glue import published", True),
        ("import recipes.finetune_glue.published", True),
        ("module('finetune_glue.compare')", True),
        ("module('finetune_glue')", True),
        ("ROOT / 'recipes' / 'finetune_glue' / 'published.py'", True),
        ("'Run python -m recipes.finetune_glue.compare.'", True),
        ("'recipes/finetune_glue/published.py'", True),
        ("from recipes.lib import finetuning", False),
        ("['bash', 'recipes/finetune_glue/run.sh']", False),
        ("'Name a run of recipes/finetune_glue.'", False),
    ],
)
def test_names_of_recipes_in_the_library_are_caught(line: str, wrong: bool) -> None:
    assert bool(recipes_named_in(ast.parse(line), ["demo", "finetune_glue"])) == wrong


def test_only_the_library_of_recipes_knows_the_files_of_the_runner() -> None:
    files = [path for path in (PACKAGE.parent / "recipes").glob("*/*.py") if path.parent.name != "lib"]
    assert [path for path in files if '".stages"' in path.read_text("utf-8")] == []
