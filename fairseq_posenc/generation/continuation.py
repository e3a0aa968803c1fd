"""Going on from a prompt with memory, as texts are scored with it.

Legend: B prompts, P tokens of a prompt, S steps.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..attention.memory import SegmentMemory


@torch.no_grad()
def continued(
    model: Any, prompt: Tensor, steps: int, *, segment: int, remembered: int, same_length: bool = False
) -> tuple[Tensor, Tensor]:
    """The likeliest next token, again and again.

    The prompt begins a stream. A token's context is that of `posenc_lm_memory`: its segment so far and the states
    remembered before it; what is cached is dropped where a segment ends, whose states become memory.

    Args:
        model: a `posenc_transformer_lm` in evaluation. prompt: [B, P], without pads, </s> first.
        steps: S. segment: tokens of a segment. remembered: states of memory.
        same_length: each query sees `remembered` keys.
    Returns:
        [B, P + S] tokens, and the log-probabilities of the new ones [B, S].
    Raises:
        ValueError: a prompt that is empty or has pads, segments without tokens.
    """
    if segment < 1:
        raise ValueError(f"segments of {segment} tokens: at least 1")
    if not prompt.shape[1] or bool(prompt.eq(model.decoder.padding_idx).any()):
        raise ValueError("prompts have at least one token each, all the same number, and no pads")
    memory = SegmentMemory(remembered, span=remembered if same_length else None)
    tokens, scores, start, state = prompt, [], 0, {}  # type: ignore[var-annotated]
    for _ in range(steps):
        while tokens.shape[1] > start + segment:
            model(tokens[:, start : start + segment], memory=memory.begin(start // segment))
            start, state = start + segment, {}
        out = model(tokens[:, start:], incremental_state=state, memory=memory)
        best = model.get_normalized_probs(out, log_probs=True)[:, -1].max(-1)
        tokens = torch.cat([tokens, best.indices[:, None]], 1)
        scores.append(best.values)
    return tokens, torch.stack(scores, 1) if scores else tokens.new_empty((len(tokens), 0), dtype=torch.float32)
