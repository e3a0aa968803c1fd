"""Provide what the programs for fine-tuning share: problems with rows, output folders, dictionaries, processes."""

from __future__ import annotations

import argparse
import json
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import command
from corpora.binary import dtype_for, shard
from corpora.pieces import SPECIALS
from shared import CorpusError, digest, mapped, whole_folder, write_whole

CHUNK = 256  # items that a process works on at a time
SHOWN = 5  # problems of each kind that are printed
#: names that fairseq's dictionaries have already
TAKEN = {*SPECIALS, "<mask>"}
Item = TypeVar("Item")
Result = TypeVar("Result")


class Problem(NamedTuple):
    """Describe a problem with a row or a question.

    Args:
        where: File and line, or file, article and paragraph.
        done: How the problem was handled, for example `refused` or `left out`.
    """

    split: str
    where: str
    id: str
    kind: str
    what: str
    done: str


# --- programs


def add_common(parser: argparse.ArgumentParser, bad: Sequence[str]) -> None:
    """Add the options that all programs have; `bad` are the values of --bad."""
    add = parser.add_argument
    text = "What to do with bad items: refuse stops with a list, skip leaves them out (default: refuse). "
    text += "repair searches the context for misplaced answers, and cuts what is too long." if "repair" in bad else ""
    add("--bad", choices=bad, default="refuse", help=text)
    text = "Maximum number of items of the training set (default: 0, which means all)."
    add("--limit", type=command.at_least(0), default=0, metavar="N", help=text)
    text = "Folder to write, completely or not at all; it must not exist."
    add("--output", type=command.data_folder, required=True, metavar="DIR", help=text)
    add("--workers", type=command.at_least(1), default=1, metavar="N", help="Number of processes (default: 1).")


def add_model(parser: argparse.ArgumentParser) -> None:
    """Add the options of programs that prepare data for a pretrained model."""
    add = parser.add_argument
    text = "Pretrained model that provides the vocabulary: a fairseq checkpoint or a Hugging Face folder."
    add("--checkpoint", type=Path, required=True, metavar="FILE|DIR", help=text)
    text = "Tokenizer of the model: a file or folder (default: the tokenizer in the folder of the model's dict.txt)."
    add("--tokenizer", metavar="PATH", help=text)
    text = "Number of </s> between the two texts of an item: 2 as in RoBERTa, 1 as in BERT (default: 2)."
    add("--separators", type=int, choices=(1, 2), default=2, help=text)


def run(work: Callable[[], dict[str, Any]], output: Path) -> int:
    """Run a program that returns the record of its output folder, print the counts, and return the exit status."""

    def counts() -> Path:
        for split, facts in work()["splits"].items():
            numbers = [f"{name} {value:,}" for name, value in facts.items() if type(value) is int]
            print(f"{split}: {', '.join(numbers)}", flush=True)
        return output

    return command.exit_status(counts)


# --- problems and the output folder


@contextmanager
def new_folder(output: Path, cure: str) -> Iterator[tuple[Path, list[Problem]]]:
    """Yield OUTPUT.partial, which becomes OUTPUT after the block, and a list for problems, which are written there.

    Raises:
        CorpusError: OUTPUT exists, or a problem is refused (see `refuse`).
    """
    if output.exists():
        raise CorpusError(f"{output} exists. Move it, or choose another --output.")
    problems = list[Problem]()
    with whole_folder(output) as folder:
        yield folder, problems
        refuse(output, problems, cure)
        write_whole(folder / "problems.jsonl", json_lines(problem._asdict() for problem in problems))
    print(*summary(problems), sep="\n", end="\n" if problems else "", flush=True)


def refuse(output: Path, problems: list[Problem], cure: str) -> None:
    """If a problem is marked as refused, write all problems to OUTPUT.problems.jsonl and raise an error.

    Otherwise, remove OUTPUT.problems.jsonl, which an earlier run may have written.

    Args:
        cure: Sentence that says what the user can do.
    """
    listing = output.with_name(f"{output.name}.problems.jsonl")
    listing.unlink(missing_ok=True)
    if refused := [problem for problem in problems if problem.done == "refused"]:
        write_whole(listing, json_lines(problem._asdict() for problem in problems))
        places = [f"{problem.where}: {problem.what}" for problem in refused[:SHOWN]]
        raise CorpusError("\n".join([*summary(refused), *places, f"{listing} lists all of them. {cure}"]))


def counted(problems: Iterable[Problem]) -> dict[str, dict[str, int]]:
    """Return the number of problems by kind and by how they were handled."""
    numbers: dict[str, dict[str, int]] = {}
    for (kind, done), number in sorted(Counter((problem.kind, problem.done) for problem in problems).items()):
        numbers.setdefault(kind, {})[done] = number
    return numbers


def summary(problems: Iterable[Problem]) -> list[str]:
    """Return a line for each split, kind and handling, with the number of problems and the first ids."""
    groups: dict[tuple[str, str, str], list[str]] = {}
    for problem in problems:
        # a bare number after a colon would look like a count
        name = f"id {problem.id}" if problem.id.isdecimal() else problem.id
        groups.setdefault((problem.split, problem.kind, problem.done), []).append(name)
    counts = {group: f"{group[0]}: {len(ids):,} x {group[1]}, {group[2]}" for group, ids in groups.items()}
    shown = {group: ", ".join([*dict.fromkeys(ids)][:SHOWN]) for group, ids in groups.items()}
    return [f"{counts[group]}: {shown[group]}{', ...' if len(ids) > SHOWN else ''}" for group, ids in groups.items()]


def described(path: Path) -> dict[str, str]:
    """Return the name and the sha256 of an input file."""
    return {"name": path.name, "sha256": digest(path)}


def json_lines(rows: Iterable[Any]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def write_json(path: Path, facts: Any) -> None:
    path.write_text(json.dumps(facts, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def write_items(prefix: Path, items: Iterable[list[int]], symbols: int) -> None:
    """Write PREFIX.bin and PREFIX.idx, which fairseq reads; `symbols` is the size of the dictionary."""
    with shard(prefix, dtype_for(symbols)) as writer:
        for item in items:
            writer.put(item)


def spread(work: Callable[[Item], Result], items: Sequence[Item], workers: int) -> Iterator[Result]:
    """Yield the result of `work` for each item, in order; several processes work on the items in chunks."""
    chunks = (items[begin : begin + CHUNK] for begin in range(0, len(items), CHUNK))
    for results in mapped(lambda chunk: [work(item) for item in chunk], chunks, workers):
        yield from results


# --- dictionaries


@dataclass(frozen=True)
class Dictionary:
    """Hold a dictionary of pieces.

    Args:
        symbols: Symbols in the order of their ids, which begin after fairseq's four special symbols.
        counts: Count of each symbol.
        contents: Content of tokenizer.json, or None.
    """

    symbols: list[str]
    counts: list[int]
    contents: dict[str, Any] | None = None

    def __len__(self) -> int:
        return len(self.symbols) + len(SPECIALS)

    def ids(self) -> dict[str, int]:
        """Return the id of each piece, without special symbols."""
        named = enumerate(self.symbols, start=len(SPECIALS))
        return {symbol: number for number, symbol in named if symbol not in TAKEN}

    def write(self, *paths: Path) -> None:
        """Write dict.txt to these paths."""
        text = "".join(f"{symbol} {count}\n" for symbol, count in zip(self.symbols, self.counts, strict=True))
        for path in paths:
            path.write_text(text, encoding="utf-8")


def pretrained(source: Path, files: str | None, flag: str, hint: str = "") -> Dictionary:
    """Return the dictionary and the tokenizer of a Hugging Face folder or a fairseq checkpoint, with fairseq's ids.

    Args:
        files: File or folder of the tokenizer, if it is not in `source`.
        flag: Option that names the source in errors.
        hint: Advice for the user, appended to errors.
    Raises:
        CorpusError: The model or its vocabulary is missing, or the vocabulary does not fit the model's settings.
    """
    with readable(source, flag, hint):
        from fairseq_posenc.hub import vocabulary  # takes seconds, which --help does not need

        symbols, contents = vocabulary.with_tokenizer(source, Path(files) if files else None)
    own = symbols[len(SPECIALS) :]
    return Dictionary(own, [1] * len(own), contents)


@contextmanager
def readable(source: Path, flag: str, hint: str = "") -> Iterator[None]:
    """Replace errors of the block about a model by errors that name the option; hide the messages of imports."""
    from fairseq_posenc.compat.checkpoints import CheckpointError

    before = logging.root.manager.disable
    logging.disable(logging.INFO)
    try:
        yield
    except (CheckpointError, ValueError) as error:
        raise CorpusError(f"{flag} {source}: {str(error).rstrip('.')}.{hint}") from None
    finally:
        logging.disable(before)
