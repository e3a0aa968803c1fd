"""Test language models: fairseq's transformer_lm with any causal encoding, and Transformer-XL's adaptive softmax."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from fairseq_posenc.encodings import get, names, spec_of
from fairseq_posenc.models.adaptive import OneMatrixSoftmax

from . import lm
from .cases import in_turn, serves
from .lm import ARCH, SIZES, STOCK_TASK

PAD = 1


DECODERS = [
    (spec_of(name), None)
    for name in names()
    if serves(spec_of(name), None, causal=True) and not get(name).needs_segments
]


# -- every encoding ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", in_turn(DECODERS))
def test_every_encoding_trains_without_memory(lines: Path, case: tuple[str, None]) -> None:
    run = lm.train(lines, "--pos-enc", case[0], "--max-update", 4, "--batch-size", 16, task=STOCK_TASK)
    assert run.losses[-1] < run.losses[0]


# -- the softmax in bands ---------------------------------------------------------------------------------

ONE_MATRIX = "--adaptive-one-matrix --adaptive-softmax-cutoff 10,20 --no-attention-bias --init-std 0.02".split()
#: Arguments of a model whose embedding and adaptive softmax share one matrix.
UNTIED = [*ARCH, *(word for word in SIZES if word != "--share-decoder-input-output-embed")]
BANDS = [*UNTIED, *ONE_MATRIX]


def softmax(types: int = 30, dim: int = 8) -> OneMatrixSoftmax:
    torch.manual_seed(0)
    module = OneMatrixSoftmax(nn.Parameter(torch.randn(types, dim)), [10, 20], dropout=0, pad=PAD).double()
    nn.init.normal_(module.bias)
    nn.init.normal_(module.band_bias)
    return module


def test_probabilities_are_those_of_the_definition() -> None:
    module, x = softmax(), torch.randn(2, 3, 8, dtype=torch.float64)
    words = x @ module.weight.T + module.bias
    first = torch.cat([words[..., :10], x @ module.band_weight.T + module.band_bias], -1).softmax(-1)
    tails = [words[..., a:b].softmax(-1) * first[..., 10 + i, None] for i, (a, b) in enumerate([(10, 20), (20, 30)])]
    torch.testing.assert_close(module.get_log_prob(x, None).exp(), torch.cat([first[..., :10], *tails], -1))


def test_a_model_of_one_matrix_trains_and_starts_as_it_was_asked_to(lines: Path) -> None:
    loss = ["--criterion", "adaptive_loss", "--ddp-backend", "legacy_ddp"]
    run = lm.train(lines, "--pos-enc", "xl", *loss, "--max-update", 12, model=BANDS, task=STOCK_TASK)
    assert run.losses[-1] < run.losses[0] - 0.1
    assert not [name for name, _ in run.model.named_parameters() if "_proj.bias" in name]
    model, _ = lm.built(lines, "--decoder-embed-dim", 64, model=BANDS, task=STOCK_TASK)
    assert model.decoder.embed_tokens.weight is model.decoder.adaptive_softmax.weight
    assert not model.decoder.embed_tokens.weight[PAD].any()
    for name, weight in model.named_parameters():
        if weight.dim() == 2 and "band" not in name:
            assert weight.std().item() == pytest.approx(0.02, rel=0.25), name
