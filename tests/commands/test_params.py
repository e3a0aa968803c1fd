"""Test the exact parameter counts of `params`, and those that the papers print."""

from __future__ import annotations

import functools
import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from laws.test_count import PUBLISHED

from fairseq_posenc.commands import params, whole_models
from fairseq_posenc.encodings import specs
from fairseq_posenc.encodings.facts import at_base_size
from fairseq_posenc.papers.reading import figures

EXPECTED: dict[str, Any] = tomllib.loads(Path(__file__).with_name("params.toml").read_text("utf-8"))
all_rows = functools.cache(params.rows)


def test_every_row_has_its_exact_count() -> None:
    counts = {(row["encoding"], row["options"]): row["count"] for row in all_rows()}
    published = {(spec, args): count for spec, rows in PUBLISHED.items() for args, count in rows.items()}
    both = set(published) & set(counts)
    assert {key: counts[key] for key in both} == {key: published[key] for key in both}
    assert {(spec, "") for spec in specs()} <= set(counts)
    papers = ("M1-M4", "M4M", "DIET")
    columns = ("formula", "parameters")
    counted = [
        params.split(row.encoding) for name in papers for column in columns for row in figures(name, column=column)
    ]
    assert len(counted) > 20
    assert {*counted, *map(params.split, params.FORMULAS)} <= both


def test_every_number_that_a_paper_prints_has_a_row() -> None:
    """Our counts are those of the papers, or a note says why not."""
    printed = [(row["encoding"], row["printed"]) for row in all_rows()]
    for paper in ("M1-M4", "M4M", "DIET"):
        for figure in figures(paper, column="parameters"):
            assert (params.split(figure.encoding)[0], figure.printed) in printed
    for row in all_rows():
        if row["printed"].endswith("K") and not row["note"]:
            assert int(row["printed"][:-1]) == row["count"] // 1000, row
    shown = {(row["encoding"], row["options"]): row["printed memory"] for row in all_rows()}
    complexities = [figure for paper in ("M1-M4", "M4M") for figure in figures(paper, column="complexity")]
    assert len(complexities) == 14
    assert [figure for figure in complexities if shown[params.split(figure.encoding)] != figure.printed] == []


@pytest.mark.parametrize(("spec", "args", "time", "memory"), EXPECTED["costs"])
def test_the_cost_is_the_largest_term_at_base_size(spec: str, args: str, time: str, memory: str) -> None:
    built = at_base_size(spec, args)
    assert (params.cost(built, 0), params.cost(built, 1)) == (time, memory)


def test_the_totals_of_the_diet_paper() -> None:
    """Both columns of Table 6; its percentages are those of its totals, up to two that it rounds otherwise."""
    assert whole_models.total(393_216, params.BASE) == 110_104_890
    rows = [row for row in all_rows() if row["total"]]
    assert len(rows) == len(figures("DIET", table="Table 6", column="parameters")) == 6
    for row in rows:
        if row["encoding"] == "shaw":  # the paper does not explain this number
            assert (row["printed"], row["count"]) == ("112.9M", 785_664)
            continue
        for ending in whole_models.VOCABULARIES:
            assert f"{row[f'total{ending}'] / 1e6:.1f}M" == row[f"printed total{ending}"], row
            ours, printed = row[f"more{ending}"], row[f"printed more{ending}"]
            rounded = {("+10.3%", "+10.0%"), ("+0.7%", "+0.6%")} if ending else set()
            assert ours == printed or (ours[0], printed) == ("-", "+0.0%") or (ours, printed) in rounded, row


def test_json_is_one_list_of_flat_objects(capsys: pytest.CaptureFixture[str]) -> None:
    assert params.main(["--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {type(value) for row in rows for value in row.values()} <= {str, int, type(None)}
    assert params.main([]) == 0
    assert {"112.9M", "181.7M", "178,913,472", "+10.3%"} <= set(capsys.readouterr().out.split())


@pytest.mark.parametrize("case", EXPECTED["architectures"])
def test_any_architecture_is_counted(case: dict[str, Any]) -> None:
    facts = params.of_architecture(case["arch"], case["flags"])
    none = params.of_architecture(case["arch"], {"--pos-enc": "none"})
    assert facts["positions"] == case["parameters"]
    assert facts["model_without_words"] - none["model_without_words"] == case["parameters"]


@pytest.mark.parametrize(("args", "count"), EXPECTED["transformer-xl"].items())
def test_transformer_xl_of_wikitext_103_has_its_count(
    args: str, count: int, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--arch", "posenc_transformer_lm_wt103", "--pos-enc", "xl", "--json", "--pos-enc-args", args]
    assert params.main(words) == 0
    (facts,) = json.loads(capsys.readouterr().out)
    assert (facts["types"], facts["model"]) == (267_735, count)
