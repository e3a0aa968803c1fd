"""Define the options of the task `posenc_lm_memory`."""

import dataclasses  # no `from __future__ import annotations` here: fairseq reads the fields' types at run time
from typing import Optional

from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from omegaconf import II

from ..core.options import option
from ..core.refusal import InputError
from ..data.words import SCHEMES

#: lengths of Transformer-XL base on WikiText-103
SEGMENT, MEMORY = 150, 150


@dataclasses.dataclass
class LMMemoryConfig(FairseqDataclass):
    """Hold the options that set the lengths of segments and of the memory."""

    data: Optional[str] = option(
        None, "Folder that fairseq-preprocess --only-source wrote; separate several folders by ':'."
    )
    tokens_per_sample: int = option(
        0, f"Tokens per segment in training. Default: {SEGMENT}; in evaluation, the value from training."
    )
    mem_length: Optional[int] = option(
        None,
        "Number of states of earlier segments that each layer remembers in training; 0 switches memory off. "
        f"Default: {MEMORY}; in evaluation, the value from training.",
    )
    eval_segment_length: Optional[int] = option(None, "Tokens per segment in evaluation. Default: as in training.")
    eval_mem_length: Optional[int] = option(
        None, "Number of states that each layer remembers in evaluation. Default: as in training."
    )
    same_length: bool = option(
        False, "Let every token attend to the last --mem-length keys only (in evaluation: --eval-mem-length keys)."
    )
    subwords: Optional[ChoiceEnum(list(SCHEMES))] = option(  # type: ignore[valid-type]
        None,
        "Subword scheme of the dictionary's pieces, by which the perplexity per word counts words. Default: "
        "each token is a word; in evaluation, the scheme from training.",
    )
    max_target_positions: Optional[int] = II("task.tokens_per_sample")  # build_model sets it to memory and segment
    sentence_avg: bool = II("optimization.sentence_avg")
    train_subset: str = II("dataset.train_subset")
    valid_subset: str = II("dataset.valid_subset")
    dataset_impl: Optional[str] = II("dataset.dataset_impl")


def check(cfg: LMMemoryConfig) -> None:
    """Raise an error if an option has an impossible value.

    Raises:
        ValueError: An option has an impossible value; the message names the flags.
    """
    if cfg.tokens_per_sample < 0:
        raise InputError(
            f"--tokens-per-sample minus --context-window is {cfg.tokens_per_sample}, but must be at least 1. Leave "
            "--context-window out; --task posenc_lm_memory takes the context from --eval-mem-length."
        )
    for name, least in (("mem_length", 0), ("eval_mem_length", 0), ("eval_segment_length", 1)):
        value = getattr(cfg, name)
        if value is not None and value < least:
            raise InputError(f"--{name.replace('_', '-')} {value}: the value must be at least {least}.")
