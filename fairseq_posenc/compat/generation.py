"""Generate and evaluate as the flags of fairseq-generate, -interactive and -eval-lm say."""

from __future__ import annotations

import argparse
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from .checkpoints import CheckpointError, safe_load, settings_of
from .patching import replace, say_once

logger = logging.getLogger(__name__)

#: Options of tasks that refuse longer sequences. They are only raised: an encoding without a table may read more tokens
#: than in training.
_LONGEST = ("max_positions", "max_source_positions", "max_target_positions")
#: The length of blocks of text. fairseq-eval-lm leaves out blocks that are longer than the model allows.
_BLOCK = "tokens_per_sample"
_WITHOUT_FILE = "@@ "  # what --replace-unk means to fairseq without a file


def mend() -> None:
    """Mend --no-repeat-ngram-size, --diverse-beam-groups and --replace-unk, and note translations that are too long.

    The original methods of the first two are kept as attributes `_posenc_original`, because TorchScript would compile a
    function that is kept as `__wrapped__`.
    """
    from fairseq import utils
    from fairseq.ngram_repeat_block import NGramRepeatBlock
    from fairseq.search import DiverseBeamSearch
    from fairseq.sequence_generator import SequenceGenerator, SequenceGeneratorWithAlignment

    if NGramRepeatBlock.forward is not block_ngrams:
        block_ngrams._posenc_original = NGramRepeatBlock.forward  # type: ignore[attr-defined]
        NGramRepeatBlock.forward = block_ngrams
    if DiverseBeamSearch.step is not step:
        replace(DiverseBeamSearch, "__init__", _with_batch)
        DiverseBeamSearch._posenc_original = DiverseBeamSearch.step
        DiverseBeamSearch.step = torch.jit.export(step)
    for generator in (SequenceGenerator, SequenceGeneratorWithAlignment):
        replace(generator, "generate", _with_note)
    replace(utils, "load_align_dict", _or_empty)
    replace(utils, "replace_unk", _by_pairs)


# -- --no-repeat-ngram-size


def block_ngrams(self: Any, tokens: Tensor, lprobs: Tensor, bsz: int, beam_size: int, step: int) -> Tensor:
    """Block repeated n-grams as NGramRepeatBlock.forward does, but ignore the padding after the current step.

    fairseq compares n-grams with the end of `tokens`, which is padded to the maximum length, and so bans nothing
    (ngram_repeat_block.py:101). TorchScript compiles this function too.
    """
    if tokens.size(0) != bsz * beam_size or lprobs.size(0) != bsz * beam_size:  # the CUDA extension does not check
        raise ValueError(
            f"{bsz * beam_size} hypotheses are needed, but tokens has {tokens.size(0)} and lprobs has {lprobs.size(0)}"
        )
    if self.use_extension:
        return self.call_cuda_extension(tokens, lprobs, bsz, beam_size, step)
    return self._no_repeat_ngram(tokens[:, : step + 1], lprobs, bsz, beam_size, step)


# -- --diverse-beam-groups


def _with_batch(original: Callable[..., None], search: Any, *args: Any, **kwargs: Any) -> None:
    original(search, *args, **kwargs)
    search.batch = torch.empty(0, dtype=torch.long)


def step(
    self: Any,
    step: int,
    lprobs: Tensor,
    scores: Tensor,
    prev_output_tokens: Tensor | None = None,
    original_batch_idxs: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Search as DiverseBeamSearch.step does, with the places of the remaining sentences among those of step 0.

    fairseq finds the overlap of a sentence's groups by the number of the sentence in the data, although it keeps one
    row for each sentence of the batch (search.py:649). So it raises an IndexError, or takes the overlap of another
    sentence.
    """
    if original_batch_idxs is not None:
        if step == 0:
            self.batch = original_batch_idxs
        original_batch_idxs = original_batch_idxs.unsqueeze(1).eq(self.batch).int().argmax(1)
    scores, tokens, beams = self._posenc_original(step, lprobs, scores, prev_output_tokens, original_batch_idxs)
    return scores, tokens, beams


# -- --replace-unk


def unknown_word_problem(options: argparse.Namespace) -> str | None:
    """Return why --replace-unk cannot find source words with the other options, and what to do; otherwise None."""
    if getattr(options, "replace_unk", None) is None:
        return None
    if getattr(options, "print_alignment", None) != "hard":
        return "--replace-unk needs to know which source word a word translates. Add --print-alignment hard."
    if getattr(options, "post_process", None):
        problem = "the alignment counts pieces, but --post-process (--remove-bpe) joins them to words"
        return f"--replace-unk: {problem}. Leave out one of the two flags."
    return None


def _or_empty(original: Callable[..., Any], path: str | None) -> Any:
    """Read the flag without a file as an empty dictionary, and not as a file (dataclass/configs.py:889)."""
    return {} if path == _WITHOUT_FILE else original(path)


def _by_pairs(
    original: Callable[..., str],
    hypothesis: str,
    source: str,
    alignment: Sequence[tuple[int, int]],
    dictionary: Mapping[str, str],
    unknown: str,
) -> str:
    """Find source words in the pairs of the alignment, which fairseq reads as a list of source words (utils.py:227)."""
    end = len(source.split())  # fairseq adds <eos> after the source
    aligned = {target: word for word, target in alignment}
    by_place = [aligned.get(place, end) for place in range(len(hypothesis.split()))]
    return original(hypothesis, source, by_place, dictionary, unknown)


# -- lengths


def _with_note(original: Callable[..., Any], generator: Any, models: Any, sample: Any, **kwargs: Any) -> Any:
    """Log when a translation is longer than the flags allow for its own source.

    fairseq limits it by the longest source of its batch (sequence_generator.py:268), so a translation that does not end
    depends on the batch. Another limit would change fairseq's results, so the limit stays.
    """
    hypotheses = original(generator, models, sample, **kwargs)
    for limit, translations in zip(_own_limits(generator, sample["net_input"]), hypotheses, strict=False):
        if any(len(translation["tokens"]) > limit + 1 for translation in translations):  # </s> is not counted
            say_once(
                logger,
                "A translation is longer than --max-len-a, --max-len-b or --match-source-len allow for its own "
                "source, because fairseq limits it by the longest source of its batch. Such translations depend "
                "on the batches. --batch-size 1 limits each sentence by its own source.",
            )
    return hypotheses


def _own_limits(generator: Any, inputs: Mapping[str, Tensor]) -> list[int]:
    """Return the number of tokens that the flags allow for each source; an empty list if it is the same for all."""
    if generator.match_source_len and "src_lengths" in inputs:
        return inputs["src_lengths"].tolist()
    if not generator.max_len_a or "src_tokens" not in inputs:
        return []
    lengths = inputs["src_tokens"].ne(generator.pad).sum(1).tolist()
    return [int(generator.max_len_a * length + generator.max_len_b) for length in lengths]


def adopt_limits(options: argparse.Namespace, words: Sequence[str]) -> None:
    """Change the length limits in the options of a command that loads a checkpoint to those of the training.

    fairseq takes them from the command line only (facebookresearch/fairseq#1853). Limits that the command line gives,
    and limits that the task itself takes from the checkpoint, stay.

    Args:
        options: Parsed options.
        words: Words of the command line.
    """
    if not getattr(options, "path", None) or not hasattr(options, "model_overrides"):  # loads no checkpoint
        return
    given = {word.partition("=")[0] for word in words}
    names = [name for name in (*_LONGEST, _BLOCK) if getattr(options, name, None) and _flag(name) not in given]
    tasks = [_task(path) for path in options.path.split(os.pathsep)] if names else []
    for name in names:
        trained = max((task[name] for task in tasks if isinstance(task.get(name), int)), default=0)
        value = getattr(options, name)
        if trained > value or (name == _BLOCK and 0 < trained < value):
            say_once(logger, f"{_flag(name)} is {trained}, as in the training; fairseq would take {value}")
            setattr(options, name, trained)


def _task(path: str) -> dict[str, Any]:
    try:
        return settings_of(safe_load(path, mmap=True), "task")
    except (OSError, CheckpointError, AttributeError, KeyError, TypeError):
        return {}  # fairseq loads the file later, and reports what is wrong with it


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"
