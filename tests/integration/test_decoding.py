"""Test that every encoding trains, and that decoding gives the same with and without cache, batch and padding."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from . import support
from .cases import CASES, Models, in_turn

PAD, EOS = 1, 2
every_encoding = pytest.mark.parametrize("case", in_turn(CASES))

SOURCES = torch.tensor([[4, 5, 6, 7, EOS], [PAD, 9, 8, 4, EOS], [PAD, PAD, PAD, 11, EOS]])


def targets(pads: list[int], length: int = 8) -> Tensor:
    """Return [B, length] tokens that begin with </s>, padded on the left."""
    random = torch.Generator().manual_seed(4)
    tokens = torch.randint(4, 16, (len(pads), length), generator=random)
    for row, count in enumerate(pads):
        tokens[row, :count], tokens[row, count] = PAD, EOS
    return tokens


@torch.no_grad()
def stepwise(
    model: Any, encoded: Any, target: Tensor, first: int = 1, order: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Return the logits of each column from `first` - 1 on, and the targets; halfway, beams swap places."""
    state: dict[str, Any] = {}
    tokens, logits = target, []
    for column in range(first, target.shape[1] + 1):
        if order is not None and column == first + 3:
            model.decoder.reorder_incremental_state_scripting(state, order)
            tokens, logits = target[order], [row[order] for row in logits]
        out = model.decoder(tokens[:, :column], encoder_out=encoded, incremental_state=state)[0]
        logits.append(out[:, -1:])
    return torch.cat(logits, 1), tokens


@every_encoding
@pytest.mark.parametrize("pads", [[0, 0, 0], [0, 2, 3]], ids=["unpadded", "left-padded"])
def test_step_by_step_equals_the_whole(models: Models, case: tuple[str, str | None], pads: list[int]) -> None:
    model, _ = models[case]
    target = targets(pads)
    encoded = model.encoder(SOURCES, None)
    whole = model.decoder(target, encoder_out=encoded)[0]
    first = max(pads) + 1  # the first step contains a token of every row
    steps, _ = stepwise(model, encoded, target, first)
    torch.testing.assert_close(steps, whole[:, first - 1 :], rtol=1e-5, atol=1e-5)
    if max(pads):
        for row, count in enumerate(pads):
            alone = model.decoder(target[row : row + 1, count:], encoder_out=_row(encoded, row))[0]
            torch.testing.assert_close(alone[0], whole[row, count:], rtol=1e-5, atol=1e-5)


def _row(encoded: dict[str, list[Tensor]], row: int) -> dict[str, list[Tensor]]:
    return {
        **encoded,
        "encoder_out": [encoded["encoder_out"][0][:, row : row + 1]],
        "encoder_padding_mask": [encoded["encoder_padding_mask"][0][row : row + 1]],
    }


@every_encoding
def test_the_cache_follows_the_beams(models: Models, case: tuple[str, str | None]) -> None:
    model, _ = models[case]
    steps, whole = beams(model)
    torch.testing.assert_close(steps, whole, rtol=1e-5, atol=1e-5)


def beams(model: Any) -> tuple[Tensor, Tensor]:
    """Return the logits of three hypotheses of one sentence, step by step and in one forward pass."""
    encoded = model.encoder(SOURCES[1:2].expand(3, -1), None)
    steps, reordered = stepwise(model, encoded, targets([0, 0, 0]), order=torch.tensor([2, 0, 0]))
    return steps, model.decoder(reordered, encoder_out=encoded)[0]


def test_sources_are_copied_only_where_another_sample_takes_a_row(models: Models) -> None:
    model, _ = models["none", None]
    encoded = model.encoder(SOURCES, None)
    beams = model.encoder.reorder_encoder_out(encoded, torch.tensor([0, 0, 1, 1, 2, 2]))
    assert model.encoder.reorder_encoder_out(beams, torch.tensor([1, 1, 3, 2, 4, 4])) is beams
    for order in ([2, 3, 4, 5], [0, 2, 1, 3, 4, 5]):  # remove a sample; swap beams of two samples
        fewer = model.encoder.reorder_encoder_out(beams, torch.tensor(order))
        samples = [number // 2 for number in order]
        assert fewer["encoder_out"][0].equal(encoded["encoder_out"][0][:, samples])
        assert fewer["encoder_padding_mask"][0].equal(encoded["encoder_padding_mask"][0][samples])
        assert model.encoder.reorder_encoder_out(fewer, torch.arange(len(order))) is fewer


@every_encoding
def test_hypotheses_do_not_depend_on_batch_size_or_padding(models: Models, case: tuple[str, str | None]) -> None:
    model, task = models[case]
    together = support.hypotheses(model, task, size=64)
    assert sorted(together) == list(range(support.SIZES["test"]))
    assert len({str(best) for best in together.values()}) > 3, "the model says the same of everything"
    alone = support.hypotheses(model, task, size=1, every=3)
    assert len(alone) == 5  # sentences are sorted by length, so the shortest and the longest are among them
    assert alone == {number: together[number] for number in alone}
    assert task.cfg.left_pad_source is True
    task.cfg.left_pad_source = False
    try:
        assert support.hypotheses(model, task, size=64) == together
    finally:
        task.cfg.left_pad_source = True


def test_a_cache_that_is_not_reordered_is_caught(models: Models, monkeypatch: pytest.MonkeyPatch) -> None:
    """This shows that the test with beams can fail."""
    model, _ = models["shaw", None]
    monkeypatch.setattr(
        "fairseq_posenc.models.attention.PosEncSelfAttention.reorder_incremental_state",
        lambda self, state, order: state,
    )
    steps, whole = beams(model)
    assert not torch.allclose(steps, whole, rtol=1e-3, atol=1e-3)


def test_more_tokens_than_columns_are_needed(models: Models) -> None:
    model, _ = models["shaw", None]
    encoded = model.encoder(SOURCES, None)
    state: dict[str, Any] = {}
    model.decoder(targets([0, 0, 0]), encoder_out=encoded, incremental_state=state)
    with pytest.raises(ValueError, match="8 are cached already"):
        model.decoder(targets([0, 0, 0]), encoder_out=encoded, incremental_state=state)
