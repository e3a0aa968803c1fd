"""Test that the public interface is the one that tests/public_api.txt lists, and that each `__all__` is exact."""

from __future__ import annotations

import difflib
import importlib
import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import support_public_api as api

import fairseq_posenc
from fairseq_posenc import encodings

CURE = """\
What users rely on has changed (- is gone, + is new). If this is intended: run `python tests/support_public_api.py`, and
tell users in docs/CHANGELOG.md what they have to change."""
PACKAGE = Path(fairseq_posenc.__file__).parent


def changes(old: str, new: str) -> str:
    """Return the lines that differ, each below the section in which it stands."""
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=1000)
    changed = [line for line in lines if line.startswith(("+", "-", " [")) and not line.startswith(("+++", "---"))]
    pairs = itertools.pairwise([*changed, " ["])
    return "\n".join(line for line, following in pairs if line[:2] != " [" or following[:2] != " [")


def test_the_list_is_current() -> None:
    difference = changes(api.LIST.read_text(encoding="utf-8"), api.text())
    assert not difference, f"{CURE}\n{difference}"


def test_a_change_is_named_with_its_section(monkeypatch: pytest.MonkeyPatch) -> None:
    def build(spec: str, stack: encodings.StackShape) -> encodings.Composition:
        raise NotImplementedError

    old = "\n\n".join(api.modules())
    monkeypatch.setattr(encodings, "build", build)
    section, gone, new = changes(old, "\n\n".join(api.modules())).splitlines()
    assert section == " [fairseq_posenc.encodings]"
    assert gone.startswith("-build(spec: str, args: str")
    assert new.startswith("+build(spec: str, stack: encodings.StackShape)")


def path_of(module: str) -> Path:
    path = PACKAGE.joinpath(*module.strip(".").split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


@pytest.mark.parametrize("name", [name for name in api.MODULES if name])
def test_all_is_exact(name: str) -> None:
    module = importlib.import_module(f"fairseq_posenc{name}")
    assert sorted(module.__all__) == sorted(api.bound(path_of(name)) - {"annotations"})


def test_all_of_the_package_is_exact() -> None:
    late: Mapping[str, str] = fairseq_posenc._MODULES
    assert sorted(fairseq_posenc.__all__) == sorted([*late, "__version__", "load"])
    assert set(late) <= set(dir(fairseq_posenc))
    for name, module in late.items():
        home: Any = importlib.import_module(f"fairseq_posenc.{module}")
        assert getattr(fairseq_posenc, name) is getattr(home, name)
        assert name in home.__all__


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Stak'"):
        _ = fairseq_posenc.Stak


def test_every_all_names_what_exists() -> None:
    for path in PACKAGE.rglob("*.py"):
        if "\n__all__ = " in path.read_text(encoding="utf-8"):
            parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
            module = importlib.import_module(".".join(part for part in parts if part != "__init__"))
            assert [name for name in module.__all__ if not hasattr(module, name)] == [], path
