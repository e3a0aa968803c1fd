"""Define `posenc_sentence_prediction`: fairseq's sentence_prediction with exact scores over all processes."""

import dataclasses  # no `from __future__ import annotations` here: fairseq reads the fields' types at run time
import math
from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
import torch
from fairseq.criterions import register_criterion
from fairseq.criterions.sentence_prediction import SentencePredictionConfig, SentencePredictionCriterion
from fairseq.logging import metrics
from torch import Tensor
from torch.nn import functional as F

from ..core.options import option
from ..core.refusal import InputError
from ..metrics import classification

_OLD = ("report_mcc", "report_acc_and_f1", "report_pearson_and_spearman")


@dataclasses.dataclass
class PosEncSentencePredictionCriterionConfig(SentencePredictionConfig):
    """Hold the options of fairseq's criterion sentence_prediction and the option --metrics."""

    metrics: str = option(
        "accuracy",
        "Names of the validation scores, separated by commas. The scores are logged in percent, and the first one is "
        "also logged as `score`. Choose from: " + ", ".join(classification.METRICS),
    )


@register_criterion("posenc_sentence_prediction", dataclass=PosEncSentencePredictionCriterionConfig)
class PosEncSentencePredictionCriterion(SentencePredictionCriterion):
    """Compute the cross entropy (with --regression-target, the squared error) and, in validation, the scores.

    fairseq's own criterion rounds scores to 0.1, which is too coarse for --best-checkpoint-metric. fairseq's criterion
    also accepts only numbers as labels, and wrongly adds up the lists of predictions from several processes.
    """

    def __init__(self, cfg: Any, task: Any) -> None:
        super().__init__(cfg, task)
        if old := [name for name in _OLD if getattr(cfg, name)]:
            flag = f"--{old[0].replace('_', '-')}"
            raise InputError(f"{flag} has no effect, because --metrics chooses the scores. Leave out {flag}.")
        self.metrics = classification.named(cfg.metrics.split(","), regression=cfg.regression_target)

    def forward(self, model: Any, sample: Any, reduce: bool = True) -> tuple[Tensor, int, dict[str, Any]]:
        """Return the summed loss, the number of samples, and the values to log (in validation, also predictions)."""
        logits, _ = model(
            **sample["net_input"], features_only=True, classification_head_name=self.classification_head_name
        )
        targets = sample["target"].view(-1)
        if self.regression_target:
            predictions = logits.view(-1).float()
            loss = F.mse_loss(predictions, targets.float(), reduction="sum")
        else:
            predictions = logits.argmax(1)
            loss = F.nll_loss(F.log_softmax(logits, -1, dtype=torch.float32), targets, reduction="sum")
        size = targets.numel()
        output: dict[str, Any] = {"loss": loss.data, "ntokens": sample["ntokens"], "nsentences": size}
        output["sample_size"] = size
        if not model.training:
            lists = {"predictions": predictions.detach().tolist(), "targets": targets.tolist()}
            output |= {**lists, "metrics": self.metrics}
        return loss, size, output

    @staticmethod
    def reduce_metrics(logging_outputs: Sequence[dict[str, Any]]) -> None:
        """Log the scores, and the loss in bits. For regression, the loss is the mean squared error divided by log 2."""
        size = sum(output["sample_size"] for output in logging_outputs)
        loss = sum(float(output["loss"]) for output in logging_outputs)
        metrics.log_scalar("loss", loss / size / math.log(2), size, round=3)
        names = next((output["metrics"] for output in logging_outputs if "metrics" in output), ())
        for side in ("predictions", "targets") if names else ():
            values = np.array(list(chain.from_iterable(output.get(side, ()) for output in logging_outputs)))
            metrics.log_concat_tensor(f"_{side}", torch.from_numpy(values), dim=0)
        for key, name in [("score", name) for name in names[:1]] + [(name, name) for name in names]:
            metrics.log_derived(key, _score(name))

    @staticmethod
    def logging_outputs_can_be_summed() -> bool:
        """Return False, because lists of predictions cannot be summed over processes."""
        return False


def _score(name: str) -> Any:
    def of(meters: Any) -> float:
        """Return the score `name` of all logged predictions, in percent."""
        predictions, targets = (meters[side].tensor.numpy() for side in ("_predictions", "_targets"))
        return 100 * classification.METRICS[name](predictions, targets)

    return of
