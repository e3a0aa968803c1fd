"""Let fairseq's beam search use other length penalties, and copy source words that the dictionary lacks.

fairseq finishes a sentence when --beam hypotheses have ended, whatever their scores. So the hypotheses do not depend on
the length penalty, but their ranking does. The score of a hypothesis is divided by the penalty when the hypothesis
ends, before the ranking.

Legend: B batch, S source tokens, V symbols of the dictionary, E >= V symbols including unknown words.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fairseq.sequence_generator import EnsembleModel, SequenceGenerator, SequenceGeneratorWithAlignment
from torch import Tensor

from ..core.refusal import InputError

FORMS = ("fairseq", "gnmt")


def length_penalty(form: str, length: int, power: float) -> float:
    """Return the divisor of the log-probability of a hypothesis of `length` tokens, including </s>.

    `fairseq`: length^power. `gnmt`: ((5 + length) / 6)^power (Wu et al. 2016, arXiv:1609.08144, equation 14).

    Raises:
        ValueError: The form is unknown.
    """
    if form not in FORMS:
        raise InputError(f"--lenpen-form {form}: there is no such formula. Give one of {', '.join(FORMS)}.")
    return float(length**power if form == "fairseq" else ((5 + length) / 6) ** power)


class GnmtGenerator(SequenceGenerator):
    """Generate with fairseq's beam search and the length penalty of GNMT (Wu et al. 2016)."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.normalize_scores = False  # switch off fairseq's length penalty

    def finalize_hypos(self, step: int, bbsz_idx: Tensor, eos_scores: Tensor, *args: Any) -> list[int]:
        """Finish hypotheses as fairseq does, and apply the length penalty to the hypotheses that end at this step."""
        finalized: list[list[dict[str, Tensor]]] = args[2]
        before = [len(ended) for ended in finalized]
        newly: list[int] = super().finalize_hypos(step, bbsz_idx, eos_scores, *args)
        penalty = length_penalty("gnmt", step + 1, self.len_penalty)
        for ended, count in zip(finalized, before, strict=True):
            for hypothesis in ended[count:]:
                hypothesis["score"] = hypothesis["score"] / penalty
        return newly


class GnmtGeneratorWithAlignment(GnmtGenerator, SequenceGeneratorWithAlignment):
    """Generate with the length penalty of GNMT and with --print-alignment."""


class CopyEnsemble(EnsembleModel):
    """Combine models that also copy words; the probabilities of such models are not a softmax of logits.

    The temperature therefore divides the log-probabilities, not the logits.
    """

    def forward_decoder(
        self, tokens: Tensor, encoder_outs: Any, incremental_states: Any, temperature: float = 1.0
    ) -> tuple[Tensor, Tensor | None]:
        """Return the log-probabilities of the next token, [B, E], and the attention."""
        likely, attention = super().forward_decoder(tokens, encoder_outs, incremental_states, 1.0)
        return (likely if temperature == 1 else (likely / temperature).log_softmax(-1)), attention


class CopyingGenerator(SequenceGenerator):
    """Generate over E symbols as fairseq does; ids from V on are unknown words of the sample."""

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
    """Copy unknown words as `CopyingGenerator` does, with the length penalty of GNMT."""
