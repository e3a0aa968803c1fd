"""Log perplexities per token and per word, under separate names, in training, validation and fairseq-eval-lm."""

from __future__ import annotations

import logging
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from fairseq.logging import metrics
from fairseq.sequence_scorer import SequenceScorer
from torch import Tensor

from ..attention.memory import SegmentMemory
from ..compat.patching import replace
from ..core.refusal import InputError

logger = logging.getLogger(__name__)


def log(outputs: Sequence[Mapping[str, Any]]) -> None:
    """Log the mean losses `token_nll` and `word_nll` in nats, and the perplexities `token_ppl` and `word_ppl`."""
    nats = sum(float(output.get("nll_loss", output["loss"])) for output in outputs)
    for unit, count in (("token", "ntokens"), ("word", "nwords")):
        number = sum(int(output.get(count, 0)) for output in outputs)
        if number:
            metrics.log_scalar(f"{unit}_nll", nats / number, number, round=8)
            metrics.log_derived(f"{unit}_ppl", lambda meters, unit=unit: _perplexity(meters[f"{unit}_nll"].avg))


def _perplexity(nats: float) -> float:
    return round(math.exp(min(nats, 700.0)), 4)


class Remembering:
    """Iterate over batches with the memory of earlier segments, and count tokens, words and nats.

    Args:
        batches: Batches of `Segments`, in order.
        memory: Memory of earlier segments, which the model reads and extends.
    """

    def __init__(self, batches: Any, memory: SegmentMemory) -> None:
        self.batches, self.memory = batches, memory
        self.tokens = self.words = self.scored = 0
        self.nats = 0.0  # a Python float, because float32 is too inexact to sum over a corpus

    def __len__(self) -> int:
        return len(self.batches)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for sample in self.batches:
            self.tokens += sample["ntokens"]
            self.words += sample["nwords"]
            yield {**with_memory(sample, self.memory), "score": self.score}

    def score(self, log_probabilities: Tensor) -> None:
        """Add the scored tokens' log-probabilities and their number to the totals."""
        self.scored += log_probabilities.numel()
        self.nats -= float(log_probabilities.double().sum())


def with_memory(sample: Mapping[str, Any], memory: SegmentMemory) -> dict[str, Any]:
    """Add the memory to the inputs of a batch, and prepare the memory for the segment of the batch."""
    memory.begin(sample["segment"])
    return {**sample, "net_input": {**sample["net_input"], "memory": memory}}


def log_both_perplexities() -> None:
    """Make fairseq-eval-lm log the perplexities per token and per word, instead of a single perplexity."""
    for name in ("fairseq_cli.eval_lm", "__main__"):
        module = sys.modules.get(name)
        if hasattr(module, "eval_lm") and hasattr(module, "SequenceScorer"):
            replace(module, "eval_lm", _logging_both)
    replace(SequenceScorer, "generate", _scoring)


def _scoring(original: Callable[..., Any], scorer: Any, models: Any, sample: dict[str, Any], **kwargs: Any) -> Any:
    """Score a batch with fairseq, and pass the log-probabilities to `Remembering.score`, which sums them in float64."""
    hypotheses = original(scorer, models, sample, **kwargs)
    for best, *_ in hypotheses if "score" in sample else ():
        sample["score"](best["positional_scores"])
    return hypotheses


def _logging_both(original: Callable[..., dict[str, Any]], *args: Any, **kwargs: Any) -> dict[str, Any]:
    source = getattr(kwargs.get("batch_iterator"), "iterable", None)
    if not isinstance(source, Remembering):
        return original(*args, **kwargs)
    if kwargs.get("post_process"):
        raise InputError(
            "--post-process has no effect with --task posenc_lm_memory. Leave out --post-process, because --subwords "
            "decides how words are counted."
        )
    results = original(*args, **kwargs)
    if source.scored != source.tokens:
        raise RuntimeError(
            f"{source.tokens} tokens were read, but {source.scored} were scored. Please report this bug."
        )
    per_token, per_word = source.nats / source.tokens, source.nats / source.words
    both = {"token_nll": per_token, "word_nll": per_word, "tokens": source.tokens, "words": source.words}
    both |= {"token_ppl": _perplexity(per_token), "word_ppl": _perplexity(per_word)}
    logger.info(
        "per token: nll {token_nll:.8f}, perplexity {token_ppl:.4f} ({tokens} tokens); "
        "per word: nll {word_nll:.8f}, perplexity {word_ppl:.4f} ({words} words)".format(**both)
    )
    return {**results, **both}
