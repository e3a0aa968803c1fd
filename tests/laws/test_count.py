"""Law 9: an encoding has as many parameters as its paper says."""

from __future__ import annotations

import pytest
import torch

from fairseq_posenc.encodings import StackShape, build

from . import broken
from .cases import Case, every

BASE = StackShape(layers=12, heads=12, dim=768, max_length=512)

#: METHODS.md 4: BERT-base
PUBLISHED = [
    ("none", "", 0),
    ("learned", "", 393_216),
    ("sinusoidal", "", 0),
    ("sentence-restart", "", 393_216),
    ("shaw", "", 785_664),
    ("shaw", "share=none", 9_427_968),
    ("shaw", "values=true", 2 * 785_664),
    ("raffel", "", 12_276),
    ("raffel", "share=none", 147_312),
    ("t5", "", 384),
    ("m2", "", 12_276),
    ("m2", "share=none", 147_312),
    ("rope", "", 0),
    ("alibi", "", 0),
    ("learned+shaw", "", 1_178_880),
]


def check_count(case: Case) -> None:
    """At several sizes."""
    for sizes in ({}, {"layers": 3, "heads": 4}, {"head_dim": 6, "max_length": 9}):
        shape = case.shape(**sizes)
        for member in case.encoding(shape).members.values():
            has = sum(parameter.numel() for parameter in member.parameters())
            says = type(member).count(member.options, shape)
            assert has == says, f"{has} parameters, not {says}"
            stored = sum(value.numel() for value in member.state_dict().values())
            assert stored == has, f"{stored} numbers are stored, {has} counted"


@pytest.mark.parametrize("case", every(), ids=str)
def test_the_count_is_that_of_the_formula(case: Case) -> None:
    check_count(case)


@pytest.mark.parametrize(("spec", "args", "published"), PUBLISHED)
def test_the_count_of_a_base_model_is_the_published_one(spec: str, args: str, published: int) -> None:
    with torch.device("meta"):
        encoding = build(spec, args, BASE)
    assert sum(parameter.numel() for parameter in encoding.parameters()) == published


def test_a_wrong_count_is_caught() -> None:
    with pytest.raises(AssertionError, match="parameters, not"):
        check_count(Case("broken", cls=broken.WrongCount))
