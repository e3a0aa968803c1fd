"""Test TUPE: counts, the scalars of [CLS], padding on the left and errors (Ke et al. 2021; M4M on arXiv, section 3)."""

from __future__ import annotations

import logging

import pytest
import torch
from one_layer import CPU, bias_of, build_encoding
from torch import Tensor

from fairseq_posenc.encodings import Composition
from fairseq_posenc.encodings.tupe import _log_that_nothing_is_reset
from fairseq_posenc.positions import Positions


def small(args: str) -> Composition:
    """Return two heads in an encoder with a [CLS], with other parameters than those that it starts with."""
    built = build_encoding("tupe", args, heads=2, head_dim=4, has_cls=True)
    for parameter in built.parameters():
        parameter.add_(torch.randn_like(parameter))
    return built


def position_part(pos: Composition, where: Positions) -> Tensor:
    """Return what both heads add, [1 or B, h, Q, K]."""
    return bias_of(pos, where).expand(-1, pos.stack.heads, -1, -1)


def test_the_originals_numbers_come_from_its_first_rows_and_spare_buckets() -> None:
    pos, where = small("form=original"), Positions(5, 5, CPU, cls_column=torch.tensor([0]))
    tupe = pos.members["tupe"]
    p = torch.nn.functional.layer_norm(tupe.weight, (8,), tupe.norm_weight, tupe.norm_bias)
    q = (p @ tupe.u_q.t() + tupe.u_q_bias).view(-1, 2, 4)
    k = (p @ tupe.u_k.t() + tupe.u_k_bias).view(-1, 2, 4)
    actual = position_part(pos, where)[0]
    for row, spare, there in ((0, 16, actual[:, 0, 0]), (1, 32, actual[:, 1, 0])):
        expected = (q[row] * k[row]).sum(-1) / 8**0.5 + tupe.scalars[:, spare]
        torch.testing.assert_close(there, expected, rtol=0, atol=1e-12)
    expected = (q[3] * k[2]).sum(-1) / 8**0.5 + tupe.scalars[:, 1]  # i = 2 sees j = 1: rows count from 1, bucket 1
    torch.testing.assert_close(actual[:, 2, 1], expected, rtol=0, atol=1e-12)


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
