"""The documents of a task as ids: what the shards are made of."""

from __future__ import annotations

import json
from contextlib import ExitStack
from types import TracebackType
from typing import Any

import numpy as np
from datatrove.data import Document

from . import keys, pieces, sentences
from .binary import ENDS, TokenWriter, dtype_for, replacing
from .counts import Counts, Table
from .errors import CorpusError
from .files import Source, Split
from .job import Job

#: the part of unknown pieces beyond which the tokenizer is another's, and how many pieces tell, at least and at most
MOST_UNKNOWN, FEWEST, ENOUGH = 0.2, 100, 1_000_000
_PENDING = 1 << 20  # ids that are counted at a time


def split_of(job: Job, source: Source, file: int, index: int) -> Split:
    """Of a document of a file: that of the file, but for the part of training that is held out by draw."""
    part = job.settings.valid_part
    if not part or source.split == "valid":
        return source.split
    return "valid" if keys.fractions(keys.keys(job.settings.seed, keys.VALID, file, index))[0] < part else "train"


def languages(sources: list[Source]) -> list[str]:
    """Each has its place here as its number."""
    return sorted({source.language for source in sources})


class Tokens:
    """tokens/TASK.{ids,sizes,documents,npy,json}, there when all is well; the last one has the counts."""

    def __init__(self, job: Job, task: int) -> None:
        self.job, self.task = job, task
        self.pieces = pieces.load(job.settings.tokenizer, job.tokenizer, lowercase=not job.settings.cased)
        self.table = Table(len(self.pieces))
        self.languages = {code: number for number, code in enumerate(languages(job.sources()))}
        self._stack, self._pending, self._waiting = ExitStack(), list[pieces.Ids](), 0

    def __enter__(self) -> Tokens:
        self._new = self._stack.enter_context(replacing(self.job.tokens / f"{self.task:05d}", (*ENDS, "npy", "json")))
        self._writer = TokenWriter(self._new, dtype_for(len(self.pieces)))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._stack:
            self._writer.close()
            if error is not None:
                raise error
            self._finish()

    def _finish(self) -> None:
        self._count()
        for split in ("train", "valid"):
            self._check(split, FEWEST, f"the files of task {self.task}")
        with self._new("npy").open("wb") as file:
            np.save(file, self.table.frequencies)
        self._new("json").write_text(json.dumps(self.table.to_json()), encoding="utf-8")

    def add(self, document: Document) -> None:
        """Raises:
        CorpusError: text of which the tokenizer does not know a fifth.
        """
        facts: dict[str, Any] = document.metadata
        source: Source = facts["source"]
        split = split_of(self.job, source, facts["file"], facts["index"])
        found = sentences.split(source.language, document.text.split("\n")) if document.text else []
        ids, lengths = self.pieces.encode(found)
        if not len(ids):
            self.table.of(split, source.language).without_text += 1
            return
        out, sizes = sentences.items(ids, lengths, self.pieces.begins, self.job.settings.longest)
        name = (facts["file"], facts["index"], self.languages[source.language], split == "valid")
        self._writer.add(name, out, sizes)
        unknown = int((ids == pieces.UNKNOWN).sum())
        counts = Counts(1, 0, len(found), len(sizes), len(ids), unknown, sum(map(len, found)))
        self.table.of(split, source.language).add(counts)
        if split == "train":
            self._count(ids)
        self._check(split, ENOUGH, f"{source.path}:{facts['line']}")

    def _count(self, ids: pieces.Ids | None = None) -> None:
        if ids is not None:
            self._pending.append(ids)
            self._waiting += len(ids)
        if self._pending and (ids is None or self._waiting > _PENDING):
            self.table.frequencies += np.bincount(np.concatenate(self._pending), minlength=len(self.pieces))
            self._pending, self._waiting = [], 0

    def _check(self, split: Split, enough: int, where: str) -> None:
        counts = self.table.total(split)
        if counts.pieces >= enough and counts.unknown_pieces > MOST_UNKNOWN * counts.pieces:
            raise CorpusError(
                f"{where}: {counts.unknown_pieces:,} of {counts.pieces:,} pieces are unknown to the tokenizer, which "
                "is of another language or script; give one that fits (--tokenizer-path), or let one be learned"
            )
