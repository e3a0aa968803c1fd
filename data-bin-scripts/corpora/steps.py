"""The steps of the pipeline, as datatrove runs them: documents in, files of the job out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from datatrove.data import Document
from datatrove.pipeline.base import PipelineStep
from datatrove.pipeline.readers.base import BaseReader

from . import sentences
from .documents import documents
from .job import Job, Meter
from .sample import learn
from .shard import make
from .tokenise import tokens

Documents = Iterable[Document]


class Read(BaseReader):
    """The documents of a task: those of every tasks-th file.

    Where there are fewer files than tasks, it is every tasks-th document of each: a dump is a single file.
    """

    name = "documents"

    def __init__(self, job: Job) -> None:
        super().__init__()
        self.job = job

    def run(self, data: Any = None, rank: int = 0, world_size: int = 1) -> Iterator[Document]:
        sources = list(enumerate(self.job.sources()))
        shared = len(sources) < world_size
        left = room(self.job.settings.limit, rank, world_size)
        for file, source in sources if shared else sources[rank::world_size]:
            for index, found in enumerate(documents(source.path, source.documents)):
                if shared and index % world_size != rank:
                    continue
                if source.split == "train":
                    if left == 0:
                        break
                    left -= 1
                facts = {"file": file, "index": index, "source": source, "line": found.line}
                yield Document("\n".join(found.text), f"{file}/{index}", metadata=facts)


def room(limit: int, task: int, tasks: int) -> int:
    """How many documents of training a task may read; below 0: all."""
    return limit // tasks + (task < limit % tasks) if limit else -1


class _Step(PipelineStep):
    """What it needs to know lies in the job's folder."""

    def __init__(self, job: Job) -> None:
        super().__init__()
        self.job = job


class Clean(_Step):
    """Paragraphs as lines; a document without text has none."""

    type, name = "clean", "paragraphs"

    def run(self, data: Any, rank: int = 0, world_size: int = 1) -> Iterator[Document]:
        for document in data:
            document.text = "\n".join(sentences.clean(document.text.split("\n")))
            yield document


class Tokenise(_Step):
    """The documents of a task as ids, with counts: tokens/TASK.*"""

    type, name = "tokenise", "ids"

    def run(self, data: Any, rank: int = 0, world_size: int = 1) -> None:
        with self.job.telling("tokenise", rank), tokens(self.job, rank) as writer:
            meter = Meter(self.job, "tokenise", rank)
            for document in data:
                writer.add(document)
                meter.add()
            meter.tell()


class Shard(_Step):
    """The shard of a task, from the tokens of all: shardTASK/train.*; the first one has the validation set too."""

    type, name = "shard", "files"

    def run(self, data: Any = None, rank: int = 0, world_size: int = 1) -> None:
        with self.job.telling("shard", rank):
            make(self.job, rank)


class Learn(_Step):
    """A vocabulary, from a sample of the documents of training: tokenizer/"""

    type, name = "learn", "vocabulary"

    def run(self, data: Any = None, rank: int = 0, world_size: int = 1) -> None:
        with self.job.telling("learn", rank):
            learn(self.job)
