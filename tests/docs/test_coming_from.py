"""Test that the names in docs/coming-from.md exist in the files of other libraries or in this package."""

from __future__ import annotations

import re
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest
from fairseq.models import ARCH_MODEL_REGISTRY
from fairseq.tasks import TASK_REGISTRY

import fairseq_posenc.models  # registers the architectures and tasks
from fairseq_posenc.core.options import names as option_names
from fairseq_posenc.encodings import get, names
from fairseq_posenc.encodings.facts import at_base_size

ROOT = Path(fairseq_posenc.__file__).parents[1]
PAGE = (ROOT / "docs" / "coming-from.md").read_text(encoding="utf-8")
PACKAGES = {"fairseq": "fairseq", "transformers": "transformers", "x-transformers": "x_transformers"}
OPTIONS = {option for name in names() for option in option_names(get(name).Options)}


def rows(library: str) -> list[list[str]]:
    """Return the cells of each row of the table whose first column has this library."""
    table = PAGE.partition(f"| {library} | here | in the file |\n|---|---|---|\n")[2].partition("\n\n")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]


def codes(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


def missing(library: str, row: list[str]) -> list[str]:
    """Return the names of a row that the file in its third column does not contain."""
    (folder,) = find_spec(PACKAGES[library]).submodule_search_locations  # type: ignore[union-attr]
    source = (Path(folder) / codes(row[2])[0]).read_text(encoding="utf-8")
    wanted = [name.partition("=")[0] for name in codes(row[0]) if not name.startswith("--")]
    return [name for name in wanted if not re.search(rf"\b{name}\b", source)]


def unknown(text: str) -> list[str]:
    """Return the flags, options and names in a cell of the second column that this package does not have."""
    return [code for code in codes(text) if not known(code)]


def known(code: str) -> bool:
    flag, _, rest = code.partition(" ")
    value, _, args = rest.partition(" --pos-enc-args ")
    if flag == "--pos-enc":
        return at_base_size(value, args) is not None
    if code.startswith("fairseq_posenc."):
        module, _, name = code.rpartition(".")
        return hasattr(import_module(module), name)
    registries = {"--arch": ARCH_MODEL_REGISTRY, "--task": TASK_REGISTRY}
    if flag in registries:
        return value in registries[flag]
    return flag == "--mem-length" or all(part.partition("=")[0] in OPTIONS | {"padding"} for part in code.split(","))


@pytest.mark.parametrize(("library", "row"), [(name, row) for name in PACKAGES for row in rows(name)])
def test_both_names_exist(library: str, row: list[str]) -> None:
    pytest.importorskip(PACKAGES[library])
    assert missing(library, row) == []
    others = {"memory", "export-hf", "rotary_emb_dim", "use_abs_pos_emb=False"}
    assert [code for code in unknown(row[1]) if code not in others] == []


def test_wrong_names_are_found() -> None:
    assert len([row for name in PACKAGES for row in rows(name)]) > 30
    assert missing("fairseq", ["`transformer_small`", "", "`models/transformer_lm.py`"]) == ["transformer_small"]
    assert unknown("`--arch posenc_gpt`, `clop=3`, `clip=3`, `fairseq_posenc.stack.Stock`") == [
        *("--arch posenc_gpt", "clop=3", "fairseq_posenc.stack.Stock"),
    ]
    with pytest.raises(ValueError, match="unknown position encoding"):
        unknown("`--pos-enc roap`")
