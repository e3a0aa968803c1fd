"""Generate and evaluate as the flags of fairseq-generate, -interactive and -eval-lm say."""

from __future__ import annotations

import argparse
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

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
    """Mend --no-repeat-ngram-size, --diverse-beam-groups and --replace-unk."""
    from fairseq import utils
    from fairseq.ngram_repeat_block import NGramRepeatBlock
    from fairseq.search import DiverseBeamSearch

    replace(NGramRepeatBlock, "_no_repeat_ngram", _until_this_step)
    replace(DiverseBeamSearch, "step", _by_place)
    replace(utils, "load_align_dict", _or_empty)
    replace(utils, "replace_unk", _by_pairs)


# -- --no-repeat-ngram-size


def _until_this_step(
    original: Callable[..., Tensor], block: Any, tokens: Tensor, lprobs: Tensor, bsz: int, beam_size: int, step: int
) -> Tensor:
    """Block repeated n-grams without the padding after the current step.

    fairseq compares n-grams with the end of `tokens`, which is padded to the maximum length, and so bans nothing
    (ngram_repeat_block.py:101).
    """
    return original(block, tokens[:, : step + 1], lprobs, bsz, beam_size, step)


# -- --diverse-beam-groups


def _by_place(
    original: Callable[..., Any],
    search: Any,
    step: int,
    lprobs: Tensor,
    scores: Tensor,
    prev_output_tokens: Tensor | None = None,
    original_batch_idxs: Tensor | None = None,
) -> Any:
    """Search with the places of the remaining sentences among those of step 0, in place of their numbers in the data.

    fairseq finds the overlap of a sentence's groups by the number of the sentence in the data, although it keeps one
    row for each sentence of the batch (search.py:649). So it raises an IndexError, or takes the overlap of another
    sentence.
    """
    if original_batch_idxs is not None:
        if step == 0:
            search.batch = original_batch_idxs
        original_batch_idxs = original_batch_idxs.unsqueeze(1).eq(search.batch).int().argmax(1)
    return original(search, step, lprobs, scores, prev_output_tokens, original_batch_idxs)


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
