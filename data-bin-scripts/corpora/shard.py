"""Build a shard from the tokens of all tasks.

The random seed and the numbers of the documents determine which documents a shard holds, how often, and in what order.
The result does not depend on the machine or the time.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from . import keys
from .binary import PLACE, TokenFiles, shard
from .errors import CorpusError
from .job import Job, Meter, read_json

Places = NDArray[np.void]


def make(job: Job, number: int, meter: Meter) -> None:
    """Write shardNUMBER/ with train.bin, train.idx and dict.txt; shard 0 also has valid.bin and valid.idx.

    Raises:
        CorpusError: The shard would have no document.
    """
    merged = read_json(job.merged)
    tokens = TokenFiles(job.tokens, job.settings.tasks, np.dtype(merged["dtype"]))
    folder = job.shard(number)
    if number == 0:
        _write(folder / "valid", tokens, _valid(tokens), lambda: None)
    places = _train(job, number, tokens, merged["factors"])
    if not len(places):
        raise CorpusError(
            f"--tasks {job.settings.tasks}: shard {number} has no document, because the text has too few documents. "
            "Give a smaller --tasks."
        )
    _write(folder / "train", tokens, _sorted(places, "key", "file", "index", "copy"), meter.add)
    shutil.copyfile(job.dictionary, folder / "dict.txt")


def _write(prefix: Path, tokens: TokenFiles, places: Places, count: Callable[[], None]) -> None:
    with shard(prefix, tokens.dtype) as writer:
        for place in places:
            task = int(place["task"])
            ids = tokens.read(task, "ids", int(place["id"]), int(place["ids"]))
            writer.add(ids, tokens.read(task, "sizes", int(place["item"]), int(place["items"])))
            count()


def _sorted(places: Places, *names: str) -> Places:
    return places[np.lexsort([places[name] for name in reversed(names)])]


def _valid(tokens: TokenFiles) -> Places:
    """Return the validation documents in the order of the files."""
    places_by_task = [places[records["valid"] == 1] for records, places in map(tokens.placed, range(tokens.tasks))]
    return _sorted(np.concatenate(places_by_task), "file", "index")


def _train(job: Job, number: int, tokens: TokenFiles, factors: list[float]) -> Places:
    """Return the training documents of a shard; `factors` says how often the documents of each language are repeated.

    The shard of each copy of a document is drawn independently.
    """
    parts = [np.zeros(0, PLACE)]
    for task in range(tokens.tasks):
        records, places = tokens.placed(task)
        train = records["valid"] == 0
        records, places = records[train], places[train]
        often = copies(job.settings.seed, records, np.array(factors))
        for copy in range(int(often.max(initial=0))):
            taken = often > copy
            chosen = places[taken]
            names = chosen["file"], chosen["index"], copy
            mine = keys.keys(job.settings.seed, keys.SHARD, *names) % np.uint64(job.settings.tasks) == number
            chosen["key"], chosen["copy"] = keys.keys(job.settings.seed, keys.ORDER, *names), copy
            parts.append(chosen[mine])
    return np.concatenate(parts)


def copies(seed: int, records: NDArray[np.void], factors: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return how many copies of each document the shards get, [n].

    The factor of a language is the number of times that its text is used. With a factor of 2.3, a document gets two
    copies, and with a probability of 0.3 one more.
    """
    factor = factors[records["language"]]
    draw = keys.fractions(keys.keys(seed, keys.COPY, records["file"], records["index"]))
    return (np.floor(factor) + (draw < factor % 1)).astype(np.int64)
