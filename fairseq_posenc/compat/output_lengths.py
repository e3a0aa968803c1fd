"""Say that --max-len-a and --match-source-len limit a translation by the longest source of its batch.

So the translation of a short sentence may be longer in a batch with a long sentence than alone, if the model does not
end it (sequence_generator.py:268). Another limit would change fairseq's results, so the limit stays.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor

from .patching import replace, say_once

logger = logging.getLogger(__name__)


def mend() -> None:
    """Log when a translation is longer than the flags allow for its own source."""
    from fairseq.sequence_generator import SequenceGenerator, SequenceGeneratorWithAlignment

    for generator in (SequenceGenerator, SequenceGeneratorWithAlignment):
        replace(generator, "generate", _with_note)


def _with_note(original: Callable[..., Any], generator: Any, models: Any, sample: Any, **kwargs: Any) -> Any:
    hypotheses = original(generator, models, sample, **kwargs)
    for limit, translations in zip(_own_limits(generator, sample["net_input"]), hypotheses, strict=False):
        if any(len(translation["tokens"]) > limit + 1 for translation in translations):  # </s> is not counted
            say_once(
                logger,
                "A translation is longer than --max-len-a, --max-len-b or --match-source-len allow for its own "
                "source, because fairseq limits it by the longest source of its batch. Such translations depend "
                "on the batches. --batch-size 1 limits each sentence by its own source.",
            )
    return hypotheses


def _own_limits(generator: Any, inputs: Mapping[str, Tensor]) -> list[int]:
    """Return the number of tokens that the flags allow for each source; an empty list if it is the same for all."""
    if generator.match_source_len and "src_lengths" in inputs:
        return inputs["src_lengths"].tolist()
    if not generator.max_len_a or "src_tokens" not in inputs:
        return []
    lengths = inputs["src_tokens"].ne(generator.pad).sum(1).tolist()
    return [int(generator.max_len_a * length + generator.max_len_b) for length in lengths]
