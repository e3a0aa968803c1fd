"""Define the criterion `question_generation`, which is -log(p + 1e-6).

Qu et al. 2021 do not state their loss. This one is that of an earlier program of the first author, for the Tianchi 2020
challenge on question generation.
"""

import dataclasses  # no `from __future__ import annotations` here: fairseq reads the fields' types at run time
import math
from typing import Any

import torch
from fairseq import utils
from fairseq.criterions import FairseqCriterion, register_criterion
from fairseq.dataclass import FairseqDataclass
from fairseq.logging import metrics
from omegaconf import II
from torch import Tensor

from ..core.refusal import InputError

#: added to p as in that program, so that a word of probability 0 has a finite loss
LEAST = 1e-6


@dataclasses.dataclass
class QuestionGenerationLossConfig(FairseqDataclass):
    """Hold the only option that the loss reads, fairseq's --sentence-avg."""

    sentence_avg: bool = II("optimization.sentence_avg")


@register_criterion("question_generation", dataclass=QuestionGenerationLossConfig)
class QuestionGenerationLoss(FairseqCriterion):
    """Compute the loss of `posenc_question_generation` over all tokens except padding."""

    def __init__(self, task: Any, sentence_avg: bool) -> None:
        super().__init__(task)
        self.sentence_avg = sentence_avg

    def forward(self, model: Any, sample: dict[str, Any], reduce: bool = True) -> tuple[Tensor, int, dict[str, Any]]:
        """Return the summed loss, the sample size by which gradients are divided, and the values to log.

        If `reduce` is false, the loss is not summed: it has a value for each token, [B, T], which is 0 at padding.

        Raises:
            ValueError: The model is not for question generation.
        """
        if not hasattr(model, "target_log_probs"):
            raise InputError(
                "--criterion question_generation needs --arch posenc_question_generation or one of its presets. For "
                "other models, give --criterion cross_entropy."
            )
        output = model(**sample["net_input"])
        target = model.get_targets(sample, output)
        real = target.ne(self.padding_idx)
        likely = model.target_log_probs(output, target)
        least = torch.full_like(likely, math.log(LEAST))
        losses = -torch.logaddexp(likely, least).masked_fill(~real, 0)
        loss = losses.sum() if reduce else losses
        size = len(target) if self.sentence_avg else sample["ntokens"]
        return loss, size, {**_figures(sample, losses, likely, real, size), **_copying(output, real)}

    @classmethod
    def reduce_metrics(cls, logging_outputs: list[dict[str, Any]]) -> None:
        """Log the losses in bits, as fairseq does, and log `copied`, the mean probability 1 - g of copying."""
        total = {name: sum(float(output.get(name, 0)) for output in logging_outputs) for name in logging_outputs[0]}
        tokens = total["ntokens"]
        metrics.log_scalar("loss", total["loss"] / total["sample_size"] / math.log(2), total["sample_size"], round=3)
        metrics.log_scalar("nll_loss", total["nll_loss"] / tokens / math.log(2), tokens, round=3)
        metrics.log_derived("ppl", lambda meters: utils.get_perplexity(meters["nll_loss"].avg))
        if "copied" in total:
            metrics.log_scalar("copied", total["copied"] / tokens, tokens, round=3)

    @staticmethod
    def logging_outputs_can_be_summed() -> bool:
        return True


def _figures(sample: dict[str, Any], losses: Tensor, likely: Tensor, real: Tensor, size: int) -> dict[str, Any]:
    return {
        "loss": losses.detach().sum(),
        # Leave LEAST out to be comparable with other models, except for targets of probability 0.
        "nll_loss": -torch.where(likely.isfinite(), likely, -losses).detach().masked_fill(~real, 0).sum(),
        "ntokens": sample["ntokens"],
        "nsentences": len(real),
        "sample_size": size,
    }


def _copying(output: Any, real: Tensor) -> dict[str, Any]:
    copied = output[1]["copied"]
    if copied is None:
        return {}
    return {"copied": torch.sigmoid(-copied.gate.detach()).masked_fill(~real, 0).sum()}
