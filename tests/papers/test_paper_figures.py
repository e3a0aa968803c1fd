"""The papers' figures are kept once, in the recipes: the tables of docs/which-encoding.md repeat them, and the averages
that the DIET paper prints are theirs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from statistics import fmean

import pytest
from support_which_encoding import HAND, cells, sections

from fairseq_posenc.commands.choosing import quoted, split
from recipes.finetune_glue import published as glue
from recipes.finetune_squad import published as squad
from recipes.finetune_xtreme import published as xtreme
from recipes.lib.encodings import Encoding, parse, published
from recipes.lm_wikitext103 import published as lm
from recipes.question_generation import published as generation
from recipes.translation_wmt18 import published as translation

SECTIONS = sections(HAND)
PRETRAINING, CHECKPOINT, LONGER = "masked-lm-pretraining-glue-and-squad", "from-a-checkpoint", "longer-than-in-training"
#: XTREME's averages that are not those of their numbers: docs/which-encoding.md, where the papers disagree
PRINTED = {("diet-rel[share=head-wise]", "head"): 54.7, ("diet-rel[share=layer-wise]", "head"): 57.3}


def label(cell: str) -> str:
    return quoted(cell)[0]


def rows(anchor: str, head: str = "`--pos-enc`") -> Iterator[tuple[str, list[str]]]:
    """First cells, and the numbers beside them."""
    for first, *others in cells(SECTIONS[anchor], head):
        yield first, others


def shown(found: Iterable[float | None], digits: int = 2) -> list[str]:
    return ["" if one is None else f"{one:.{digits}f}" for one in found]


# --- DIET: the page composes an encoding with its segments, the recipes keep them apart


def of_diet(composed: str, slots: int) -> tuple[str, str]:
    """`diet-rel+segments[diet-rel.share=head-wise]` -> the recipes' label, and their name of the segments."""
    spec, options = split(composed)
    names = spec.split("+")
    kind = "input" if "segments-input" in names else "head"
    found = [one.removeprefix("diet-rel.").removeprefix("diet-abs.") for one in filter(None, options.split(","))]
    found += [f"slots={slots}"] if {"linformer", "diet-abs-lin"} & {*names} else []
    spec = "+".join(name for name in names if not name.startswith("segments"))
    return spec + (f"[{','.join(found)}]" if found else ""), kind


def glue_row(encoding: Encoding, segments: str) -> list[float]:
    return list(glue.paper("diet", encoding, segments).values())


def xtreme_row(encoding: Encoding, segments: str) -> list[float]:
    pairs = [xtreme.figures(task, encoding, segments) or () for task in xtreme.TASKS]
    return [*glue.paper("diet-xtreme", encoding, segments).values(), *(one for pair in pairs for one in pair)]


def average(of: Callable[[Encoding, str], list[float]], name: str, segments: str) -> str:
    """Of seven numbers; empty where the paper has no such row."""
    found = of(parse(name), segments)
    assert len(found) in (0, 7), name
    printed = PRINTED.get((name, segments)) if of is xtreme_row else None
    return f"{printed or fmean(found):.1f}" if found else ""


@pytest.mark.parametrize("anchor", [PRETRAINING, "few-parameters", "very-long-inputs"])
def test_averages_of_diet(anchor: str) -> None:
    told = list(rows(anchor, "`--pos-enc` | GLUE | XTREME"))
    for first, numbers in told:
        ours = [average(of, *of_diet(label(first), slots)) for of, slots in ((glue_row, 32), (xtreme_row, 256))]
        assert ours == numbers, first
    assert len(told) >= 4


def test_averages_of_diets_segments() -> None:
    for first, numbers in rows("sentence-pairs"):
        kinds = [(of, kind) for of in (glue_row, xtreme_row) for kind in ("input", "head")]
        ours = [average(of, label(first), kind) for of, kind in kinds]
        assert [one for one, theirs in zip(ours, numbers, strict=True) if theirs] == list(filter(None, numbers)), first


#: as the paper prints them (METHODS.md 6.D), so that a number that was copied wrongly is noticed
GLUE_AVERAGES = {
    ("learned", "input"): 84.8,
    ("shaw", "input"): 85.2,
    ("t5", "input"): 85.2,
    ("tupe", "input"): 85.2,
    ("diet-rel", "input"): 84.9,
    ("diet-rel", "head"): 85.2,
    ("diet-rel[share=layer-wise]", "head"): 85.0,
    ("diet-rel[share=head-wise]", "head"): 84.9,
    ("diet-abs[rank=64,share=none]", "input"): 85.0,
    ("diet-abs[rank=64,share=none]", "head"): 85.0,
    ("diet-abs[rank=64,share=layer-wise]", "head"): 85.2,
    ("diet-abs[rank=128,share=none]", "head"): 85.3,
    ("diet-abs[rank=128,share=layer-wise]", "head"): 85.2,
    ("learned+linformer[slots=32]", "input"): 82.0,
    ("diet-abs-lin[slots=32]", "input"): 82.7,
}
XTREME_AVERAGES = {
    ("learned", "input"): 55.3,
    ("shaw", "input"): 58.2,
    ("t5", "input"): 58.6,
    ("tupe", "input"): 57.5,
    ("diet-rel", "input"): 57.6,
    ("diet-rel", "head"): 58.0,
    ("diet-rel[share=head-wise]", "input"): 55.4,
    ("diet-rel[share=layer-wise]", "input"): 57.2,
    **PRINTED,
    ("diet-abs[rank=64,share=none]", "input"): 56.3,
    ("diet-abs[rank=64,share=none]", "head"): 56.5,
    ("diet-abs[rank=128,share=none]", "head"): 56.8,
    ("diet-abs[rank=512,share=none]", "head"): 56.9,
    ("diet-abs[rank=64,share=layer-wise]", "input"): 57.9,
    ("diet-abs[rank=64,share=layer-wise]", "head"): 58.0,
    ("diet-abs[rank=128,share=layer-wise]", "head"): 58.9,
    ("diet-abs[rank=256,share=layer-wise]", "head"): 58.3,
    ("diet-abs[rank=512,share=layer-wise]", "head"): 57.5,
    ("learned+linformer[slots=256]", "input"): 48.2,
    ("diet-abs-lin[slots=256]", "input"): 50.8,
}


def test_every_row_of_diet_has_the_average_that_is_printed() -> None:
    def kept(by_input: Mapping[str, object], by_head: Mapping[str, object]) -> set[tuple[str, str]]:
        return {(name, "input") for name in by_input} | {(name, "head") for name in by_head}

    assert kept(glue.DIET_INPUT, glue.DIET_HEAD) == set(GLUE_AVERAGES)
    assert kept(glue.XTREME_INPUT, glue.XTREME_HEAD) == kept(xtreme.INPUT, xtreme.HEAD) == set(XTREME_AVERAGES)
    for of, averages in ((glue_row, GLUE_AVERAGES), (xtreme_row, XTREME_AVERAGES)):
        assert {one: float(average(of, *one)) for one in averages} == averages


# --- M1 to M4, M4M


def answers(paper: str, name: str, longest: int = 512, version: str = "1.1") -> tuple[float | None, float | None]:
    """EM and F1 of the paper's own models."""
    return published(squad.PAPERS[paper].figures[version, longest], parse(name)) or (None, None)


def m1_m4(name: str, longest: int = 512, paper: str = "m1-m4") -> tuple[float | None, float | None]:
    return answers(paper, name, longest)


def both(protocol: str, name: str) -> list[str]:
    """GLUE's figures as the page has them: MNLI's two in one cell."""
    found = shown(glue.paper(protocol, parse(name), "none").values())
    return [f"{found[0]}/{found[1]}", *found[2:]]


def test_m1_to_m4() -> None:
    for first, numbers in rows(PRETRAINING, "`--pos-enc` | EM | F1 | MNLI"):
        name = label(first)
        assert shown(m1_m4(name)) + both("m1-m4", name) == numbers, first


def test_clips() -> None:
    for first, numbers in rows("few-parameters", "`--pos-enc` | EM | F1"):
        assert shown(m1_m4(label(first))) == numbers, first
    assert m1_m4("m4") == m1_m4("m4[clip=512]")


def test_longer_than_in_pretraining() -> None:
    found, model = 0, ("", "")
    for first, (longest, *numbers) in rows(LONGER, "`--pos-enc` | fine-tuned"):
        if first:
            large = first.endswith("large")
            model = (f"{label(first)}+segments-input", "m1-m4-large") if large else (label(first), "m1-m4")
        assert shown(m1_m4(model[0], int(longest), model[1])) == numbers, (model, longest)
        found += 1
    assert found == 8


def test_bert_large() -> None:
    (before, after) = (numbers for _, numbers in rows(CHECKPOINT, "model | EM"))
    assert before == shown(m1_m4("learned+segments-input", paper="m1-m4-large"))
    assert after == shown(m1_m4("m4+segments-input", paper="m1-m4-large"))


def m4m(name: str) -> list[float | None]:
    return [*glue.paper("m4m", parse(name), "none").values(), answers("m4m-small", name)[1]]


def test_m4m_from_scratch() -> None:
    for first, numbers in rows(PRETRAINING, "`--pos-enc` | MNLI-m | SST-2"):
        assert shown(m4m(label(first))) == numbers, first
    columns = list(zip(*(m4m(f"m4[scale={scale}]") for scale in (1, 2, 3, 4, 6, 9)), strict=True))
    ranges = dict(rows("how-far-the-numbers-go", "M4M Table 3"))
    assert ranges == {"lowest": shown(map(min, columns)), "highest": shown(map(max, columns))}
    told = {first: cell for first, (cell, _) in rows("where-the-papers-disagree", "about")}["heads that share"]
    shared, own = (shown(m4m(f"m4[share={share}]")) for share in ("head-wise", "none"))
    assert "MNLI-m {}, SST-2 {}, F1 {}, each head its own {}, {}, {}".format(*shared, *own) in told


def test_m4m_from_checkpoints() -> None:
    found = dict(rows(CHECKPOINT, "model | MNLI-m/mm"))
    assert found == {
        "roberta-base": both(glue.ROBERTA, "learned"),
        **{f"`{name}`": both(glue.WARM, name) for name in ("learned", "m4m")},
    }
    models = {"`learned`": ("m4m", "learned"), "`m4m`": ("m4m", "m4m"), "`m4m`, large": ("m4m-large", "m4m")}
    told = dict(rows(CHECKPOINT, "model | SQuAD1.1 EM"))
    for name, (paper, encoding) in models.items():
        ours = [one for version in ("1.1", "2.0") for one in answers(paper, encoding, version=version)]
        assert shown(ours) == told[name], name


# --- LFHC and GCDF, translation


@pytest.mark.parametrize(
    ("anchor", "head"), [(LONGER, "`--pos-enc` | memory"), ("language-modelling-with-memory", "`--pos-enc` | 150")]
)
def test_language_modelling(anchor: str, head: str) -> None:
    for first, numbers in rows(anchor, head):
        name = {"diet-rel": "diet-rel[clip=150]"}.get(label(first), label(first))
        ours = [lm.papers(parse(name), memory) for memory in lm.MEMORIES]
        assert shown(ours) == numbers[:2], first
        if len(numbers) > 2:  # with what the paper does not explain
            assert numbers[2].split(" ± ")[0] == shown([min(filter(None, ours))])[0]


def test_question_generation() -> None:
    """Of Shaw the best clip of each set."""
    called = {
        "diet-rel": ["diet-rel[clip=50]"] * 2,
        "shaw": ["shaw[clip=8,share=none]", "shaw[clip=4,share=none]"],
    }
    for first, numbers in rows("question-generation"):
        pair = zip(called.get(label(first), [label(first)] * 2), (generation.SQUAD, generation.CMRC), strict=True)
        ours = [generation.paper(parse(one), of) for one, of in pair]
        assert shown(ours) == [number.split(" ± ")[0] for number in numbers], first


def test_translation() -> None:
    for first, numbers in rows("translation", "`--pos-enc` | EN-DE"):
        called = {"sinusoidal[freq=t2t]": "sinusoidal", "shaw": "shaw[clip=20,values=true]"}
        name = called.get(label(first), label(first))
        assert shown(translation.paper(parse(name), one) for one in translation.DIRECTIONS) == numbers, first
