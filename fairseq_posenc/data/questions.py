"""Load prepared questions as a data set of pairs: a source, with its segments and unknown words, and its question.

Legend: B batch size, S source tokens, V symbols of the dictionary.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from fairseq.data import Dictionary, LanguagePairDataset, data_utils
from torch import Tensor

from ..core.refusal import InputError

logger = logging.getLogger(__name__)

SOURCE, TARGET = "src", "tgt"


class Surface(NamedTuple):
    """Hold the fields of a line of surface.jsonl, which describes an item of the data set.

    Args:
        unknown: Words that the dictionary lacks; their ids in the sample begin at V.
        references: Original texts of all questions about the source.
        weight: One divided by the number of items with the same source, so that weighted sums count each source once.
    """

    unknown: list[str]
    references: list[str]
    weight: float = 1.0


def read_surface(path: Path) -> list[Surface]:
    """Read surface.jsonl, which has one item per line.

    Raises:
        ValueError: A line is not an item; the message gives the number of the line.
    """
    items, sources = [], []
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            try:
                fields = json.loads(line)
                items.append(Surface(list(fields["unknown"]), list(fields.get("references", ()))))
                sources.append(str(fields.get("source", f"item {number}")))
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
                raise InputError(
                    f"{path}:{number}: the line is not a JSON object with a list 'unknown' ({error!r}). Prepare the "
                    "questions again."
                ) from None
    items_by_source = Counter(sources)
    return [item._replace(weight=1 / items_by_source[source]) for item, source in zip(items, sources, strict=True)]


class Questions(LanguagePairDataset):
    """Extend fairseq's data set of pairs: batches also have `src_segments` and the `unknown` words of each sample.

    Batches have no segments if the prepared data have none.
    """

    def __init__(
        self,
        source: Any,
        target: Any,
        dictionary: Dictionary,
        *,
        source_sizes: Any = None,
        segments: Any = None,
        surface: Sequence[Surface] | None = None,
        left_pad_source: bool = True,
        shuffle: bool = False,
        constraints: Tensor | None = None,
    ) -> None:
        super().__init__(
            source,
            source.sizes if source_sizes is None else source_sizes,
            dictionary,
            target,
            None if target is None else target.sizes,
            dictionary,
            left_pad_source=left_pad_source,
            shuffle=shuffle,
            constraints=constraints,
        )
        self.segments, self.surface = segments, surface

    def __getitem__(self, index: int) -> dict[str, Any]:
        item: dict[str, Any] = super().__getitem__(index)
        if self.segments is not None:
            item["segments"] = self.segments[index]
        if self.surface is not None:
            item["surface"] = self.surface[index]
        return item

    def collater(self, samples: list[dict[str, Any]], pad_to_length: Any = None) -> dict[str, Any]:
        """Return fairseq's batch, sorted by length, with the unknown words, references, weights and segments."""
        batch: dict[str, Any] = super().collater(samples, pad_to_length)
        if not samples:
            return batch
        by_id = {sample["id"]: sample for sample in samples}
        rows = [by_id[number] for number in batch["id"].tolist()]
        if self.surface is not None:
            batch["unknown"] = [row["surface"].unknown for row in rows]
            batch["references"] = [row["surface"].references for row in rows]
            batch["weights"] = [row["surface"].weight for row in rows]
        if self.segments is not None:
            width = batch["net_input"]["src_tokens"].shape[1]
            batch["net_input"]["src_segments"] = data_utils.collate_tokens(
                [row["segments"].long() for row in rows], 0, left_pad=self.left_pad_source, pad_to_length=width
            )
        return batch


def load(folder: Path, split: str, dictionary: Dictionary, impl: str | None = None, **options: Any) -> Questions:
    """Load a split from the folder that prepare_questions.py wrote; questions and segments may be missing.

    Raises:
        FileNotFoundError: The sources or surface.jsonl are missing.
        ValueError: The files contradict each other.
    """
    parts = {name: f"{split}.{SOURCE}-{TARGET}.{name}" for name in (SOURCE, TARGET)} | {"segments": f"{split}.segments"}
    data = {name: _indexed(folder / file, dictionary, impl) for name, file in parts.items()}
    surface_file = folder / f"{split}.surface.jsonl"
    if data[SOURCE] is None or not surface_file.is_file():
        missing = f"{parts[SOURCE]}.bin" if data[SOURCE] is None else surface_file.name
        raise FileNotFoundError(f"{folder} has no {missing}. Give a folder that prepare_questions.py wrote.")
    surface = read_surface(surface_file)
    counts = {name: len(items) for name, items in {**data, "surface.jsonl": surface}.items() if items is not None}
    if len(set(counts.values())) > 1:
        sizes = ", ".join(f"{name} {count}" for name, count in counts.items())
        problem = f"the files have different numbers of items ({sizes})"
        raise InputError(f"{folder}, {split}: {problem}. Prepare the data again.")
    _check(data, surface, len(dictionary), surface_file)
    return Questions(data[SOURCE], data[TARGET], dictionary, segments=data["segments"], surface=surface, **options)


def _indexed(path: Path, dictionary: Dictionary, impl: str | None) -> Any:
    exists = path.with_name(f"{path.name}.idx").is_file()
    return data_utils.load_indexed_dataset(str(path), dictionary, impl) if exists else None


def _check(data: dict[str, Any], surface: Sequence[Surface], size: int, file: Path) -> None:
    for index, item in enumerate(surface):
        source = data[SOURCE][index]
        highest = int(source.max())
        if highest >= size + len(item.unknown):
            reason = f"the source has id {highest}, but only {size} symbols and {len(item.unknown)} unknown words exist"
            raise InputError(f"{file}:{index + 1}: {reason}. Prepare the data again.")
        if data["segments"] is not None and len(data["segments"][index]) != len(source):
            raise InputError(f"{file}:{index + 1}: source and segments have different lengths. Prepare the data again.")
        if data[TARGET] is not None and int(data[TARGET][index].max()) > max(highest, size - 1):
            raise InputError(
                f"{file}:{index + 1}: the question copies a word that its source does not have. Prepare the data again."
            )


def check_lengths(data: Questions, limits: tuple[int, int], folder: Path, split: str, *, skipped: bool) -> None:
    """Raise an error, or log a warning, if items are longer than a model allows.

    Without this check, fairseq would drop over-long items from training with one warning, and would end validation at
    the first over-long item.

    Args:
        data: Items to check.
        limits: Maximum length of a source and of a question, in tokens with special symbols.
        folder: Folder of the data, for messages.
        split: Name of the split, for messages.
        skipped: Whether fairseq skips items that are too long, so that a warning is enough.
    Raises:
        ValueError: Some items are too long, and fairseq does not skip them.
    """
    parts = (
        ("sources", data.src_sizes, limits[0], "--max-source-positions", "--length"),
        ("questions", data.tgt_sizes, limits[1], "--max-target-positions", "--longest-question"),
    )
    excess = [_excess(*part) for part in parts if part[1] is not None and (np.asarray(part[1]) > part[2]).any()]
    if excess and skipped:
        logger.warning(f"{folder}, {split}: fairseq leaves out items that are too long. {' '.join(excess)}")
    elif excess:
        raise InputError(f"{folder}, {split}: {' '.join(excess)}")


def _excess(kind: str, sizes: object, limit: int, flag: str, preparation_flag: str) -> str:
    lengths = np.asarray(sizes)
    count, longest = int((lengths > limit).sum()), int(lengths.argmax())
    return (
        f"{count:,} of {len(lengths):,} {kind} have more than {limit} tokens (item {longest} has {lengths[longest]}). "
        f"Give {flag} {lengths[longest]} if the model allows it, or prepare the questions with a smaller "
        f"{preparation_flag}."
    )
