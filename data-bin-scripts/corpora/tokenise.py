"""Convert the documents of a task to ids, from which the shards are built."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import BinaryIO

import numpy as np

from . import keys, pieces, sentences
from .binary import ENDS, RECORD, dtype_for, replacing
from .compressed import BLOCK
from .counts import Counts, Table
from .documents import documents
from .errors import CorpusError
from .files import Source, Split
from .job import Job, Meter
from .lines import Document

#: A fraction of unknown pieces above MOST_UNKNOWN means that the tokenizer does not fit. It is checked at the end of a
#: task if there are at least FEWEST pieces, and during the task as soon as there are ENOUGH pieces.
MOST_UNKNOWN, FEWEST, ENOUGH = 0.2, 100, 1_000_000
_PENDING = 1 << 20  # ids that are counted at a time


def split_of(job: Job, source: Source, file: int, index: int) -> Split:
    """Return the split of the document's file, or `valid` if the document is drawn for validation."""
    part = job.settings.valid_part
    if not part or source.split == "valid":
        return source.split
    return "valid" if keys.fractions(keys.keys(job.settings.seed, keys.VALID, file, index))[0] < part else "train"


def languages(sources: list[Source]) -> list[str]:
    """Return the sorted languages; the token files refer to a language by its index in this list."""
    return sorted({source.language for source in sources})


class Tokens:
    """Write the ids, the item sizes and a `RECORD` of each document, and count the documents.

    The function `tokens` opens the output files. The memory use does not grow with the number of documents.
    """

    def __init__(self, job: Job, files: list[BinaryIO]) -> None:
        self.job, self._files = job, files
        self.pieces = pieces.load(job.settings.tokenizer, job.tokenizer, lowercase=not job.settings.cased)
        self.table, self.dtype = Table(len(self.pieces)), dtype_for(len(self.pieces))
        self.languages = {code: number for number, code in enumerate(languages(job.sources()))}
        self._pending, self._waiting = list[pieces.Ids](), 0

    def add(self, file: int, index: int, source: Source, document: Document) -> None:
        """Add a document.

        Args:
            file: Number of the document's file.
            index: Number of the document in its file.
        Raises:
            CorpusError: Too many pieces are unknown to the tokenizer.
        """
        split = split_of(self.job, source, file, index)
        document_sentences = sentences.split(source.language, sentences.clean(document.text))
        ids, lengths = self.pieces.encode(document_sentences)
        if not len(ids):
            self.table.of(split, source.language).without_text += 1
            return
        out, sizes = sentences.items(ids, lengths, self.pieces.begins, self.job.settings.longest)
        name = (file, index, self.languages[source.language], split == "valid")
        record = np.array((*name, len(sizes), len(out)), RECORD)
        for target, content in zip(self._files, (out.astype(self.dtype), sizes.astype("<i4"), record), strict=True):
            target.write(content.tobytes())
        unknown = int((ids == pieces.UNKNOWN).sum())
        counts = Counts(1, 0, len(document_sentences), len(sizes), len(ids), unknown, sum(map(len, document_sentences)))
        self.table.of(split, source.language).add(counts)
        if split == "train":
            self.count(ids)
        self.check(split, ENOUGH, f"{source.path}:{document.line}")

    def count(self, ids: pieces.Ids | None = None) -> None:
        if ids is not None:
            self._pending.append(ids)
            self._waiting += len(ids)
        if self._pending and (ids is None or self._waiting > _PENDING):
            self.table.frequencies += np.bincount(np.concatenate(self._pending), minlength=len(self.pieces))
            self._pending, self._waiting = [], 0

    def check(self, split: Split, enough: int, where: str) -> None:
        counts = self.table.total(split)
        if counts.pieces >= enough and counts.unknown_pieces > MOST_UNKNOWN * counts.pieces:
            raise CorpusError(
                f"{where}: {counts.unknown_pieces:,} of {counts.pieces:,} pieces are unknown, so the tokenizer is for "
                "another language or script. Give a suitable --tokenizer-path, or leave it out to learn a tokenizer."
            )


@contextmanager
def tokens(job: Job, task: int) -> Iterator[Tokens]:
    """Yield the writer of the token files of a task.

    The files with the endings ids, sizes, documents, npy and json appear in tokens/ if the block ends without an error.
    The npy file holds the frequency of each id, and the json file holds the counts of documents, sentences and pieces.
    """
    with replacing(job.tokens / f"{task:05d}", (*ENDS, "npy", "json")) as new, ExitStack() as stack:
        writer = Tokens(job, [stack.enter_context(new[end].open("wb", buffering=BLOCK)) for end in ENDS])
        yield writer
        writer.count()
        for split in ("train", "valid"):
            writer.check(split, FEWEST, f"the files of task {task}")
        with new["npy"].open("wb") as file:
            np.save(file, writer.table.frequencies)
        new["json"].write_text(json.dumps(writer.table.to_json()), encoding="utf-8")


def tokenise(job: Job, task: int, meter: Meter) -> None:
    """Write the documents of a task as ids."""
    with tokens(job, task) as writer:
        for file, index, source, document in own_documents(job, task):
            writer.add(file, index, source, document)
            meter.add()


def own_documents(job: Job, task: int) -> Iterator[tuple[int, int, Source, Document]]:
    """Yield the documents of a task, each with the number of its file and its number in that file.

    With T tasks, a task reads every T-th file. If there are fewer files than tasks, a task reads every T-th document of
    each file instead.
    """
    sources, tasks = list(enumerate(job.sources())), job.settings.tasks
    shared = len(sources) < tasks
    left = room(job.settings.limit, task, tasks)
    for file, source in sources if shared else sources[task::tasks]:
        for index, document in enumerate(documents(source.path, source.documents)):
            if shared and index % tasks != task:
                continue
            if source.split == "train":
                if left == 0:
                    break
                left -= 1
            yield file, index, source, document


def room(limit: int, task: int, tasks: int) -> int:
    """Return the maximum number of training documents that a task reads; a negative number means all."""
    return limit // tasks + (task < limit % tasks) if limit else -1
