"""Test that the names on pages exist: encodings and options here, and names of other packages."""

from __future__ import annotations

import re
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import blocks
import pytest
from fairseq.models import ARCH_MODEL_REGISTRY
from fairseq.tasks import TASK_REGISTRY

import fairseq_posenc.models  # registers the architectures and tasks
from fairseq_posenc.__main__ import COMMANDS
from fairseq_posenc.commands.params import split
from fairseq_posenc.core.options import names as option_names
from fairseq_posenc.encodings import get, names
from fairseq_posenc.encodings.facts import at_base_size

DOCS = Path(fairseq_posenc.__file__).parents[1] / "docs"
COMING_FROM, CHOOSING = ((DOCS / f"{name}.md").read_text(encoding="utf-8") for name in ("coming-from", "choosing"))
PACKAGES = {"fairseq": "fairseq", "transformers": "transformers", "x-transformers": "x_transformers"}
OPTIONS = {option for name in names() for option in option_names(get(name).Options)}
#: Other words of ours in backticks: choices, commands and flags of models.
WORDS = {*COMMANDS, *"linear ntk yarn padding memory export-hf rotary_emb_dim use_abs_pos_emb --mem-length".split()}


def codes(text: str) -> list[str]:
    return re.findall(r"`([^`\n]+)`", text)


def known(code: str) -> bool:
    """Return whether a text in backticks names something of this package."""
    flag, _, rest = code.removeprefix("python -m fairseq_posenc ").partition(" ")
    if flag == "--pos-enc" and rest:
        value, _, args = rest.partition(" --pos-enc-args ")
        return builds(value.strip("'"), args)
    if code.startswith("fairseq_posenc."):
        module, _, name = code.rpartition(".")
        return hasattr(import_module(module), name)
    registries = {"--arch": ARCH_MODEL_REGISTRY, "--task": TASK_REGISTRY}
    if flag in registries:
        return rest in registries[flag]
    parts = {part.partition("=")[0] for part in flag.split(",")}
    return parts <= OPTIONS | WORDS or flag.startswith("--pos-enc") or builds(code)


def builds(label: str, args: str = "") -> bool:
    try:
        return at_base_size(*((label, args) if args else split(label))) is not None
    except ValueError:
        return False


def rows(library: str) -> list[list[str]]:
    """Return the cells of each row of the table of coming-from.md whose first column has this library."""
    table = COMING_FROM.partition(f"| {library} | here | in the file |\n|---|---|---|\n")[2].partition("\n\n")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]


@pytest.mark.parametrize("library", PACKAGES)
def test_names_of_other_libraries_exist_in_their_files(library: str) -> None:
    pytest.importorskip(PACKAGES[library])
    assert len(rows(library)) > 5
    (folder,) = find_spec(PACKAGES[library]).submodule_search_locations  # type: ignore[union-attr]
    for theirs, _, file in rows(library):
        wanted = [name.partition("=")[0] for name in codes(theirs) if not name.startswith("--")]
        text = (Path(folder) / codes(file)[0]).read_text(encoding="utf-8")
        assert [name for name in wanted if not re.search(rf"\b{name}\b", text)] == []


def test_names_of_this_package_exist() -> None:
    ours = " ".join(row[1] for library in PACKAGES for row in rows(library))
    assert [code for code in codes(f"{ours} {blocks.by_hand(CHOOSING)}") if not known(code)] == []
    wrong = (
        "`--arch posenc_gpt`, `clop=3`, `fairseq_posenc.stack.Stock`, `--pos-enc roap`, `shwa`, `m4[clop=3]`, `m2+m3`"
    )
    assert [code for code in codes(f"{wrong}, `m4`, `m4[clip=3]`, `clip=3`") if not known(code)] == codes(wrong)


def test_encodings_in_commands_exist() -> None:
    pages = "\n".join(path.read_text(encoding="utf-8") for path in DOCS.glob("*.md"))
    given = {spec for values in re.findall(r"--pos-enc '([^']+)'", pages) for spec in re.split(r",(?![^[]*\])", values)}
    assert len(given) > 15
    assert [spec for spec in given if not builds(spec)] == []
