"""Test that the public interface is the one that tests/public_api.txt lists."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Mapping
from typing import Any

import pytest
import support_public_api as api

import fairseq_posenc
from fairseq_posenc import encodings

CURE = """\
What users rely on has changed (- is gone, + is new). If this is intended: run `python tests/support_public_api.py`, and
tell users in docs/CHANGELOG.md what they have to change."""


def changes(old: str, new: str) -> str:
    return "\n".join(difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm=""))


def test_the_list_is_current() -> None:
    difference = changes(api.LIST.read_text(encoding="utf-8"), api.text())
    assert not difference, f"{CURE}\n{difference}"


def test_a_change_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def build(spec: str, stack: encodings.StackShape) -> encodings.Composition:
        raise NotImplementedError

    old = "\n\n".join(api.modules())
    monkeypatch.setattr(encodings, "build", build)
    difference = changes(old, "\n\n".join(api.modules()))
    assert "\n-build(spec: str, args: str" in difference
    assert "\n+build(spec: str, stack: encodings.StackShape)" in difference


def test_the_names_of_the_package_are_those_of_its_modules() -> None:
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
