"""Define the settings of a run and the paths of its files."""

from __future__ import annotations

import json
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from shared import NoSpaceError, write_whole

from .errors import CorpusError
from .files import Source


@dataclass(frozen=True)
class Settings:
    """Hold the options that, together with the input files, determine the output."""

    tokenizer: str
    vocabulary: int
    cased: bool
    longest: int
    tasks: int
    language: str
    languages: bool
    smoothing: float
    seed: int
    limit: int  # maximum number of training documents; 0: all
    valid_part: float  # fraction of the documents that is held out for validation; 0: --valid names them


@dataclass(frozen=True)
class Job:
    """Describe the folder of a run in progress. Tasks on different machines share nothing but this folder."""

    folder: Path
    settings: Settings

    @property
    def tokenizer(self) -> Path:
        return self.result / "tokenizer"

    @property
    def tokens(self) -> Path:
        return self.folder / "tokens"

    @property
    def result(self) -> Path:
        """Return the folder that becomes the output."""
        return self.folder / "corpus"

    @property
    def merged(self) -> Path:
        """Return the path of the file that stores the integer type of the ids, and the weight of each language."""
        return self.folder / "merged.json"

    @property
    def dictionary(self) -> Path:
        return self.folder / "dict.txt"

    def shard(self, number: int) -> Path:
        return self.result / f"shard{number:05d}"

    def logs(self, stage: str) -> Path:
        return self.folder / "logs" / stage

    def sources(self) -> list[Source]:
        rows = read_json(self.folder / "files.json")
        return [Source(Path(path), split, code, kind) for path, split, code, kind in rows]

    def identity(self, sources: list[Source], tokenizer: dict[str, str], versions: dict[str, str]) -> dict[str, Any]:
        """Return everything that determines the output; a run can resume an earlier run with equal values."""
        files = [(str(source.path), *source[1:], *_facts(source.path)) for source in sources]
        return json.loads(  # through JSON, so that it equals the identity read from a file, which has lists for tuples
            json.dumps({"options": asdict(self.settings), "tokenizer": tokenizer, "versions": versions, "files": files})
        )

    @contextmanager
    def reporting_errors(self, stage: str, task: int) -> Iterator[None]:
        """If the block raises an error, write it to a file, because a cluster does not report exceptions."""
        report = self.folder / "errors" / f"{stage}-{task:05d}"
        report.unlink(missing_ok=True)
        try:
            yield
        except (CorpusError, NoSpaceError) as error:
            write_whole(report, str(error))
            raise
        except Exception as error:
            message = f"{type(error).__name__}: {' '.join(str(error).split())}"
            write_whole(report, f"task {task} of the stage {stage}: {message}. See {self.logs(stage)}.")
            traceback.print_exc()
            raise

    def first_error(self, stage: str) -> str | None:
        """Return the error of the failed task with the smallest number in a stage, or None."""
        reports = sorted((self.folder / "errors").glob(f"{stage}-*"))
        return reports[0].read_text(encoding="utf-8") if reports else None


class Meter:
    """Write to a file how many documents a task has processed; the progress bar reads these files."""

    def __init__(self, job: Job, stage: str, task: int) -> None:
        self._path, self._documents, self._next = job.folder / "progress" / f"{stage}-{task:05d}", 0, 0.0
        self._path.parent.mkdir(exist_ok=True)

    def add(self, documents: int = 1) -> None:
        self._documents += documents
        if time.monotonic() >= self._next:
            self.write()

    def write(self) -> None:
        self._path.write_text(str(self._documents))
        self._next = time.monotonic() + 1


def done(job: Job, stage: str) -> int:
    """Return how many documents the tasks of a stage have processed in total."""
    read = (path.read_text() for path in (job.folder / "progress").glob(f"{stage}-*"))
    return sum(int(text) for text in read if text)


def _facts(path: Path) -> tuple[int, int]:
    facts = path.stat()
    return facts.st_size, facts.st_mtime_ns


def read_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))
