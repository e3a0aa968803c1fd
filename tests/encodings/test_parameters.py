"""Test how parameters start, how they act at their bounds, and what happens without a [CLS] or with half precision."""

from __future__ import annotations

import logging
import math
import tomllib
from pathlib import Path
from typing import Any

import pytest
import torch
from one_layer import CPU, bias_of, build_encoding

from fairseq_posenc.encodings.tupe import _log_that_nothing_is_reset
from fairseq_posenc.positions import Positions

TABLES: dict[str, list[list[Any]]] = tomllib.loads(Path(__file__).with_name("parameters.toml").read_text("utf-8"))


@pytest.mark.parametrize(("spec", "args", "name", "least", "largest"), TABLES["starts"])
def test_where_parameters_start(spec: str, args: str, name: str, least: float, largest: float) -> None:
    """Draw the numbers of 20 layers with 50 heads."""
    weight = getattr(build_encoding(spec, args, layers=20, heads=50).members[spec], name)
    room = 0.05 * (largest - least)
    assert least - 1e-6 <= weight.min() <= least + room + 1e-6
    assert largest - room - 1e-6 <= weight.max() <= largest + 1e-6
    assert weight.mean().item() == pytest.approx((least + largest) / 2, abs=room + 1e-6)


def test_b_of_path_is_near_1_at_the_start() -> None:
    """The vector that is kept for each token has the squared length b."""
    pos = build_encoding("path", head_dim=8, heads=2, causal=True)
    x, where = torch.randn(1, 50, 16, dtype=torch.float64), Positions(50, 50, CPU, causal=True)
    vectors_of_tokens = pos.layer(1).at(where, pos.per_layer(where)[0]).project_input(x)["path"]
    b = vectors_of_tokens.square().sum(-1)
    assert 0.7 < b.min() < b.mean() < 1.1


@pytest.mark.parametrize(("form", "p", "a", "penalty"), TABLES["kerple"])
def test_kerple_acts_within_its_bounds_and_can_come_back(form: str, p: float, a: float, penalty: float) -> None:
    pos = build_encoding("kerple", f"form={form}")
    pos.members["kerple"].p.fill_(p)
    pos.members["kerple"].a.fill_(a)
    at_five = bias_of(pos.requires_grad_(), Positions(1, 6, CPU, causal=True))[0, 0, 0, 0]
    assert at_five.item() == pytest.approx(-penalty, rel=1e-9)
    at_five.backward()
    assert all(parameter.grad.abs() > 0 for parameter in pos.parameters())


def test_auto_is_off_and_says_so_once_where_there_is_no_cls(caplog: pytest.LogCaptureFixture) -> None:
    _log_that_nothing_is_reset.cache_clear()
    with caplog.at_level(logging.INFO, logger="fairseq_posenc.encodings.tupe"):
        build_encoding("tupe", has_cls=True)
        off = [build_encoding("tupe", "reset=none", causal=causal) for causal in (False, True)]
        assert not caplog.messages, "what the user asked for is not news"
        auto = [build_encoding("tupe", causal=causal) for causal in (False, True)]
    assert caplog.messages == ["tupe: reset=auto has no effect, because samples do not begin with [CLS]"]
    assert len({tuple(name for name, _ in built.named_parameters()) for built in off + auto}) == 1
    assert not build_encoding("tupe", has_cls=True).capabilities.causal
    assert auto[1].capabilities.causal


def projected(dtype: torch.dtype, length: int, n: int) -> torch.Tensor:
    """Return the queries and keys of xPos at the last of `length` positions."""
    where = Positions(1, length, CPU, causal=True)
    call = build_encoding("xpos", head_dim=4, n=n, causal=True, dtype=dtype).layer(1).at(where, {})
    x = torch.ones(1, 1, 1, 4, dtype=dtype)
    return torch.cat([call.project_q(x), call.project_k(x)])


@pytest.mark.parametrize("n", [2048, 10**6])
def test_xpos_says_where_the_range_of_float16_ends(n: int) -> None:
    """At a distance of x = 2266 from the middle, zeta^(-x/512) reaches sqrt(65504)."""
    last = min(n // 2, 2048) + int(512 * math.log(65504) / 2 / math.log(3.5))
    assert projected(torch.float16, last, n).isfinite().all()
    for dtype in (torch.bfloat16, torch.float32):
        assert projected(dtype, last + 1, n).isfinite().all()
    with pytest.raises(ValueError, match=rf"{last + 1} positions.*float16.*--bf16.*scale_base"):
        projected(torch.float16, last + 1, n)


def test_products_of_diet_abs_in_half_precision_are_added_in_float32() -> None:
    """Sums of several biases are therefore not rounded."""
    assert bias_of(build_encoding("diet-abs", dtype=torch.bfloat16), Positions(3, 3, CPU)).dtype == torch.float32


def test_products_of_diet_abs_under_autocast_are_not_rounded() -> None:
    pos = build_encoding("diet-abs", head_dim=8, dtype=torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        under = pos.per_layer(Positions(5, 5, CPU))[0]["diet-abs"]["bias"]
    diet = pos.members["diet-abs"]
    torch.testing.assert_close(under, diet.query[:, :, :5] @ diet.key[:, :, :5].mT)
