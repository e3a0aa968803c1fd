"""Convert text files to the folders that fairseq trains on: tokenise in tasks, then build the shards."""

from __future__ import annotations

import json
import shutil
from argparse import Namespace
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from shared import RECORD, CorpusError, digest, make, mapped, read_json, whole_folder, write_whole
from tqdm import tqdm

from . import keys, pieces, sentences
from .binary import dtype_for, shard
from .documents import Document, documents
from .files import Source, is_valid
from .learn import factors, learn

#: the options that determine the output, besides the files
OPTIONS = [
    *("tokenizer", "vocabulary", "cased", "longest", "tasks"),
    *("language", "languages", "smoothing", "seed", "limit", "valid_part"),
]
#: the libraries whose versions can change the output
LIBRARIES = ("sentencepiece", "tokenizers", "sentencex", "mwparserfromhell")
#: A document: its file and its number in the file, its language, whether it is for validation, and the place of its ids
#: and items in the files of its task. The shards set the sort key, and number the copies of the document.
ENTRY = np.dtype(
    [("file", "<u4"), ("index", "<u8"), ("language", "<u2"), ("valid", "u1")]
    + [(name, "<u8") for name in ("items", "ids", "first_item", "first_id", "task", "key", "copy")]
)
#: A fraction of unknown pieces above MOST_UNKNOWN means that the tokenizer does not fit. It is checked at the end of a
#: task if there are at least FEWEST pieces, and during the task as soon as there are ENOUGH pieces.
MOST_UNKNOWN, FEWEST, ENOUGH = 0.2, 100, 1_000_000
Counts = dict[str, Counter[str]]  # numbers of documents, pieces and so on by split and language, such as `train en`


def prepare(options: Namespace, sources: list[Source]) -> bool:
    """Write the output folder, unless it is already complete, and return whether it was written.

    Raises:
        CorpusError: The text or an option is not valid, or a task failed.
    """
    paths = pieces.user_paths(options.tokenizer, options.tokenizer_path) if options.tokenizer_path else {}
    files = [(*map(str, source), source.path.stat().st_size, source.path.stat().st_mtime_ns) for source in sources]
    identity = {"options": {name: getattr(options, name) for name in OPTIONS}, "files": files}
    identity["tokenizer"] = {name: digest(path) for name, path in paths.items()}
    identity["versions"] = {name: version(name) for name in LIBRARIES}

    def work(folder: Path) -> Path:
        job = Job(folder, options, sources)
        job.result.mkdir(exist_ok=True)
        if not job.tokenizer.exists():
            _tokenizer(job, paths)
        job.run("tokenise", partial(tokenise, job))
        counts = _merged(job)
        taken = _taken(job, counts)
        job.run("shard", partial(write_shard, job, taken))
        _record(job, counts, taken, identity)
        return job.result

    return make(options.output.absolute(), identity, work)


@dataclass(frozen=True)
class Job:
    """Describe a run: its folder DIR.partial, its options and its files."""

    folder: Path
    options: Namespace
    sources: list[Source]

    @property
    def result(self) -> Path:
        return self.folder / "corpus"

    @property
    def tokenizer(self) -> Path:
        return self.result / "tokenizer"

    @property
    def languages(self) -> list[str]:
        return sorted({source.language for source in self.sources})

    def pieces(self) -> pieces.Pieces:
        return pieces.load(self.options.tokenizer, self.tokenizer)

    def task(self, number: int) -> Path:
        return self.folder / "tokens" / f"{number:05d}"

    def run(self, stage: str, work: partial[None]) -> None:
        """Run the tasks of a stage; tasks that an earlier run completed end at once."""
        tasks = range(self.options.tasks)
        bar = tqdm(mapped(work, tasks, self.options.workers), stage, len(tasks), leave=False, disable=None)
        for _ in bar:
            pass


def _tokenizer(job: Job, paths: dict[str, Path]) -> None:
    """Copy the user's tokenizer or learn one, and check it before any long work."""
    with whole_folder(job.tokenizer) as new:
        for name, path in paths.items():
            shutil.copyfile(path, new / name)
        if not paths:
            learn(job.options, job.sources, new)
        pieces.load(job.options.tokenizer, new)


def tokenise(job: Job, task: int) -> None:
    """Write the ids, the sizes of the items, an `ENTRY` of each document and the counts of a task.

    Raises:
        CorpusError: A file cannot be read, or too many pieces are unknown to the tokenizer.
    """
    if job.task(task).exists():
        return
    tokenizer, options, languages = job.pieces(), job.options, job.languages
    frequencies, entries, first = np.zeros(len(tokenizer), np.int64), list[tuple[int, ...]](), (0, 0)
    counts: Counts = defaultdict(Counter)
    dtype = dtype_for(len(tokenizer))
    with whole_folder(job.task(task)) as new, (new / "ids").open("wb") as out, (new / "sizes").open("wb") as lengths:
        for file, index, source, document in _own_documents(job, task):
            valid = is_valid(source, file, index, options.seed, options.valid_part)
            split = "valid" if valid else "train"
            lines = sentences.split(source.language, document.text)
            ids, sizes = tokenizer.encode(lines)
            count = counts[f"{split} {source.language}"]
            if not len(ids):
                count["without_text"] += 1
                continue
            text, items = sentences.items(ids, sizes, tokenizer.begins, options.longest)
            out.write(text.astype(dtype).tobytes())
            lengths.write(items.astype("<i4").tobytes())
            entry = (file, index, languages.index(source.language), valid, len(items), len(text))
            entries.append((*entry, *first, task, 0, 0))
            first = (first[0] + len(items), first[1] + len(text))
            count.update(documents=1, sentences=len(lines), items=len(items), pieces=len(ids))
            count.update(unknown_pieces=int((ids == pieces.UNKNOWN).sum()), characters=sum(map(len, lines)))
            frequencies += 0 if valid else np.bincount(ids, minlength=len(tokenizer))
            _check_unknown(count, ENOUGH, f"{source.path}:{document.line}")
        for name, count in counts.items():
            _check_unknown(count, FEWEST, f"the {name.split()[0]} files of task {task}")
        np.save(new / "entries.npy", np.array(entries, ENTRY))
        np.save(new / "frequencies.npy", frequencies)
        (new / "counts.json").write_text(json.dumps(counts), encoding="utf-8")


def _check_unknown(count: Counter[str], enough: int, where: str) -> None:
    unknown, number = count["unknown_pieces"], count["pieces"]
    if number >= enough and unknown > MOST_UNKNOWN * number:
        raise CorpusError(
            f"{where}: {unknown:,} of {number:,} pieces are unknown, so the tokenizer is for another language or "
            "script. Give a suitable --tokenizer-path, or leave it out to learn a tokenizer."
        )


def _own_documents(job: Job, task: int) -> Iterator[tuple[int, int, Source, Document]]:
    """Yield the documents of a task, each with the number of its file and its number in that file.

    With T tasks, a task reads every T-th file. If there are fewer files than tasks, a task reads every T-th document of
    each file instead.
    """
    sources, tasks, limit = list(enumerate(job.sources)), job.options.tasks, job.options.limit
    shared = len(sources) < tasks
    left = limit // tasks + (task < limit % tasks) if limit else -1  # -1: all
    for file, source in sources if shared else sources[task::tasks]:
        for index, document in enumerate(documents(source.path, source.documents)):
            if shared and index % tasks != task:
                continue
            if source.split == "train":
                if left == 0:
                    break
                left -= 1
            yield file, index, source, document


def _merged(job: Job) -> Counts:
    """Return the counts of all tasks, and write the dictionary.

    Raises:
        CorpusError: A split has no documents.
    """
    counts: Counts = defaultdict(Counter)
    frequencies = np.zeros((), np.int64)
    for task in range(job.options.tasks):
        frequencies = frequencies + np.load(job.task(task) / "frequencies.npy")
        for name, count in read_json(job.task(task) / "counts.json").items():
            counts[name].update(count)
    for split in ("train", "valid"):
        if not _total(counts, split)["documents"]:
            part = job.options.valid_part
            cure = f"Give another --valid-part than {part}." if part else "Give files with text, or see --documents."
            first = next((source.path for source in job.sources if source.split == split), "--valid-part")
            raise CorpusError(f"{first}: the {split} set has no document with text. {cure}")
    counted = zip(job.pieces().symbols, frequencies[len(pieces.SPECIALS) :], strict=False)  # without <mask>
    text = "".join(f"{symbol} {max(1, frequency)}\n" for symbol, frequency in counted)
    own = job.tokenizer / pieces.DICTIONARY  # of the user's model
    write_whole(job.folder / pieces.DICTIONARY, own.read_text("utf-8") if own.exists() else text)
    return counts


def _total(counts: Counts, split: str) -> Counter[str]:
    return sum((count for name, count in counts.items() if name.startswith(f"{split} ")), Counter[str]())


def _taken(job: Job, counts: Counts) -> dict[str, float]:
    """Return how often the training text of each language is repeated, computed from its number of pieces."""
    sizes = {code: counts[f"train {code}"]["pieces"] for code in job.languages if f"train {code}" in counts}
    return factors({code: size for code, size in sizes.items() if size}, job.options.smoothing)


def write_shard(job: Job, taken: dict[str, float], number: int) -> None:
    """Write shardNUMBER/ with train.bin, train.idx and dict.txt; shard 0 also has valid.bin and valid.idx.

    The seed and the numbers of the documents determine which documents a shard holds, how often, and in what order.
    With a factor of 2.3, a document has two copies, and with a probability of 0.3 one more.

    Raises:
        CorpusError: The shard would have no document.
    """
    folder = job.result / f"shard{number:05d}"
    if folder.exists():
        return
    seed, tasks, by_language = job.options.seed, job.options.tasks, [taken.get(code, 0.0) for code in job.languages]
    train, valid = list[NDArray[np.void]](), list[NDArray[np.void]]()
    for task in range(tasks):
        entries = np.load(job.task(task) / "entries.npy")
        valid.append(entries[entries["valid"] == 1])
        chosen = entries[entries["valid"] == 0]
        factor = np.array(by_language)[chosen["language"]]
        drawn = keys.fractions(keys.keys(seed, keys.COPY, chosen["file"], chosen["index"])) < factor % 1
        for copy in range(int(np.ceil(max(by_language)))):
            copied = chosen[np.floor(factor) + drawn > copy]
            names = copied["file"], copied["index"], copy
            copied["key"], copied["copy"] = keys.keys(seed, keys.ORDER, *names), copy
            train.append(copied[keys.keys(seed, keys.SHARD, *names) % np.uint64(tasks) == number])
    if not any(map(len, train)):
        what = f"shard {number} has no document, because the text has too few documents"
        raise CorpusError(f"--tasks {tasks}: {what}. Give a smaller --tasks.")
    with whole_folder(folder) as new:
        if number == 0:
            _write(job, new / "valid", np.concatenate(valid))
        _write(job, new / "train", np.concatenate(train))
        shutil.copyfile(job.folder / pieces.DICTIONARY, new / pieces.DICTIONARY)


def _write(job: Job, prefix: Path, entries: NDArray[np.void]) -> None:
    """Copy documents in the order of their keys; those of the validation set, whose keys are 0, in their order."""
    dtype = dtype_for(len(np.load(job.task(0) / "frequencies.npy")))
    # mapped files need no open file descriptors, of which many systems allow 1,024
    files = {task: job.task(task) for task in np.unique(entries["task"]).tolist()}
    ids = {task: np.memmap(folder / "ids", dtype, "r") for task, folder in files.items()}
    sizes = {task: np.memmap(folder / "sizes", "<i4", "r") for task, folder in files.items()}
    with shard(prefix, dtype) as writer:
        for entry in entries[np.lexsort([entries[name] for name in ("copy", "index", "file", "key")])]:
            task, id, item = (int(entry[name]) for name in ("task", "first_id", "first_item"))
            text = ids[task][id : id + int(entry["ids"])]
            writer.add(text.tobytes(), sizes[task][item : item + int(entry["items"])].tobytes())


def _record(job: Job, counts: Counts, taken: dict[str, float], identity: dict[str, Any]) -> None:
    """Write corpus.json, which does not depend on the number of processes."""
    record: dict[str, Any] = {
        "counts": {split: _total(counts, split) for split in ("train", "valid")},
        "languages": counts,
    }
    record |= {"taken": taken, "options": identity["options"], "identity": identity}
    record["tokenizer"] = {path.name: digest(path) for path in sorted(job.tokenizer.iterdir())}
    write_whole(job.result / RECORD, json.dumps(record, indent=1, sort_keys=True) + "\n")
    (job.tokenizer / pieces.DICTIONARY).unlink(missing_ok=True)  # each shard has a copy
