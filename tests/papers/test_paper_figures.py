"""Test that the tables of the documentation repeat the papers' numbers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support_choosing import PAGES, cells, quoted

from fairseq_posenc.commands.params import split
from fairseq_posenc.encodings.registry import ENCODINGS
from fairseq_posenc.papers.matching import PRETRAINED
from fairseq_posenc.papers.reading import Figure, figures
from recipes.lib.encodings import published

FINE_TUNING, CHOOSING = "fine-tuning", "choosing"
EM, F1 = "SQuAD1.1 EM", "SQuAD1.1 F1"
BOTH_SQUADS = (EM, F1, "SQuAD2.0 EM", "SQuAD2.0 F1")
MNLI = "MNLI-m/MNLI-mm"  # two numbers in one cell
TEXTS = ("IMDB", "SST-2", "SNLI", "QNLI", "QQP", "MNLI")
AVERAGES = ("BERT-base, English", 32), ("BERT-base, 100 languages", 256)  # of GLUE and XTREME, with slots


def label(cell: str) -> str:
    return quoted(cell)[0]


def described(first: str, model: str) -> tuple[str, str]:
    """Return the encoding and the model of a row, which is a model of the paper's own or BERT as published."""
    if first.startswith("BERT as published"):
        return "learned+segments-input", f"{model} (Devlin et al., 2018)"
    return label(first), model


def rows(page: str, head: str) -> Iterator[tuple[str, list[str]]]:
    """Return the first cell of each row of a page's table with the numbers of the row."""
    for first, *others in cells(PAGES[page], head):
        yield first, others


def shown(paper: str, encoding: str, column: str, digits: int = 2, **conditions: object) -> str:
    """Return a cell of the page, which is empty if the paper does not print this number."""
    rows = [published(figures(paper, column=part, **conditions), encoding, PRETRAINED) for part in column.split("/")]
    values = [row and row.value for row in rows]
    if "(Devlin" in str(conditions.get("model")):  # the paper prints the numbers of BERT as published with one digit
        digits = 1
    return "/".join("" if value is None else f"{value:.{digits}f}" for value in values)


def printed(encoding: str, table: str, column: str) -> str:
    """Return a cell of the LFHC paper with its ±, for the best clip if the page does not name one."""
    options = split(encoding)[1]
    candidates = figures("LFHC", table=table, column=column)
    (figure,) = (row for row in candidates if row.encoding == encoding or (not options and same_name(row, encoding)))
    return figure.printed.replace("±", " ± ")


def same_name(figure: Figure, encoding: str) -> bool:
    return split(figure.encoding)[0] == encoding


# --- M1 to M4, M4M


@pytest.mark.parametrize(
    ("head", "paper", "model", "columns"),
    [
        ("`--pos-enc` | EM | F1 | MNLI", "M1-M4", "BERT-base", (EM, F1, MNLI, "QQP", "SST-2", "MRPC")),
        ("`--pos-enc` with k | EM | F1", "M1-M4", "BERT-base", (EM, F1)),
        ("`--pos-enc` | MNLI-m | SST-2", "M4M", "RoBERTa-base", ("MNLI-m", "SST-2", F1)),
    ],
)
def test_models_from_scratch(head: str, paper: str, model: str, columns: tuple[str, ...]) -> None:
    for first, numbers in rows(FINE_TUNING, head):
        lengths = [{"length": 512} if column in (EM, F1) else {} for column in columns]
        pairs = zip(columns, lengths, strict=True)
        encoding, of_model = described(first, model)
        assert [shown(paper, encoding, name, model=of_model, **length) for name, length in pairs] == numbers, first


def test_m4s_ranges_and_sharing() -> None:
    columns = ("MNLI-m", "SST-2", F1)
    scales = [[shown("M4M", f"m4[scale={scale}]", column) for column in columns] for scale in (1, 2, 3, 4, 6, 9)]
    ranges = dict(rows(CHOOSING, "M4M Table 3"))
    assert ranges == {name: [*map(of, zip(*scales, strict=True))] for name, of in (("lowest", min), ("highest", max))}
    sharing = {first: cell for first, (cell, _) in rows(CHOOSING, "about")}["heads that share"]
    shared, own = ([shown("M4M", f"m4[share={share}]", name) for name in columns] for share in ("head-wise", "none"))
    assert "MNLI-m {}, SST-2 {}, F1 {}; with separate heads {}, {}, {}".format(*shared, *own) in sharing


def test_longer_than_in_pretraining() -> None:
    compared, model = 0, ("", "")
    for first, (length, *numbers) in rows(FINE_TUNING, "`--pos-enc` | fine-tuned"):
        if first:
            large = first.endswith("large")
            model = (f"{label(first)}+segments-input", "BERT-large") if large else (label(first), "BERT-base")
        ours = [shown("M1-M4", model[0], score, model=model[1], length=length) for score in (EM, F1)]
        assert ours == numbers, (model, length)
        compared += 1
    assert compared == 8


@pytest.mark.parametrize(
    ("head", "paper", "columns", "models"),
    [
        (
            *("model (BERT-large) | EM", "M1-M4", (EM, F1)),
            {
                "BERT as published": ("learned+segments-input", "BERT-large (Devlin et al., 2018)"),
                "the checkpoint": ("learned+segments-input", "BERT-large"),
                "`m4`": ("m4+segments-input", "BERT-large"),
            },
        ),
        (
            *("model | SQuAD1.1 EM", "M4M", BOTH_SQUADS),
            {
                "roberta-base": ("learned", "roberta-base"),
                "`learned`": ("learned", "from roberta-base"),
                "`m4m`": ("m4m", "from roberta-base"),
                "`m4m`, on C4": ("m4m", "from roberta-base, on C4"),
                "roberta-large": ("learned", "roberta-large"),
                "`m4m`, large": ("m4m", "from roberta-large"),
            },
        ),
        (
            *("model | MNLI-m/mm", "M4M", (MNLI, "QQP", "QNLI", "SST-2", "CoLA", "STS-B", "MRPC", "RTE")),
            {
                "roberta-base": ("learned", "roberta-base"),
                "`learned`": ("learned", "from roberta-base"),
                "`m4m`": ("m4m", "from roberta-base"),
            },
        ),
    ],
    ids=["BERT-large", "SQuAD", "GLUE"],
)
def test_models_from_checkpoints(
    head: str, paper: str, columns: tuple[str, ...], models: dict[str, tuple[str, str]]
) -> None:
    length = {"length": 512} if EM in columns else {}
    assert dict(rows(FINE_TUNING, head)) == {
        first: [shown(paper, encoding, column, model=model, **length) for column in columns]
        for first, (encoding, model) in models.items()
    }


def test_what_failed() -> None:
    failures = {label(first): text for first, (text, _) in rows(FINE_TUNING, "`--pos-enc` | what")}
    loss = {figure.encoding: figure.printed for figure in figures("M4M", column="loss")}
    assert failures["none"].endswith(f"loss is {loss['none']}, and that of a normal RoBERTa-base is {loss['learned']}.")
    assert failures["sentence-restart"].endswith(f"loss is {loss['sentence-restart']}.")
    (raffel,) = figures("M4M", encoding="raffel", column=F1)
    rate = raffel.conditions["model"].rpartition(" ")[2]
    assert f"With {rate}, the F1 on SQuAD1.1 is {raffel.printed}." in failures["raffel"]


# --- DIET: the page writes an encoding and its segments as one name, the paper's tables separate them


def of_diet(composed: str, model: str, slots: int) -> str:
    """Return the average of `diet-rel+segments[diet-rel.share=head-wise]`."""
    spec, options = split(composed)
    members = spec.split("+")
    parts = [option.removeprefix("diet-rel.").removeprefix("diet-abs.") for option in filter(None, options.split(","))]
    parts += [f"slots={slots}"] if {"linformer", "diet-abs-lin"} & {*members} else []
    name = "+".join(member for member in members if not member.startswith("segments"))
    segments = "input" if "segments-input" in members else "head"
    encoding = name + (f"[{','.join(parts)}]" if parts else "")
    return shown("DIET", encoding, "average", digits=1, model=model, segments=segments)


def test_averages_of_diet() -> None:
    averages = list(rows(FINE_TUNING, "`--pos-enc` | GLUE | XTREME"))
    for first, numbers in averages:
        assert [of_diet(label(first), model, slots) for model, slots in AVERAGES] == numbers, first
    assert len(averages) == 12


def test_averages_of_diets_segments() -> None:
    for first, numbers in rows(FINE_TUNING, "`--pos-enc` | GLUE, input"):
        kinds = [(model, kind) for model, _ in AVERAGES for kind in ("input", "head")]
        ours = [shown("DIET", label(first), "average", 1, model=model, segments=kind) for model, kind in kinds]
        assert ours == numbers, first


def test_translation() -> None:
    for first, numbers in rows("translation", "`--pos-enc` | EN-DE"):
        called = {"sinusoidal[freq=t2t]": "sinusoidal", "shaw": "shaw[clip=20,values=true]"}
        name = called.get(label(first), label(first))
        assert [shown("DIET", name, column) for column in ("en-de", "de-en", "en-cs", "cs-en")] == numbers, first


def test_times_of_diet() -> None:
    """The page about speed shows the paper's times as ratios, in brackets."""
    for first, numbers in rows("speed", "--pos-enc   |   base, train"):
        times = figures("DIET", table="Table 1", encoding=label(first))
        ratios = [f"({1 + int(time.printed.strip('+%')) / 100:.2f})" for time in times]
        assert [number.split()[1] for number in numbers] == ratios, first


# --- LFHC and GCDF


@pytest.mark.parametrize(
    ("page", "head", "table", "columns"),
    [
        ("language-models", "`--pos-enc` | 150", "Table 3", ("memory 150", "memory 640", "best")),
        ("question-generation", "`--pos-enc` | SQuAD", "Table 2", ("SQuAD", "CMRC")),
        ("text-classification", "`--pos-enc` | IMDB", "Table 1", TEXTS),
    ],
)
def test_lfhc(page: str, head: str, table: str, columns: tuple[str, ...]) -> None:
    for first, numbers in rows(page, head):
        assert [printed(label(first), table, column) for column in columns] == numbers, first


# --- where the papers disagree


def test_disagreements() -> None:
    cells_of = dict(rows(CHOOSING, "about"))
    shaw = shown("DIET", "shaw", "average", 1, model="BERT-base, 100 languages")
    assert cells_of["`shaw` on XTREME"][0].startswith(shaw)
    assert cells_of["`shaw` on XTREME"][1].startswith(shown("DIET", "shaw", "XTREME", 1))
    text, table = (figure.printed for figure in figures("M4M", column="SQuAD2.0 F1") if figure.row == "RoBERTa-ABS")
    assert [cell.split()[0] for cell in cells_of["RoBERTa-ABS on SQuAD2.0"]] == [text, table]
    assert cells_of["parameters of `shaw`"][0].startswith(
        figures("M4M", column="parameters", encoding="shaw")[0].printed
    )


# --- the pages of recipes, which show the papers' numbers next to measured ones


@pytest.mark.parametrize(
    ("page", "section", "head", "columns"),
    [
        (
            "language-models",
            "Results on WikiText-2",
            "--pos-enc",
            {3: ("LFHC", "memory 150"), 4: ("LFHC", "memory 640")},
        ),
        ("translation", "", "--pos-enc | BLEU, seeds 1 and 2", {5: ("DIET", "en-de")}),
    ],
)
def test_papers_columns_of_a_recipes_page(
    page: str, section: str, head: str, columns: dict[int, tuple[str, str]]
) -> None:
    text = PAGES[page].partition(f"# {section}\n" if section else "# ")[2]
    first_table = text[text.index(f"| {head}") :].partition("\n\n")[0] + "\n"
    compared = 0
    for name, *numbers in cells(first_table, head):
        for column, (paper, what) in columns.items():
            ours = shown(paper, name, what) if name.partition("[")[0] in ENCODINGS else ""
            assert numbers[column] == ours, name
            compared += bool(ours)
    assert compared


def test_other_directions_on_the_page_of_translation() -> None:
    languages = {"German": "de", "English": "en", "Czech": "cs"}
    directions = cells(PAGES["translation"], "| sinusoidal | t5 | rope |")
    assert len(directions) == 3
    for direction, *_, paper in directions:
        assert paper == shown("DIET", "sinusoidal", "-".join(languages[name] for name in direction.split(" to ")))


def test_the_order_of_m4m_on_the_page_of_masked_language_models() -> None:
    names = {"M4": "m4", "Shaw": "shaw", "M2": "m2", "absolute": "learned"}
    order = ", ".join(f"{name} {shown('M4M', encoding, F1, model='RoBERTa-base')}" for name, encoding in names.items())
    assert f"Table 2: {order} F1 on SQuAD 1.1" in " ".join(PAGES["masked-lm"].split())
