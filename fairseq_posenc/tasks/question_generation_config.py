"""The options of `posenc_question_generation`."""

import dataclasses  # no `from __future__ import annotations` here: fairseq reads the fields' types at run time
from typing import Optional

from omegaconf import II

from ..core.options import option
from ..generation.options import SearchConfig


@dataclasses.dataclass
class QuestionGenerationTaskConfig(SearchConfig):
    """Where prepared questions are, and how batches are made of them."""

    data: Optional[str] = option(
        None, "folder of prepared questions: SPLIT.src-tgt.*, SPLIT.surface.jsonl, dict.src.txt"
    )
    right_pad_source: bool = option(False, "pad sources on the right; fairseq's translation pads on the left")
    max_source_positions: int = option(512, "longest source, in tokens")
    # the paper's questions have at most 50 pieces; </s>, and some to spare
    max_target_positions: int = option(64, "longest question, in tokens; learned positions have as many rows")
    eval_rouge: bool = option(
        False,
        "generate questions in validation, greedily and without <unk>, and log their ROUGE-L as rouge_l "
        "(--best-checkpoint-metric)",
    )
    dataset_impl: Optional[str] = II("dataset.dataset_impl")
    train_subset: str = II("dataset.train_subset")
    skip_invalid_size_inputs_valid_test: bool = II("dataset.skip_invalid_size_inputs_valid_test")
