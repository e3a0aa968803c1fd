"""Test that each number of the papers' tables has a command that computes ours, or a reason why none does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

import pytest

from fairseq_posenc.analysis.report.targets import reason_of, target_of
from fairseq_posenc.papers.reading import Figure, every, figures
from recipes.lib.encodings import published

#: Numbers that each recipe computes.
BY_RECIPE = {
    "finetune_glue": 205,
    "finetune_squad": 88,
    "finetune_xtreme": 168,
    "lm_wikitext103": 33,
    "pretrain_mlm": 3,
    "question_generation": 18,
    "text_classification": 64,
    "translation_wmt18": 12,
}
#: Numbers with a reason: of a table that has no scores, of a test set, or printed differently elsewhere.
WITH_REASON = 190


def without_both(all_figures: Iterable[Figure]) -> list[Figure]:
    """Return the numbers that have neither a command nor a reason, or that have both."""
    return [figure for figure in all_figures if (target_of(figure) is None) == (reason_of(figure) == "")]


def test_every_number_has_a_command_or_a_reason() -> None:
    assert without_both(every()) == []
    targets = [target_of(figure) for figure in every()]
    assert Counter(target.recipe for target in targets if target) == BY_RECIPE
    assert len(every()) == sum(BY_RECIPE.values()) + WITH_REASON


def test_a_number_without_both_is_found() -> None:
    first = figures("M4M", table="Table 6")[0]
    added = [replace(first, conditions={**first.conditions, "model": "another"}), replace(first, column="RACE")]
    assert without_both([*every(), *added]) == added


@pytest.mark.parametrize(
    ("paper", "table", "column", "encoding", "task", "words"),
    [
        ("DIET", "Table 2", "MNLI-mm", "t5", "MNLI-mm", "--preset paper-diet --tasks MNLI"),
        ("DIET", "Table 2", "average", "t5", "average", "--preset paper-diet --pos-enc t5"),
        ("DIET", "Table 3", "average", "t5", "average", "finetune_xtreme/run.sh --preset paper --pos-enc t5"),
        ("DIET", "Table 3", "MLQA EM", "t5", "MLQA EM", "--preset paper --tasks MLQA"),
        ("LFHC", "Table 3", "best", "lfhc[clip=16]", "wikitext103, best", "--preset wt103 --pos-enc"),
        ("M4M", "Section 5.3", "SQuAD1.1 F1", "raffel", "SQuAD1.1 F1", "--preset m4m-small-slower --version 1.1"),
        ("M1-M4", "README", "SQuAD1.1 F1", "m4", "SQuAD1.1 F1", "--preset m1-m4-384"),
        ("M1-M4", "Section 4.3", "length", "", "", ""),
    ],
)
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
