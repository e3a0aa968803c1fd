"""Define the criterion `squad`: the cross entropy of an answer's first and last token (Devlin et al. 2019, 4.2)."""

import math
from typing import Any

import torch
from fairseq.criterions import FairseqCriterion, register_criterion
from fairseq.dataclass import FairseqDataclass
from fairseq.logging import metrics
from torch import Tensor
from torch.nn import functional as F

from ..core.refusal import InputError


@register_criterion("squad", dataclass=FairseqDataclass)
class SpanLoss(FairseqCriterion):
    """Compute for each window the mean of two cross entropies, for the answer's first token and for its last token.

    If a window does not contain the answer, both targets are <s>.
    """

    def forward(self, model: Any, sample: dict[str, Any], reduce: bool = True) -> tuple[Tensor, int, dict[str, Any]]:
        """Return the summed loss, the number of windows, and the values to log.

        If `reduce` is false, the loss is not summed: it has a value for each window, [B].

        Raises:
            ValueError: The model has no span head.
        """
        if not hasattr(model, "span_head"):
            raise InputError(
                "--criterion squad: the model has no span head. Use --task posenc_squad, which adds a span head."
            )
        tokens = sample["net_input"]["src_tokens"]
        # [B, T, 2] -> [B, 2, T]. Padding is masked, so that a window's loss does not depend on the padding of its
        # batch.
        logits = model(**sample["net_input"], spans=True)[0].float().transpose(1, 2)
        logits = logits.masked_fill(tokens.eq(self.padding_idx)[:, None], -math.inf)
        target = torch.stack([sample["start"], sample["end"]], dim=1)  # [B, 2]
        losses = F.cross_entropy(logits.flatten(0, 1), target.flatten(), reduction="none").view_as(target).mean(1)
        size = len(target)
        right = logits.argmax(2).eq(target)  # [B, 2]
        figures = {
            "loss": losses.detach().sum(),
            "ntokens": sample["ntokens"],
            "nsentences": size,
            "sample_size": size,
            "starts": right[:, 0].sum(),
            "spans": right.all(1).sum(),
        }
        return (losses.sum() if reduce else losses), size, figures

    @classmethod
    def reduce_metrics(cls, logging_outputs: list[dict[str, Any]]) -> None:
        """Log the loss in bits as fairseq does.

        Also log the share of windows with the correct first token of the answer (`starts`), and the share of windows
        with the correct first and last token (`spans`).
        """
        names = ("loss", "sample_size", "starts", "spans")
        total = {name: sum(float(output.get(name, 0)) for output in logging_outputs) for name in names}
        size = total["sample_size"]
        metrics.log_scalar("loss", total["loss"] / size / math.log(2), size, round=3)
        for name in ("starts", "spans"):
            metrics.log_scalar(name, total[name] / size, size, round=4)

    @staticmethod
    def logging_outputs_can_be_summed() -> bool:
        return True
