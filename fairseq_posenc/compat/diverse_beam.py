"""Let --diverse-beam-groups translate more than one batch (search.py:649).

fairseq finds the overlap of a sentence's groups by the number of the sentence in the data, although it keeps one row
for each sentence of the batch. So it raises an IndexError, or takes the overlap of another sentence.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from .patching import replace


def mend() -> None:
    """Give `DiverseBeamSearch` the place of each sentence in its batch instead of its number in the data.

    The original method is kept as the attribute `_posenc_original`, because TorchScript compiles both.
    """
    from fairseq.search import DiverseBeamSearch

    if DiverseBeamSearch.step is not step:
        replace(DiverseBeamSearch, "__init__", _with_batch)
        DiverseBeamSearch._posenc_original = DiverseBeamSearch.step
        DiverseBeamSearch.step = torch.jit.export(step)


def _with_batch(original: Callable[..., None], search: Any, *args: Any, **kwargs: Any) -> None:
    original(search, *args, **kwargs)
    search.batch = torch.empty(0, dtype=torch.long)


def step(
    self: Any,
    step: int,
    lprobs: Tensor,
    scores: Tensor,
    prev_output_tokens: Tensor | None = None,
    original_batch_idxs: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Search as DiverseBeamSearch.step does, with the places of the remaining sentences among those of step 0."""
    if original_batch_idxs is not None:
        if step == 0:
            self.batch = original_batch_idxs
        original_batch_idxs = original_batch_idxs.unsqueeze(1).eq(self.batch).int().argmax(1)
    scores, tokens, beams = self._posenc_original(step, lprobs, scores, prev_output_tokens, original_batch_idxs)
    return scores, tokens, beams
