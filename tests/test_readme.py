"""The README says what the registry holds, and its Python runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

from fairseq_posenc.commands import choosing
from fairseq_posenc.core.options import names as option_names
from fairseq_posenc.encodings import get, names

README = (Path(__file__).resolve().parents[1] / "README.md").read_text(encoding="utf-8")


def table() -> dict[str, list[str]]:
    """Encoding -> its options, as the README's table has them."""
    rows = re.findall(r"^\| `([a-z][^`]*)` \| [^|]+ \|(.*)\|$", README.replace(r"\|", "/"), re.MULTILINE)
    return {name: [option.partition("=")[0] for option in re.findall(r"`([^`]+)`", cell)] for name, cell in rows}


def test_the_table_has_every_encoding() -> None:
    """Mend by: python -m fairseq_posenc docs."""
    assert list(table()) == names()
    assert choosing.filled(README) == README


@pytest.mark.parametrize("name", names())
def test_the_table_has_every_option(name: str) -> None:
    assert table()[name] == option_names(get(name).Options)


def test_the_python_example_runs() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    found: dict[str, torch.Tensor] = {}
    exec(code, found)
    assert found["states"].shape == (2, 4, 64)
    assert bool(found["states"].isfinite().all())


@pytest.mark.parametrize("path", re.findall(r"`((?:docs|recipes|fairseq_posenc)/[\w./-]+)`|\((docs/[\w.]+)\)", README))
def test_what_it_names_is_there(path: tuple[str, str]) -> None:
    assert (Path(__file__).resolve().parents[1] / (path[0] or path[1])).exists()
