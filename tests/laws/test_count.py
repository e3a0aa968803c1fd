"""Test law 9: an encoding has as many parameters as its paper says."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from fairseq_posenc.encodings import StackShape, build, specs

from .cases import Case, directions, every, tables

BASE = StackShape(layers=12, heads=12, dim=768, max_length=512, has_cls=True)
DECODER = replace(BASE, causal=True, has_cls=False)
TABLES = tables("counts")

#: Number of parameters of each encoding in BERT-base, by its options.
PUBLISHED: dict[str, dict[str, int]] = TABLES["base"]


def count(spec: str, args: str, shape: StackShape) -> int:
    """Return the number of parameters, for which no memory is needed."""
    with torch.device("meta"):
        return sum(parameter.numel() for parameter in build(spec, args, shape).parameters())


def check_count(case: Case) -> None:
    """Compare the count with the built encoding at several sizes."""
    for sizes in ({}, {"layers": 3, "heads": 4}, {"head_dim": 6, "max_length": 9}):
        shape = case.shape(**sizes)
        for member in case.encoding(shape).members.values():
            has = sum(parameter.numel() for parameter in member.parameters())
            says = type(member).count(member.options, shape)
            assert has == says, f"{has} parameters, not {says}"
            stored = sum(value.numel() for value in member.state_dict().values())
            assert stored == has, f"{stored} numbers are stored, {has} counted"


@pytest.mark.parametrize("spec", specs())
def test_the_count_is_that_of_the_formula(spec: str) -> None:
    for case in every(lambda case: case.spec == spec):
        check_count(case)


@pytest.mark.parametrize("spec", PUBLISHED)
def test_the_count_of_a_base_model_is_the_published_one(spec: str) -> None:
    shape = BASE if False in directions(spec.partition("+")[0]) else DECODER
    assert {args: count(spec, args, shape) for args in PUBLISHED[spec]} == PUBLISHED[spec]


@pytest.mark.parametrize(("spec", "args", "shape", "published"), TABLES["other"])
def test_the_count_of_other_stacks_is_the_published_one(
    spec: str, args: str, shape: dict[str, int], published: int
) -> None:
    assert count(spec, args, StackShape(**shape)) == published
