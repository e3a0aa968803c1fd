"""Run beam search on a translation model: by fairseq's generator, with or without a cache, and by our own search."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch
from fairseq.data.data_utils import collate_tokens
from fairseq.dataclass.configs import GenerationConfig
from torch import Tensor, nn

from .support import WORDS

PAD, EOS, FIRST = 1, 2, 4
DIM = 16
BEAM, LONGEST = 5, 8
TIE = 1e-6  # fairseq keeps the sums of log-probabilities in float32 (sequence_generator.py:291)
EXCUSED = 0.02

Hypotheses = list[tuple[list[int], float]]
"""Of one prompt, the best first: tokens with </s>, mean log-probability."""


@torch.no_grad()
def lively(model: Any) -> Any:
    """Return a copy in float64, where ties are rare, with the same encodings and other content weights.

    After so little training, the model itself would repeat one word, whatever the earlier words are.
    """
    model = copy.deepcopy(model).double()
    output = model.decoder.output_projection
    output.weight = nn.Parameter(output.weight.clone())  # untied, because a tied model tends to repeat a word
    random = torch.Generator().manual_seed(1)
    for module in model.modules():
        redraw(module, random)
    output.weight *= 2
    model.get_normalized_probs = log_probabilities
    return model


def log_probabilities(net_output: Any, log_probs: bool, sample: None) -> Tensor:
    """Compute in float64; in fairseq's float32, ties sometimes decide what the beam keeps."""
    assert log_probs
    return net_output[0].log_softmax(-1)


def redraw(module: nn.Module, random: torch.Generator) -> None:
    """Draw weights that preserve the size of their inputs, and no biases, which would favour some words."""
    if isinstance(module, nn.LayerNorm):
        module.reset_parameters()
    elif isinstance(module, nn.Linear | nn.Embedding):
        module.weight.copy_(1.2 * DIM**-0.5 * torch.randn(module.weight.shape, generator=random))
        if isinstance(module, nn.Linear) and module.bias is not None:
            module.bias.zero_()


def prompts(number: int) -> list[Tensor]:
    """Return sources of 1 to 9 words and </s>."""
    random = torch.Generator().manual_seed(number)
    lengths = torch.randint(1, 10, (number,), generator=random).tolist()
    lines = [torch.randint(FIRST, FIRST + WORDS, (length,), generator=random) for length in lengths]
    return [torch.cat([line, torch.tensor([EOS])]) for line in lines]


def generate(
    model: Any,
    task: Any,
    sources: list[Tensor],
    *,
    cached: bool,
    left: bool = True,
    prefixes: list[Tensor] | None = None,
) -> list[Hypotheses]:
    """Run fairseq's generator on one batch whose sources are padded on the left or right."""
    generator = task.build_generator([model], GenerationConfig(beam=BEAM, nbest=BEAM, max_len_a=0, max_len_b=LONGEST))
    assert generator.model.has_incremental
    generator.model.has_incremental = cached  # without a cache, each step gives the decoder all tokens
    lengths = torch.tensor([len(source) for source in sources])
    batch = {"src_tokens": collate_tokens(sources, PAD, left_pad=left), "src_lengths": lengths}
    forced = None if prefixes is None else collate_tokens(prefixes, PAD)
    hypotheses = task.inference_step(generator, [model], {"net_input": batch}, prefix_tokens=forced)
    return [ranked([(h["tokens"].tolist(), float(h["score"])) for h in best]) for best in hypotheses]


def ranked(hypotheses: Hypotheses) -> Hypotheses:
    """Sort hypotheses by score, best first (fairseq compares scores in float32)."""
    return sorted(hypotheses, key=lambda hypothesis: -hypothesis[1])


@torch.no_grad()
def search(model: Any, source: Tensor, prefix: Sequence[int] = ()) -> Hypotheses:
    """Return the hypotheses of one source, without padding and cache, by the rules of fairseq's generator.

    Each step takes the 2 BEAM best continuations. Those that end with </s> are kept if they are among the first BEAM.
    The first BEAM of the others are continued, until BEAM hypotheses have ended or the maximum length is reached. The
    result is ranked by log-probability per token.
    """
    encoded = model.encoder(source[None], None)["encoder_out"][0]  # [S, 1, d]
    active: Hypotheses = [([], 0.0)]
    done: Hypotheses = []
    for step in range(LONGEST + 1):
        rows = torch.tensor([[EOS, *tokens] for tokens, _ in active])
        logits = model.decoder(rows, encoder_out=spread(encoded, len(rows)))[0][:, -1]
        steps = logits.log_softmax(-1).masked_fill(~allowed(step, prefix, logits.shape[-1]), float("-inf"))
        sums = torch.tensor([score for _, score in active], dtype=steps.dtype)[:, None] + steps  # [active, V]
        best = ranked(candidates(active, sums))[: 2 * BEAM]
        done += [(tokens, score / len(tokens)) for tokens, score in best[:BEAM] if tokens[-1] == EOS]
        active = [hypothesis for hypothesis in best if hypothesis[0][-1] != EOS][:BEAM]
        if len(done) >= BEAM:
            break
    return ranked(done[:BEAM])


def spread(encoded: Tensor, rows: int) -> dict[str, list[Tensor]]:
    """Repeat the encoder's output of a single sentence for `rows` hypotheses."""
    return {"encoder_out": [encoded.expand(-1, rows, -1)], "encoder_padding_mask": []}


def allowed(step: int, prefix: Sequence[int], size: int) -> Tensor:
    """Return which words may come next, [V] bool: </s> is never the first and always the last token."""
    words = torch.arange(size)
    if step < len(prefix):
        return words == prefix[step]
    if step == LONGEST:
        return words == EOS
    return (words != PAD) & ((words != EOS) | (step > 0))


def candidates(active: Hypotheses, sums: Tensor) -> Hypotheses:
    """Extend each hypothesis by each word that may follow."""
    rows = zip(active, sums.tolist(), strict=True)
    pairs = [((tokens, word), score) for (tokens, _), row in rows for word, score in enumerate(row)]
    return [([*tokens, word], score) for (tokens, word), score in pairs if score > float("-inf")]


def check_same(actual: Sequence[Hypotheses], expected: Sequence[Hypotheses]) -> None:
    """Check that tokens and scores are the same at each rank; equal scores may swap ranks, but rarely."""
    assert {len(best) for best in (*actual, *expected)} == {BEAM}
    pairs = [pair for two in zip(actual, expected, strict=True) for pair in zip(*two, strict=True)]
    for ours, other in pairs:
        assert abs(ours[1] - other[1]) <= TIE, f"{ours} instead of {other}"
    ties = [pair for pair in pairs if pair[0][0] != pair[1][0]]
    assert len(ties) <= EXCUSED * len(pairs), f"{len(ties)} of {len(pairs)} hypotheses are tied: {ties[0]}"
