"""Define `posenc_masked_lm`: fairseq's task masked_lm, extended so that it can mask whole words.

The samples of the task also contain the tokens before masking.
"""

import dataclasses  # no `from __future__ import annotations` here: fairseq reads the fields' types at run time
from pathlib import Path
from typing import Any, Optional

import numpy as np
from fairseq.data import MaskTokensDataset, RightPadDataset, SortDataset, data_utils
from fairseq.dataclass import ChoiceEnum
from fairseq.tasks import register_task
from fairseq.tasks.masked_lm import MaskedLMConfig, MaskedLMTask

from ..core.options import option
from ..core.refusal import InputError
from ..data.whole_words import Masking, WholeWordMasks
from ..data.words import SCHEMES, Words, gpt2_pieces


@dataclasses.dataclass
class PosEncMaskedLMConfig(MaskedLMConfig):
    """Hold the options of fairseq's masked_lm, and two options about subword pieces."""

    subwords: Optional[ChoiceEnum(list(SCHEMES))] = option(  # type: ignore[valid-type]
        None,
        "Subword scheme of the dictionary's pieces, by which --mask-whole-words finds the pieces that begin a word.",
    )
    gpt2_encoder_json: Optional[str] = option(
        None, "Path of GPT-2's encoder.json; --subwords gpt2 needs it if the dictionary lists ids instead of pieces."
    )


@register_task("posenc_masked_lm", dataclass=PosEncMaskedLMConfig)
class PosEncMaskedLMTask(MaskedLMTask):
    """Train masked language models on samples that also have `unmasked_tokens`, the tokens before masking.

    Encodings find the ends of sentences in `unmasked_tokens`, because masks may hide these ends in the input.
    """

    #: the model may read documents and sentences from the tokens before masking
    gives_unmasked_tokens = True

    def __init__(self, cfg: PosEncMaskedLMConfig, dictionary: Any = None) -> None:
        super().__init__(cfg, dictionary)
        _check(cfg)

    def load_dataset(self, split: str, epoch: int = 1, combine: bool = False, **unused: Any) -> None:
        """Load the same samples as fairseq, in the same order."""
        blocks = self._load_dataset_split(split, epoch, combine)
        source, target = self._masked(blocks)
        with data_utils.numpy_seed(self.cfg.seed):
            shuffle = np.random.permutation(len(source))  # noqa: NPY002 - fairseq's generator
        samples = self._regular_dataset(source, self._padded(target))
        samples.defn["net_input.unmasked_tokens"] = self._padded(blocks)
        self.datasets[split] = SortDataset(samples, sort_order=[shuffle, source.sizes])

    def _padded(self, dataset: Any) -> Any:
        return RightPadDataset(dataset, pad_idx=self.source_dictionary.pad())

    def _masked(self, blocks: Any) -> tuple[Any, Any]:
        """Return the masked sources and the targets."""
        cfg, dictionary = self.cfg, self.source_dictionary
        if cfg.mask_whole_words:
            return WholeWordMasks.both(blocks, self._words(), self._masking())
        source, target = MaskTokensDataset.apply_mask(
            blocks,
            dictionary,
            pad_idx=dictionary.pad(),
            mask_idx=self.mask_idx,
            seed=cfg.seed,
            mask_prob=cfg.mask_prob,
            leave_unmasked_prob=cfg.leave_unmasked_prob,
            random_token_prob=cfg.random_token_prob,
            freq_weighted_replacement=cfg.freq_weighted_replacement,
            mask_multiple_length=cfg.mask_multiple_length,
            mask_stdev=cfg.mask_stdev,
        )
        return source, target

    def _words(self) -> Words:
        dictionary = self.source_dictionary
        pieces = dictionary.symbols
        if self.cfg.subwords == "gpt2" and self.cfg.gpt2_encoder_json:
            pieces = gpt2_pieces(pieces[dictionary.nspecial :], Path(self.cfg.gpt2_encoder_json))
            pieces = dictionary.symbols[: dictionary.nspecial] + pieces
        specials = [*range(dictionary.nspecial), self.mask_idx]
        words = Words(pieces, specials, self.cfg.subwords, dictionary.unk())
        text = ~words.special
        if (words.begins[text].all() and not words.goes_on.any()) or not words.begins[text].any():
            raise InputError(
                f"--subwords {self.cfg.subwords}: the pieces of {self.cfg.data}/dict.txt do not have the marks of this "
                "scheme. Give the scheme of the tokenizer that made these pieces."
            )
        return words

    def _masking(self) -> Masking:
        cfg, dictionary = self.cfg, self.source_dictionary
        weights = np.array(dictionary.count, dtype=float) if cfg.freq_weighted_replacement else np.ones(len(dictionary))
        weights[: dictionary.nspecial] = 0
        weights[self.mask_idx] = 0
        return Masking(
            cfg.mask_prob,
            cfg.leave_unmasked_prob,
            cfg.random_token_prob,
            self.mask_idx,
            dictionary.pad(),
            weights / weights.sum(),
            cfg.seed,
        )


def _check(cfg: PosEncMaskedLMConfig) -> None:
    """Raise an error if an option would have no effect, or another effect than the user expects.

    Raises:
        ValueError: An option has no effect or contradicts another one; the message names the flags.
    """
    if cfg.mask_whole_words and not cfg.subwords:
        raise InputError(f"--mask-whole-words needs --subwords. Give one of {', '.join(SCHEMES)}.")
    if cfg.subwords and not cfg.mask_whole_words:
        raise InputError("--subwords has no effect without --mask-whole-words. Leave it out.")
    if cfg.gpt2_encoder_json and cfg.subwords != "gpt2":
        raise InputError("--gpt2-encoder-json has no effect without --subwords gpt2. Leave it out.")
    if cfg.mask_whole_words and (cfg.mask_multiple_length != 1 or cfg.mask_stdev):
        raise InputError("--mask-whole-words cannot mask spans. Leave --mask-multiple-length and --mask-stdev out.")
    for name in ("skip_masking", "d2v2_multi", "include_target_tokens"):
        if getattr(cfg, name):
            raise InputError(f"--{name.replace('_', '-')} is only for data2vec. Use --task masked_lm.")
