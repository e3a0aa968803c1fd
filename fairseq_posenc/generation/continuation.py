"""Continue prompts with a language model that remembers earlier segments, as `posenc_lm_memory` does in evaluation.

Legend: B prompts, P tokens of a prompt, S steps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ..attention.memory import SegmentMemory

#: Chooses the next tokens [B] by their log-probabilities [B, V].
Choice = Callable[[Tensor], Tensor]


def most_probable(log_probs: Tensor) -> Tensor:
    """Return the most probable token of each row, [B, V] -> [B]."""
    return log_probs.argmax(-1)


@torch.no_grad()
def continued(
    model: Any,
    prompt: Tensor,
    steps: int,
    *,
    segment: int,
    remembered: int,
    same_length: bool = False,
    choose: Choice = most_probable,
) -> tuple[Tensor, Tensor]:
    """Append S tokens to each prompt, one after another.

    The memory is empty when the prompt begins. As in `posenc_lm_memory`, a token's context is the memory and the
    earlier tokens of its segment. At the end of a segment, the segment's states are added to the memory, which keeps
    the last `remembered` states, and the cache of keys and values is emptied.

    Args:
        model: A `posenc_transformer_lm` in evaluation mode.
        prompt: Tokens [B, P]; each prompt begins with </s> (or <s>, as in training) and has no padding.
        steps: S, the number of new tokens.
        segment: Number of tokens per segment.
        remembered: Maximum number of states per layer in the memory.
        same_length: Whether each query sees only the last `remembered` keys.
        choose: Function that chooses the next tokens; by default, they are the most probable tokens.
    Returns:
        Tokens [B, P + S], and the log-probabilities of the new tokens [B, S].
    Raises:
        ValueError: A prompt is empty or has padding, or segments have no tokens.
    """
    if segment < 1:
        raise ValueError(f"segment={segment}: the number of tokens per segment must be at least 1.")
    if not prompt.shape[1] or bool(prompt.eq(model.decoder.padding_idx).any()):
        raise ValueError("All prompts must have the same number of tokens, at least one, and no padding.")
    memory = SegmentMemory(remembered, span=remembered if same_length else None)
    tokens, scores, start, state = prompt, [], 0, {}  # type: ignore[var-annotated]
    for _ in range(steps):
        while tokens.shape[1] > start + segment:
            model(tokens[:, start : start + segment], memory=memory.begin(start // segment))
            start, state = start + segment, {}
        out = model(tokens[:, start:], incremental_state=state, memory=memory)
        log_probs = model.get_normalized_probs(out, log_probs=True)[:, -1]
        chosen = choose(log_probs)[:, None]
        tokens = torch.cat([tokens, chosen], 1)
        scores.append(log_probs.gather(1, chosen)[:, 0])
    return tokens, torch.stack(scores, 1) if scores else tokens.new_empty((len(tokens), 0), dtype=torch.float32)
