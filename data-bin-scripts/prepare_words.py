#!/usr/bin/env python3
"""Check a corpus of words in three splits, and prepare it for fairseq-preprocess --only-source.

FOLDER holds wiki.{train,valid,test}.tokens or {train,valid,test}.txt, plain or .gz. The program writes
OUTPUT/{train,valid,test}.txt and counts.json. It follows the conventions of WikiText's published perplexities:
- Words are separated by spaces.
- Each line, even an empty one, ends with an <eos>, which fairseq-preprocess adds as its </s>.
- The vocabulary is that of the training text.
- <unk> in the text is fairseq's own <unk>, and is scored like any word.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import command
from corpora import lines
from corpora.compressed import there
from corpora.errors import CorpusError
from shared import whole_folder

SPLITS = ("train", "valid", "test")
UNKNOWN = "<unk>"
#: words of the text that fairseq, or a reader of its output, would take for a special symbol
TAKEN = {
    "<s>": "fairseq's sign of a beginning",
    "<pad>": "fairseq's padding, which is never scored",
    "</s>": "fairseq's end of a line",
    "<eos>": "the end of a line, which is counted at each line already",
}


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--output", type=Path, required=True, metavar="FOLDER")
    parser.add_argument(
        "--types", type=int, default=0, help="that the training text must have, <unk> and <eos> too (0: any)"
    )
    asked = parser.parse_args(arguments)

    def work() -> None:
        counts = prepare(asked.text, asked.output, asked.types)
        for split, one in counts["splits"].items():
            print(f"{split}: {one['lines']:,} lines, {one['tokens']:,} tokens with <eos>, {one['unknown']:,} unknown")
        print(f"{counts['types']:,} types in train, <eos> and <unk> among them")

    return command.exit_status(work)


def prepare(folder: Path, output: Path, types: int) -> dict[str, Any]:
    """Write OUTPUT completely, or leave it as it was after an error.

    Returns:
        The number of types of the training text, and the lines, tokens and unknown words of each split.
    Raises:
        CorpusError: A split is missing, empty or contains a special symbol, or the number of types is not `types`.
    """
    files = {split: find(folder, split) for split in SPLITS}
    with whole_folder(output) as partial:
        known: set[str] = set()
        splits = {split: copy(path, partial / f"{split}.txt", known, split) for split, path in files.items()}
        number = len(known | {UNKNOWN}) + 1  # <eos>
        if types and number != types:
            raise CorpusError(
                f"{files['train']}: {number:,} types (with <unk> and <eos>), {types:,} are wanted: this is not the "
                "tokenised text (wiki.*.tokens, not raw), or not the whole of it; fetch it again, or leave out --types "
                "for a corpus of your own"
            )
        counts = {"types": number, "splits": splits}
        (partial / "counts.json").write_text(json.dumps(counts, indent=1) + "\n", encoding="utf-8")
    return counts


def find(folder: Path, split: str) -> Path:
    """Return the file of a split; a plain file comes before a compressed one, as the downloader keeps both.

    Raises:
        CorpusError: The split has no file, or two files of different names.
    """
    if not folder.is_dir():
        raise CorpusError(f"{folder}: no such folder")
    names = (f"wiki.{split}.tokens", f"{split}.txt")
    files = [path for name in names if (path := there(folder / name))]
    if not files:
        others = ", ".join(sorted(path.name for path in folder.iterdir())[:10]) or "nothing"
        raise CorpusError(
            f"{folder}: no {' or '.join(names)} (plain or .gz); there is: {others}. Rename your {split} text, of words "
            "with spaces between them, to one of these"
        )
    if len(files) > 1:
        raise CorpusError(f"{folder} has both {names[0]} and {names[1]}: move one of them elsewhere")
    return files[0]


def copy(path: Path, target: Path, known: set[str], split: str) -> dict[str, int]:
    """Copy a split with single spaces between words, and return its counts; add the words of training to `known`.

    Raises:
        CorpusError: The file contains a special symbol, or no word.
    """
    count = {"lines": 0, "tokens": 0, "unknown": 0}
    words_there = False
    with target.open("w", encoding="utf-8", newline="\n") as out:
        for line, text in lines.of_file(path):
            words = text.split()
            out.write(" ".join(words) + "\n")
            for word in TAKEN.keys() & set(words):
                raise CorpusError.at(path, line, f"the word {word} would be {TAKEN[word]}: remove it, or rename it")
            if split == "train":
                known.update(words)
            count["lines"] += 1
            count["tokens"] += len(words) + 1
            count["unknown"] += sum(word == UNKNOWN or word not in known for word in words)
            words_there = words_there or bool(words)
    if not words_there:
        raise CorpusError(f"{path}: no words in it: give the {split} text, or fetch it again")
    return count


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
