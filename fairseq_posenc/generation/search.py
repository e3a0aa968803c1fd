"""fairseq's beam search with a choice of length penalty, and over words that only a sample's source has.

fairseq ends a sentence when --beam hypotheses have ended, whatever their scores, so that the same hypotheses are found
with both penalties; they are divided by their penalty when they end, and ranked at last.

Legend: B batch, S source tokens, V dictionary, E >= V dictionary and unknown words.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fairseq.sequence_generator import EnsembleModel, SequenceGenerator, SequenceGeneratorWithAlignment
from torch import Tensor

FORMS = ("fairseq", "gnmt")


def length_penalty(form: str, length: int, power: float) -> float:
    """What the log-probability of a hypothesis of `length` tokens, </s> included, is divided by.

    fairseq: length^a. gnmt: ((5 + length) / 6)^a, Wu et al. 2016 (arXiv:1609.08144), equation 14.

    Raises:
        ValueError: another form.
    """
    if form not in FORMS:
        raise ValueError(f"--lenpen-form {form}: one of {', '.join(FORMS)}")
    return float(length**power if form == "fairseq" else ((5 + length) / 6) ** power)


class GnmtGenerator(SequenceGenerator):
    """fairseq's generator with GNMT's length penalty."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.normalize_scores = False  # fairseq's own

    def finalize_hypos(self, step: int, bbsz_idx: Tensor, eos_scores: Tensor, *args: Any) -> list[int]:
        """fairseq's; afterwards the scores of what has ended at this step are divided."""
        finalized: list[list[dict[str, Tensor]]] = args[2]
        before = [len(ended) for ended in finalized]
        newly: list[int] = super().finalize_hypos(step, bbsz_idx, eos_scores, *args)
        penalty = length_penalty("gnmt", step + 1, self.len_penalty)
        for ended, count in zip(finalized, before, strict=True):
            for hypothesis in ended[count:]:
                hypothesis["score"] = hypothesis["score"] / penalty
        return newly


class GnmtGeneratorWithAlignment(GnmtGenerator, SequenceGeneratorWithAlignment):
    """Of translation with --print-alignment."""


class CopyEnsemble(EnsembleModel):
    """Models whose probabilities are not a softmax of their logits: the temperature is applied to what they mix."""

    def forward_decoder(
        self, tokens: Tensor, encoder_outs: Any, incremental_states: Any, temperature: float = 1.0
    ) -> tuple[Tensor, Tensor | None]:
        """log p of the next token [B, E], and attention."""
        likely, attention = super().forward_decoder(tokens, encoder_outs, incremental_states, 1.0)
        return (likely if temperature == 1 else (likely / temperature).log_softmax(-1)), attention


class CopyingGenerator(SequenceGenerator):
    """fairseq's generator over E words: hypotheses have ids behind the dictionary, of their sample's unknown words."""

    def __init__(self, models: Sequence[Any], *args: Any, **kwargs: Any) -> None:
        super().__init__(CopyEnsemble(models), *args, **kwargs)
        self.listed = len(models[0].encoder.embed_tokens.weight)

    def _generate(self, sample: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        highest = int(sample["net_input"]["src_tokens"].max())
        self.vocab_size = self.search.vocab_size = max(self.listed, highest + 1)
        try:
            return super()._generate(sample, *args, **kwargs)
        finally:
            self.vocab_size = self.search.vocab_size = self.listed


class CopyingGnmtGenerator(CopyingGenerator, GnmtGenerator):
    """With GNMT's length penalty."""
