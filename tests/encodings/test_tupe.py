"""TUPE: counts, what [CLS] gets, left pads, refusals (METHODS.md 2.18, 4)."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest
import torch
from test_golden import CPU, logits_of, made, vectors
from torch import Tensor

from fairseq_posenc.encodings import Composition, StackShape, build
from fairseq_posenc.encodings.tupe import _say_that_nothing_is_reset
from fairseq_posenc.positions import Positions

BASE = StackShape(layers=12, heads=12, dim=768, max_length=512)
WITH_CLS = replace(BASE, has_cls=True)
SMALL = StackShape(layers=1, heads=2, dim=8, max_length=8, has_cls=True)
FORMS = ["form=paper", "form=original"]


@pytest.mark.parametrize(
    ("args", "shape", "published"),
    [
        ("", BASE, 503_796),
        ("", WITH_CLS, 503_820),
        ("reset=none", WITH_CLS, 503_796),
        ("relative=false", BASE, 503_796 - 12_276),
        ("form=original", WITH_CLS, 1_576_704 + 396),
        ("form=original,relative=false", WITH_CLS, 1_576_704),
        ("form=original", BASE, 1_576_704 - 768 + 384),  # no row and no bucket that serve the reset only
    ],
)
def test_count(args: str, shape: StackShape, published: int) -> None:
    with torch.device("meta"):
        built = build("tupe", args, shape)
    assert sum(parameter.numel() for parameter in built.parameters()) == published


def small(args: str, shape: StackShape = SMALL) -> Composition:
    """In float64, with other parameters than those it starts with."""
    torch.manual_seed(0)
    built = build("tupe", args, shape).double().eval().requires_grad_(False)
    for parameter in built.parameters():
        parameter.add_(torch.randn_like(parameter))
    return built


def position_part(pos: Composition, where: Positions) -> Tensor:
    """[1 or B, h, Q, K]."""
    found = pos.layer(1).at(where, pos.per_layer(where)[0]).additive(torch.empty(0), torch.empty(0))
    assert found is not None
    return found.expand(-1, pos.stack.heads, -1, -1)


def test_hand_example() -> None:
    """q = (1, 2), k = (3, -1), p = (.5, 1) everywhere, U = I, a = .25: (1 + 1.25) / 2 + .25."""
    pos = made("tupe")
    tupe = pos.members["tupe"]
    tupe.weight.copy_(torch.tensor([0.5, 1.0]))
    tupe.u_q.copy_(torch.eye(2))
    tupe.u_k.copy_(torch.eye(2))
    tupe.scalars.fill_(0.25)
    found = logits_of(pos, vectors([1, 2], 3), vectors([3, -1], 5), Positions(3, 5, CPU))
    torch.testing.assert_close(found, torch.full_like(found, 1.375), rtol=0, atol=1e-12)


@pytest.mark.parametrize("args", FORMS)
@pytest.mark.parametrize("column", [0, 2])
def test_cls_has_numbers_of_its_own(args: str, column: int) -> None:
    """One for its whole row, another for the rest of its column; elsewhere nothing changes."""
    pos, where = small(args), Positions(5, 5, CPU, cls_column=torch.tensor([column, column]))
    found = position_part(pos, where)
    assert len(found) == 1, "one bias for all samples"
    others = [i for i in range(5) if i != column]
    for head in found[0]:
        assert len(head[column].unique()) == 1
        assert len(head[others, column].unique()) == 1
        assert head[column, 0] != head[others[0], column]
        assert len(head[others][:, others].unique()) == 16
    beside = position_part(pos, replace(where, cls_column=torch.tensor([4 - column // 2])))
    inner = [i for i in others if i != 4 - column // 2]
    assert torch.equal(found[..., inner, :][..., inner], beside[..., inner, :][..., inner])


def test_the_originals_numbers_come_from_its_first_rows_and_spare_buckets() -> None:
    pos, where = small("form=original"), Positions(5, 5, CPU, cls_column=torch.tensor([0]))
    tupe = pos.members["tupe"]
    p = torch.nn.functional.layer_norm(tupe.weight, (8,), tupe.norm_weight, tupe.norm_bias)
    q = (p @ tupe.u_q.t() + tupe.u_q_bias).view(-1, 2, 4)
    k = (p @ tupe.u_k.t() + tupe.u_k_bias).view(-1, 2, 4)
    found = position_part(pos, where)[0]
    for row, spare, there in ((0, 16, found[:, 0, 0]), (1, 32, found[:, 1, 0])):
        expected = (q[row] * k[row]).sum(-1) / 8**0.5 + tupe.scalars[:, spare]
        torch.testing.assert_close(there, expected, rtol=0, atol=1e-12)
    expected = (q[3] * k[2]).sum(-1) / 8**0.5 + tupe.scalars[:, 1]  # i = 2 sees j = 1: rows count from 1, bucket 1
    torch.testing.assert_close(found[:, 2, 1], expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("args", FORMS)
def test_left_pads_do_not_count_and_cls_follows(args: str) -> None:
    padding = torch.tensor([[False] * 5, [True, True, False, False, False]])
    where = Positions(5, 5, CPU, padding=padding, cls_column=torch.tensor([0, 2]))
    pos = small(args)
    found = position_part(pos, where)
    alone = position_part(pos, Positions(3, 3, CPU, cls_column=torch.tensor([0])))
    torch.testing.assert_close(found[1, :, 2:, 2:], alone[0], rtol=0, atol=1e-12)
    whole = position_part(pos, Positions(5, 5, CPU, cls_column=torch.tensor([0])))
    torch.testing.assert_close(found[0], whole[0], rtol=0, atol=1e-12)


def test_auto_is_off_and_says_so_where_there_is_no_cls(caplog: pytest.LogCaptureFixture) -> None:
    _say_that_nothing_is_reset.cache_clear()
    with caplog.at_level(logging.INFO, logger="fairseq_posenc.encodings.tupe"):
        build("tupe", None, SMALL)
        assert not caplog.messages
        off = build("tupe", None, replace(SMALL, has_cls=False))
        build("tupe", None, replace(SMALL, has_cls=False))
    assert caplog.messages == ["tupe: reset=auto is off, as this stack declares no [CLS]"]
    assert "theta" not in dict(off.members["tupe"].named_parameters())


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match="share=all belongs to form=paper"):
        build("tupe", "form=original,share=all", SMALL)
    with pytest.raises(ValueError, match=r"begin with \[CLS\].*do not say in which column"):
        build("tupe", None, SMALL).check(Positions(3, 3, CPU))
    with pytest.raises(ValueError, match=r"defined up to 8 positions.*extend=repeat"):
        build("tupe", None, SMALL).check(Positions(9, 9, CPU, cls_column=torch.tensor([0])))
    with pytest.raises(ValueError, match="deberta and tupe each set the scale"):
        build("deberta+tupe", None, SMALL)


@pytest.mark.parametrize("causal", [False, True], ids=["encoder", "decoder"])
def test_one_setting_serves_stacks_with_and_without_cls(causal: bool, caplog: pytest.LogCaptureFixture) -> None:
    _say_that_nothing_is_reset.cache_clear()
    shape = replace(SMALL, has_cls=False, causal=causal)
    built = build("tupe", "reset=none", shape)
    assert not caplog.messages, "what the user asked for is not news"
    auto = build("tupe", None, shape)
    assert [name for name, _ in built.named_parameters()] == [name for name, _ in auto.named_parameters()]


@pytest.mark.parametrize("args", [*(f"{form},{start}" for form in FORMS for start in ("init=zeros", "init_std=0"))])
def test_positions_that_never_learn_are_refused(args: str) -> None:
    with pytest.raises(ValueError, match="positions of zeros never learn"):
        build("tupe", args, SMALL)


def test_what_the_norm_makes_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="init=ones belongs to form=paper"):
        build("tupe", "form=original,init=ones", SMALL)


@pytest.mark.parametrize(
    "args", ["", "init=ones", "init=xavier-uniform", "form=original", "form=original,init=xavier-uniform"]
)
def test_every_accepted_start_learns(args: str) -> None:
    """Positions and both matrices get a gradient of the absolute part alone."""
    torch.manual_seed(0)
    pos = build("tupe", f"{args},relative=false".removeprefix(","), SMALL).double().train()
    found = position_part(pos, Positions(8, 8, CPU, cls_column=torch.tensor([0])))
    (found * torch.randn(found.shape, dtype=found.dtype)).sum().backward()
    tupe = pos.members["tupe"]
    assert all(float(getattr(tupe, name).grad.norm()) > 1e-9 for name in ("weight", "u_q", "u_k"))


@pytest.mark.parametrize("args", FORMS)
def test_it_can_be_extended(args: str) -> None:
    pos = small(f"{args},extend=repeat,reset=none,relative=false")
    found = position_part(pos, Positions(12, 12, CPU))
    torch.testing.assert_close(found[..., 8:, 8:], found[..., :4, :4], rtol=0, atol=1e-12)


def test_reset_does_not_work_in_a_decoder() -> None:
    assert not build("tupe", None, SMALL).capabilities.causal
    assert build("tupe", None, replace(SMALL, causal=True, has_cls=False)).capabilities.causal
