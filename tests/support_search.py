"""Run beam search on models with only a few words, and enumerate all hypotheses."""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Sequence
from typing import Any

import pytest
import support_questions as q
import torch
from fairseq.dataclass.configs import GenerationConfig
from torch import Tensor

LONGEST, POWER = 3, 0.6
#: At most 3 tokens and </s>. The beam cannot be wider than the dictionary.
WIDE = 99
PIECES = (*q.PIECES, *(f"x{i}" for i in range(WIDE - len(q.PIECES))))

Hypotheses = list[tuple[list[int], float]]


def restricted(model: Any, words: Sequence[int]) -> Any:
    """Return a model that generates only these words and </s>."""
    normalized = model.get_normalized_probs

    def of_words(net_output: Any, log_probs: bool, sample: Any = None) -> Tensor:
        scores = normalized(net_output, log_probs=True)
        restricted_scores = torch.full_like(scores, -math.inf)
        allowed = torch.tensor([word for word in (*words, q.EOS) if word < scores.shape[-1]])
        restricted_scores[..., allowed] = scores[..., allowed]
        return restricted_scores

    restricted_model = copy.copy(model)  # tests share the model
    restricted_model.get_normalized_probs = of_words
    return restricted_model


def searched(
    model: Any, task: Any, net_input: dict[str, Tensor], form: str, beam: int, **more: Any
) -> list[Hypotheses]:
    """Return the hypotheses of the task's generator, without the task's detokenisation."""
    task.cfg.lenpen_form = form
    options = GenerationConfig(**{"beam": beam, "nbest": beam, "max_len_b": LONGEST, "lenpen": POWER, **more})
    generator = task.build_generator([model], options)
    results = generator.generate([model], {"net_input": net_input})
    return [[(hypothesis["tokens"].tolist(), float(hypothesis["score"])) for hypothesis in best] for best in results]


@torch.no_grad()
def exhaustive(model: Any, encoded: Any, words: Sequence[int], form: str) -> Hypotheses:
    """Return all sequences of the words up to LONGEST, scored in one batch and ranked."""
    hypotheses: Hypotheses = []
    for length in range(1, LONGEST + 1):
        tokens = torch.tensor(list(itertools.product(words, repeat=length)))
        ended = torch.nn.functional.pad(tokens, (0, 1), value=q.EOS)
        before = ended.roll(1, 1)
        repeated = model.encoder.reorder_encoder_out(encoded, torch.zeros(len(tokens), dtype=torch.int64))
        log_probabilities = model.get_normalized_probs(model.decoder(before, repeated), True)
        sums = log_probabilities.gather(2, ended[..., None]).sum((1, 2))
        penalty = (length + 1) ** POWER if form == "fairseq" else ((5 + length + 1) / 6) ** POWER
        hypotheses += list(zip(ended.tolist(), (sums / penalty).tolist(), strict=True))
    return sorted(
        ((tokens, score) for tokens, score in hypotheses if score > -math.inf), key=lambda hypothesis: -hypothesis[1]
    )


def check_same(actual: Hypotheses, expected: Hypotheses) -> None:
    assert [tokens for tokens, _ in actual] == [tokens for tokens, _ in expected]
    assert [score for _, score in actual] == pytest.approx([score for _, score in expected], rel=1e-5)
