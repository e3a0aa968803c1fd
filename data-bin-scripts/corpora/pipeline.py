"""Convert text files to the folders that fairseq trains on."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from shared import digest, write_whole

from . import pieces, sample, shard, stages
from .binary import dtype_for
from .counts import Table, factors
from .errors import CorpusError
from .files import Source
from .job import Job, Settings, read_json
from .partial import make
from .stages import Machines, Task
from .tokenise import languages, tokenise

#: libraries whose versions can change the output
LIBRARIES = ("sentencepiece", "tokenizers", "sentencex", "mwparserfromhell")
FORMAT = 2  # version 1 removed form feeds and other separators between words


def prepare(
    sources: list[Source], output: Path, settings: Settings, tokenizer: Path | None, machines: Machines
) -> bool:
    """Write the output, unless it is already complete.

    Args:
        tokenizer: File or folder of the user's tokenizer; if it is None, a tokenizer is learned.
    Returns:
        True if the output was written, False if it was already complete.
    Raises:
        CorpusError: The text or an option is not valid, or a task failed.
    """
    machines.check()
    user_paths = pieces.user_paths(settings.tokenizer, tokenizer) if tokenizer else {}
    user_files = {name: path.read_bytes() for name, path in user_paths.items()}
    job = Job(output.with_name(output.name + ".partial"), settings)
    hashes = {name: hashlib.sha256(content).hexdigest() for name, content in user_files.items()}
    identity = job.identity(sources, hashes, {"format": str(FORMAT)} | {name: version(name) for name in LIBRARIES})

    def work(folder: Path) -> Path:
        write_whole(folder / "files.json", json.dumps([(str(source.path), *source[1:]) for source in sources]))
        _tokenizer(job, user_files, user_paths.get("vocab.txt"), machines)
        stages.run(Task(job, "tokenise", tokenise), settings.tasks, machines)
        table = _merged(job)
        stages.run(Task(job, "shard", shard.make), settings.tasks, machines)
        _record(job, identity, table)
        return job.result

    return make(output, identity, work)


def _tokenizer(job: Job, user_files: dict[str, bytes], vocabulary: Path | None, machines: Machines) -> None:
    """Copy the user's tokenizer or learn one, and check it before any long work.

    Args:
        vocabulary: The user's vocab.txt for WordPiece.
    """
    for name, content in user_files.items():
        job.tokenizer.mkdir(parents=True, exist_ok=True)
        (job.tokenizer / name).write_bytes(content)
    if not user_files:
        stages.run(Task(job, "learn", sample.learn), 1, machines)
    pieces.load(job.settings.tokenizer, job.tokenizer, lowercase=not job.settings.cased)
    if vocabulary is not None:
        pieces.check_case(vocabulary, cased=job.settings.cased)
    if job.settings.tokenizer == "sentencepiece":
        pieces.write_vocabulary(job.tokenizer)
    if job.settings.tokenizer == "wordpiece":
        pieces.write_settings(job.tokenizer, cased=job.settings.cased)


def _merged(job: Job) -> Table:
    """Merge the counts of all tasks; write the dictionary, the integer type of the ids and the languages' weights."""
    tokenizer = pieces.load(job.settings.tokenizer, job.tokenizer, lowercase=not job.settings.cased)
    table = Table(len(tokenizer))
    for task in range(job.settings.tasks):
        file = job.tokens / f"{task:05d}"
        table.merge(read_json(file.with_name(f"{file.name}.json")), np.load(file.with_name(f"{file.name}.npy")))
    _check(job, table)
    write_whole(job.dictionary, pieces.dictionary(job.tokenizer, tokenizer, table.frequencies))
    factor = smoothed(job, table)
    dtype = dtype_for(len(tokenizer)).name
    write_whole(job.merged, json.dumps({"dtype": dtype, "factors": [factor.get(code, 0.0) for code in _codes(job)]}))
    return table


def _codes(job: Job) -> list[str]:
    return languages(job.sources())


def smoothed(job: Job, table: Table) -> dict[str, float]:
    """Return how often the text of each language is repeated, computed from its number of pieces."""
    sizes = {code: table.of("train", code).pieces for code in _codes(job)}
    return factors({code: number for code, number in sizes.items() if number}, job.settings.smoothing)


def _check(job: Job, table: Table) -> None:
    sources = job.sources()
    for split in ("train", "valid"):
        counts = table.total(split)
        if counts.documents:
            continue
        if split == "valid" and job.settings.valid_part:
            raise CorpusError(
                f"--valid-part {job.settings.valid_part}: none of the {table.total('train').documents:,} documents was "
                "drawn for validation. Give a larger probability, or give validation files with --valid."
            )
        if split == "train" and job.settings.valid_part and table.total("valid").documents:
            raise CorpusError(
                f"--valid-part {job.settings.valid_part}: all documents were drawn for validation. Give a smaller "
                "probability."
            )
        files = [source.path for source in sources if source.split == split]
        others = f" and the {len(files) - 1} other files" if files[1:] else ""
        cure = "Give files with text, or give their format with --documents."
        raise CorpusError(f"--{split} {files[0]}{others}: no document has text. {cure}")


def _record(job: Job, identity: dict[str, Any], table: Table) -> None:
    """Write corpus.json, whose content does not depend on the machines that run the tasks."""
    files = Counter(source.split for source in job.sources())
    factor = smoothed(job, table)
    counts: dict[str, Any] = {
        split: {"files": files[split]} | asdict(table.total(split)) for split in ("train", "valid")
    }
    record = {
        "counts": counts,
        "languages": [
            {"split": split, "language": code, "taken": factor.get(code, 1.0) if split == "train" else 1.0}
            | asdict(of_language)
            for (split, code), of_language in sorted(table.counts.items())
        ],
        "options": asdict(job.settings),
        "tokenizer": {path.name: digest(path) for path in sorted(job.tokenizer.iterdir())},
        "identity": identity,
    }
    write_whole(job.result / "corpus.json", json.dumps(record, indent=1) + "\n")
    (job.tokenizer / pieces.DICTIONARY).unlink(missing_ok=True)  # each shard has a copy
