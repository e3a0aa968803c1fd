"""Define `posenc_answers`: predict the outputs of generated examples, with any kind of model.

recipes/length_tasks generates the examples.
"""

import dataclasses  # no `from __future__ import annotations` here: fairseq reads the fields' types at run time
import logging
from operator import attrgetter
from pathlib import Path
from typing import Any, Optional

import torch
from fairseq.data import Dictionary
from fairseq.dataclass import FairseqDataclass
from fairseq.logging import metrics
from fairseq.models import FairseqEncoderDecoderModel, FairseqLanguageModel
from fairseq.tasks import FairseqTask, register_task
from omegaconf import II

from ..compat.checkpoints import CheckpointError
from ..core.options import option
from ..core.refusal import InputError
from ..data import answers
from ..metrics.exact_match import exact_matches

logger = logging.getLogger(__name__)

#: An architecture for each kind of model, which an error suggests.
ARCHITECTURES = {
    "decoder": "posenc_transformer_lm",
    "encoder": "posenc_roberta_tiny",
    "encoder-decoder": "posenc_transformer",
}
#: Settings that hold the maximum lengths of inputs and outputs, for each kind of model.
MAXIMA = {
    "decoder": ("max_target_positions",),
    "encoder": ("max_positions",),
    "encoder-decoder": ("max_source_positions", "max_target_positions"),
}


@dataclasses.dataclass
class AnswersConfig(FairseqDataclass):
    """Hold the options for the folder of examples."""

    data: Optional[str] = option(None, "Folder of generated examples: dict.txt, answers.json and files SPLIT.tsv.")
    tokens_per_sample: int = option(512, "Longest input of a decoder-only model, in tokens.")
    max_target_positions: Optional[int] = option(
        None, "Number of positions of a decoder-only model. Default: --tokens-per-sample."
    )
    train_subset: str = II("dataset.train_subset")


@register_task("posenc_answers", dataclass=AnswersConfig)
class AnswersTask(FairseqTask):
    """Learn to predict tokens: the answer to a prompt, a tag for each token, or a translation.

    The validation also logs `exact`: the percentage of examples in which the model predicts every token that is not
    padding.
    """

    source_dictionary = target_dictionary = property(attrgetter("dictionary"))

    def __init__(self, cfg: Any, dictionary: Dictionary) -> None:
        super().__init__(cfg)
        self.dictionary = dictionary
        self.record = answers.record(Path(cfg.data))

    @classmethod
    def setup_task(cls, cfg: Any, **unused: Any) -> "AnswersTask":
        """Set the task up with the dictionary of the folder.

        Raises:
            CheckpointError: The folder does not exist or is not complete.
        """
        if not cfg.data or not (Path(cfg.data) / answers.DICTIONARY).is_file():
            raise CheckpointError(f"{cfg.data} has no {answers.DICTIONARY}. Give a folder of generated examples.")
        return cls(cfg, Dictionary.load(str(Path(cfg.data) / answers.DICTIONARY)))

    def build_model(self, cfg: Any, from_checkpoint: bool = False) -> Any:
        """Build the model.

        With random positions, the model gets the maximum lengths of the examples. Otherwise, a decoder would spread the
        positions in evaluation over its greater default length, and neighbours would be closer than in training.

        Raises:
            ValueError: The examples are for another kind of model.
        """
        if getattr(cfg, "pos_enc_random", None) is not None:  # models of fairseq do not have it
            for name in MAXIMA[self.record.kind]:
                longest = self.record.longest_output if name == "max_target_positions" else self.record.longest_input
                setattr(cfg, name, longest)
                logger.info("random positions: %s is %d, the length of the longest example", name, longest)
        model = super().build_model(cfg, from_checkpoint)
        if (kind := _kind(model)) != self.record.kind:
            advice = f"Give --arch {ARCHITECTURES[self.record.kind]} or another architecture of this kind"
            raise InputError(f"{self.cfg.data} has examples for the {self.record.kind}, not the {kind}. {advice}.")
        return model

    def max_positions(self) -> Any:
        """Return the lengths of the longest input and output, in tokens."""
        if self.record.kind == "encoder-decoder":
            return self.record.longest_input, self.record.longest_output
        return self.record.longest_input

    def load_dataset(self, split: str, epoch: int = 1, combine: bool = False, **unused: Any) -> None:
        """Load the examples of a file SPLIT.tsv."""
        examples = answers.read(Path(self.cfg.data) / f"{split}.tsv", self.dictionary, self.record.kind)
        shuffle = split == self.cfg.train_subset
        self.datasets[split] = answers.Answers(examples, self.dictionary, self.record.kind, shuffle=shuffle)

    def valid_step(self, sample: dict[str, Any], model: Any, criterion: Any) -> tuple[Any, Any, dict[str, Any]]:
        """Compute the loss, and count the examples in which every prediction is right."""
        loss, size, output = super().valid_step(sample, model, criterion)
        with torch.no_grad():
            logits = model(**sample["net_input"])[0]
        output["exact"] = exact_matches(logits, sample["target"], self.dictionary.pad()).sum()
        return loss, size, output

    def reduce_metrics(self, logging_outputs: list[dict[str, Any]], criterion: Any) -> None:
        """Log the values that fairseq logs; in validation, also log the percentage of examples without an error."""
        super().reduce_metrics(logging_outputs, criterion)
        if any("exact" in output for output in logging_outputs):
            number = sum(float(output["nsentences"]) for output in logging_outputs)
            exact = sum(float(output["exact"]) for output in logging_outputs)
            metrics.log_scalar("exact", 100 * exact / number, number, round=2)


def _kind(model: Any) -> str:
    if isinstance(model, FairseqEncoderDecoderModel):
        return "encoder-decoder"
    return "decoder" if isinstance(model, FairseqLanguageModel) else "encoder"
