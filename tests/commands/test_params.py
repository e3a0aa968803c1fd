"""Test the exact parameter counts of `params`, and those that the papers print."""

from __future__ import annotations

import functools
import json
import sys

import pytest
from laws.test_count import PUBLISHED

from fairseq_posenc.commands import params, whole_models
from fairseq_posenc.encodings import specs
from fairseq_posenc.encodings.facts import at_base_size
from fairseq_posenc.papers.reading import figures

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


#: Time and memory beyond those of the logits; for stored tables as in Table 1 of the M4M paper.
COSTS = {
    ("shaw", ""): ("O(mn^2d)", "O(mhn^2)"),
    ("raffel", ""): ("O(mhn^2)", "O(mn^2)"),
    ("t5", ""): ("O(mhn^2)", "O(hn^2)"),
    ("m1", "share=none"): ("O(mhn^2)", "O(mhn^2)"),
    ("m2", ""): ("O(mhn^2)", "O(mn^2)"),
    ("tupe", "form=original"): ("O(n^2d)", "O(hn^2)"),
    ("tupe", "share=layer-wise"): ("O(n^2d)", "O(hn^2)"),
    ("diet-abs", "rank=128,share=none"): ("O(mhn^2d_p)", "O(mhn^2)"),
    ("diet-abs-lin", ""): ("O(mknd)", "O(mkd)"),
    ("diet-abs-lin", "share=none,rank=128"): ("O(mhnkd_p)", "O(mhnk)"),
    ("learned+tupe", "tupe.share=none"): ("O(mn^2d)", "O(mhn^2)"),
}


@pytest.mark.parametrize(("label", "costs"), COSTS.items(), ids=str)
def test_the_cost_is_the_largest_term_at_base_size(label: tuple[str, str], costs: tuple[str, str]) -> None:
    built = at_base_size(*label)
    assert (params.cost(built, 0), params.cost(built, 1)) == costs


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


#: Architectures, their flags, and the parameters of their position encodings. Sizes: layers, heads, length, head width.
ARCHITECTURES = [
    (
        "posenc_transformer_small",
        {"--pos-enc": "shaw", "--pos-enc-args": "share=none,clip=4,layers=1:3"},
        2 * 2 * 4 * 9 * 32,  # two stacks; two of three layers, each head on its own
    ),
    (
        "posenc_transformer_small",
        {
            "--pos-enc-encoder": "linformer",
            "--pos-enc-encoder-args": "slots=8",
            "--pos-enc-decoder": "cope",
            "--pos-enc-decoder-args": "n_max=32",
        },
        3 * 2 * 8 * 1024 + 3 * 32 * 32,  # E and F of each layer; a table of each layer
    ),
    ("posenc_roberta_base", {"--pos-enc": "m4"}, 12 * (2 * 512 - 1) * 64),  # 512 positions, as no task sets them
]


@pytest.mark.parametrize(("arch", "flags", "positions"), ARCHITECTURES)
def test_any_architecture_is_counted(arch: str, flags: dict[str, str], positions: int) -> None:
    facts = params.of_architecture(arch, flags)
    none = params.of_architecture(arch, {"--pos-enc": "none"})
    assert facts["positions"] == positions
    assert facts["model_without_words"] - none["model_without_words"] == positions


@pytest.mark.parametrize(
    ("args", "count"), [([], 151_119_838), (["--pos-enc-args", "biases=tied"], 151_107_538)], ids=["untied", "original"]
)
def test_transformer_xl_of_wikitext_103_has_its_count(
    args: list[str], count: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each layer has its own u and v, or all share one pair, as in Transformer-XL's code."""
    assert params.main(["--arch", "posenc_transformer_lm_wt103", "--pos-enc", "xl", "--json", *args]) == 0
    (facts,) = json.loads(capsys.readouterr().out)
    assert (facts["types"], facts["model"]) == (267_735, count)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--arch posenc_transformer_tny --pos-enc shaw", "did you mean posenc_transformer_tiny?"),
        ("--arch posenc_transformer_small --pos-enc cope", "cope"),
        ("--arch posenc_bert_small --pos-enc-encoder m4", "Use --pos-enc"),
        ("--arch posenc_transformer_small shaw", "NAME cannot be used with --arch. Give --pos-enc shaw instead."),
        ("shwa", "NAME: unknown position encoding 'shwa'"),
        ("--pos-enc none", "--pos-enc can only be used with --arch"),
    ],
)
def test_what_cannot_be_counted_is_refused(words: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match=r"^[12]$"):
        sys.exit(params.main(words.split()))
    assert message in capsys.readouterr().err
