"""`question_generation`: -log(p + 1e-6), and what is logged of copying (METHODS.md 6.C)."""

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

#: the paper's code adds it, so that a word of no probability has a finite loss
LEAST = 1e-6


@dataclasses.dataclass
class QuestionGenerationLossConfig(FairseqDataclass):
    """It has no options of its own."""

    sentence_avg: bool = II("optimization.sentence_avg")


@register_criterion("question_generation", dataclass=QuestionGenerationLossConfig)
class QuestionGenerationLoss(FairseqCriterion):
    """The loss of `posenc_question_generation`, of each token that is no pad."""

    def __init__(self, task: Any, sentence_avg: bool) -> None:
        super().__init__(task)
        self.sentence_avg = sentence_avg

    def forward(self, model: Any, sample: dict[str, Any], reduce: bool = True) -> tuple[Tensor, int, dict[str, Any]]:
        """The loss (without `reduce` of each token, [B, T], 0 at pads), what gradients are divided by, and figures.

        Raises:
            ValueError: another model.
        """
        if not hasattr(model, "target_log_probs"):
            raise ValueError(
                "--criterion question_generation is for --arch posenc_question_generation and its sizes; for others "
                "--criterion cross_entropy"
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
        """Base 2 as fairseq's; `copied` is the share of the copy gate, 1 - g."""
        total = {name: sum(float(one.get(name, 0)) for one in logging_outputs) for name in logging_outputs[0]}
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
        # without LEAST, as of other models; of a word that cannot be, with it
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
