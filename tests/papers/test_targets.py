"""Test that each number of the papers' tables has a command that computes ours, or a reason why none does."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fairseq_posenc.analysis.report.targets import reason_of, target_of
from fairseq_posenc.papers.reading import Figure, every, figures
from recipes.lib.encodings import published

EXPECTED: dict[str, Any] = tomllib.loads(Path(__file__).with_name("targets.toml").read_text("utf-8"))


def without_both(all_figures: Iterable[Figure]) -> list[Figure]:
    """Return the numbers that have neither a command nor a reason, or that have both."""
    return [figure for figure in all_figures if (target_of(figure) is None) == (reason_of(figure) == "")]


def test_every_number_has_a_command_or_a_reason() -> None:
    assert without_both(every()) == []
    targets = [target_of(figure) for figure in every()]
    assert Counter(target.recipe for target in targets if target) == EXPECTED["by_recipe"]
    assert targets.count(None) == EXPECTED["with_reason"]


def test_a_number_without_both_is_found() -> None:
    first = figures("M4M", table="Table 6")[0]
    added = [replace(first, conditions={**first.conditions, "model": "another"}), replace(first, column="RACE")]
    assert without_both([*every(), *added]) == added


@pytest.mark.parametrize(("paper", "table", "column", "encoding", "task", "words"), EXPECTED["targets"])
def test_targets(paper: str, table: str, column: str, encoding: str, task: str, words: str) -> None:
    target = target_of(figures(paper, table=table, column=column, encoding=encoding)[0])
    assert (target.task if target else "") == task
    assert words in (target.command if target else "")


def test_a_commands_encoding_finds_the_papers_number() -> None:
    """The recipe that a command starts finds the number by its encoding, as the command spells it."""
    for figure in every():
        target = target_of(figure)
        if target:
            label = target.arguments[target.arguments.index("--pos-enc") + 1]
            others = figures(figure.paper, table=figure.table, column=figure.column, **figure.conditions)
            found = published(others, label)
            assert found is not None
            assert found.encoding == figure.encoding
