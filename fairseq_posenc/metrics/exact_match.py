"""Find the sequences that a model predicts without any wrong token.

Legend: B batch, T tokens, V vocabulary.
"""

from __future__ import annotations

from torch import Tensor


def exact_matches(logits: Tensor, target: Tensor, pad: int) -> Tensor:
    """Return for each sequence whether every target token except padding has the greatest logit, [B] bool.

    If the model has read the target's earlier tokens, the result also says whether greedy decoding generates the
    target: greedy decoding reads the same tokens up to its first error.

    Args:
        logits: [B, T, V].
        target: [B, T] int64.
        pad: Id of the padding symbol.
    """
    return (logits.argmax(-1).eq(target) | target.eq(pad)).all(1)
