"""Test that beam search finds the same with and without a cache, in any batch, and with padding on either side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq.data.data_utils import collate_tokens
from fairseq.dataclass.configs import GenerationConfig
from torch import Tensor, nn

from fairseq_posenc.attention import KeyValueCache

from . import support
from .cases import CASES, in_turn, position_flags, serves

PAD, EOS, FIRST = 1, 2, 4
DIM = 16
BEAM, LONGEST = 5, 8
PROMPTS = 20
ALONE = 4  # number of prompts that are also searched one by one, without a batch and padding
TIE = 1e-6  # fairseq keeps the sums of log-probabilities in float32 (sequence_generator.py:291)
EXCUSED = 0.02

Hypotheses = list[tuple[list[int], float]]
"""Of one prompt, the best first: tokens with </s>, mean log-probability."""


def built(data: Path, name: str) -> tuple[Any, Any]:
    """Return the model of an encoding, moved from its initial values, and its task."""
    model, task = support.built(data, *position_flags(name))
    return support.move(model), task


@torch.no_grad()
def lively(model: Any) -> Any:
    """Turn a model into float64, where ties are rare, and give it other content weights; the encodings stay.

    The model itself would repeat one word, whatever the earlier words are. The new weights preserve the size of their
    inputs, and the output is no longer tied, because a tied model tends to repeat a word.
    """
    model = model.double()
    output = model.decoder.output_projection
    output.weight = nn.Parameter(2 * output.weight)
    random = torch.Generator().manual_seed(1)
    for name, parameter in model.named_parameters():
        if ".pos." not in name:
            if parameter.dim() > 1:
                parameter.normal_(std=(2.4 if parameter is output.weight else 1.2) * DIM**-0.5, generator=random)
            else:
                parameter.fill_("norm" in name and "weight" in name)  # no biases, which would favour some words
    # Compute in float64; in fairseq's float32, ties sometimes decide what the beam keeps.
    model.get_normalized_probs = lambda net_output, log_probs, sample: net_output[0].log_softmax(-1)
    return model


def prompts(number: int) -> list[Tensor]:
    """Return sources of 1 to 9 words and </s>."""
    random = torch.Generator().manual_seed(number)
    lengths = torch.randint(1, 10, (number,), generator=random).tolist()
    lines = [torch.randint(FIRST, FIRST + support.WORDS, (length,), generator=random) for length in lengths]
    return [torch.cat([line, torch.tensor([EOS])]) for line in lines]


def generate(model: Any, task: Any, sources: list[Tensor], *, cached: bool, left: bool = True) -> list[Hypotheses]:
    """Run fairseq's generator on one batch whose sources are padded on the left or right."""
    generator = task.build_generator([model], GenerationConfig(beam=BEAM, nbest=BEAM, max_len_a=0, max_len_b=LONGEST))
    assert generator.model.has_incremental
    generator.model.has_incremental = cached  # without a cache, each step gives the decoder all tokens
    lengths = torch.tensor([len(source) for source in sources])
    batch = {"src_tokens": collate_tokens(sources, PAD, left_pad=left), "src_lengths": lengths}
    results = task.inference_step(generator, [model], {"net_input": batch})
    hypotheses = [[(h["tokens"].tolist(), float(h["score"])) for h in best] for best in results]
    return [sorted(best, key=lambda hypothesis: -hypothesis[1]) for best in hypotheses]


def check_same(actual: Sequence[Hypotheses], expected: Sequence[Hypotheses]) -> None:
    """Check that tokens and scores are the same at each rank; equal scores may swap ranks, but rarely."""
    assert {len(best) for best in (*actual, *expected)} == {BEAM}
    pairs = [pair for two in zip(actual, expected, strict=True) for pair in zip(*two, strict=True)]
    for ours, other in pairs:
        assert abs(ours[1] - other[1]) <= TIE, f"{ours} instead of {other}"
    ties = [pair for pair in pairs if pair[0][0] != pair[1][0]]
    assert len(ties) <= EXCUSED * len(pairs), f"{len(ties)} of {len(pairs)} hypotheses are tied: {ties[0]}"


def check_search(model: Any, task: Any) -> None:
    """Compare batches of prompts with search without a cache, in a batch and one by one."""
    sources = prompts(PROMPTS)
    expected = generate(model, task, sources, cached=False)
    assert len({str(best) for best in expected}) > PROMPTS / 2, "the model says the same of everything"
    for left in (True, False):
        check_same(generate(model, task, sources, cached=True, left=left), expected)
    check_same(expected[:ALONE], [generate(model, task, [s], cached=False)[0] for s in sources[:ALONE]])


@pytest.mark.parametrize("name", in_turn(name for name in CASES if serves(name, causal=True)))
def test_neither_cache_nor_batch_nor_padding_changes_a_hypothesis(data: Path, name: str) -> None:
    model, task = built(data, name)
    check_search(lively(model), task)


def stays(cache: KeyValueCache, order: Tensor, original: Any = KeyValueCache.reorder) -> None:
    """Reorder the cache by sentences, but not by beams."""
    original(cache, order // BEAM * BEAM + torch.arange(len(order)) % BEAM)


def test_a_cache_that_does_not_follow_its_beams_is_caught(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, task = built(data, "shaw")
    monkeypatch.setattr(KeyValueCache, "reorder", stays)
    with pytest.raises(AssertionError, match="instead of"):
        check_search(lively(model), task)


# -- the decoder and the encoder without a generator --------------------------------------------------------------

SOURCES = torch.tensor([[4, 5, 6, 7, EOS], [PAD, 9, 8, 4, EOS], [PAD, PAD, PAD, 11, EOS]])
#: Targets begin with </s>, and two of them have padding on the left.
TARGETS = torch.tensor([[EOS, 5, 9, 4, 4, 8, 6, 12], [PAD, PAD, EOS, 7, 7, 5, 14, 4], [*[PAD] * 3, EOS, 9, 13, 6, 4]])


@torch.no_grad()
def test_left_padded_targets_are_decoded_step_by_step(data: Path) -> None:
    model, _ = built(data, "rope+shaw")
    encoded = model.encoder(SOURCES, None)
    whole = model.decoder(TARGETS, encoder_out=encoded)[0]
    state: dict[str, Any] = {}
    for column in range(4, 9):  # the first step contains a token of every row
        step = model.decoder(TARGETS[:, :column], encoder_out=encoded, incremental_state=state)[0]
        torch.testing.assert_close(step[:, -1], whole[:, column - 1], rtol=1e-5, atol=1e-5)
    alone = model.decoder(TARGETS[2:, 3:], encoder_out=model.encoder(SOURCES[2:, 3:], None))[0]
    torch.testing.assert_close(alone[0], whole[2, 3:], rtol=1e-5, atol=1e-5)
    with pytest.raises(ValueError, match="8 are cached already"):
        model.decoder(TARGETS, encoder_out=encoded, incremental_state=state)


def test_sources_are_copied_only_where_another_sample_takes_a_row(data: Path) -> None:
    """The search above shows that the copies are right."""
    model, _ = built(data, "none")
    beams = model.encoder.reorder_encoder_out(model.encoder(SOURCES, None), torch.tensor([0, 0, 1, 1, 2, 2]))
    assert model.encoder.reorder_encoder_out(beams, torch.tensor([1, 1, 3, 2, 4, 4])) is beams
    fewer = model.encoder.reorder_encoder_out(beams, torch.tensor([2, 3, 4, 5]))
    assert fewer["encoder_out"][0].shape[1] == 4
