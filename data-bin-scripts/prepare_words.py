#!/usr/bin/env python3
"""Check a corpus of words in three splits, and prepare it for fairseq-preprocess --only-source.

The folder --text holds wiki.{train,valid,test}.tokens or {train,valid,test}.txt, plain or .gz. The program writes
{train,valid,test}.txt and counts.json into the folder --output. The program follows the conventions of published
perplexities on WikiText:
- Words are separated by spaces.
- Each line, even an empty one, ends with <eos>; fairseq-preprocess adds this symbol, and calls it </s>.
- The vocabulary consists of the words of the training text.
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
#: Words that fairseq, or a reader of its output, would take for a special symbol, and the meaning of that symbol.
TAKEN = {
    "<s>": "fairseq's beginning of a sentence",
    "<pad>": "fairseq's padding, which is never scored",
    "</s>": "fairseq's end of a line",
    "<eos>": "the end of a line, which fairseq adds to each line",
}


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--text", type=Path, required=True, metavar="DIR", help="Folder with the text of the three splits.")
    add("--output", type=Path, required=True, metavar="DIR", help="Folder to write.")
    text = "Number of types (different words) that the training text must have, including <unk> and <eos> "
    text += "(default: any number)."
    add("--types", type=int, default=0, metavar="N", help=text)
    options = parser.parse_args(arguments)

    def work() -> None:
        counts = prepare(options.text, options.output, options.types)
        for split, count in counts["splits"].items():
            tokens = f"{count['tokens']:,} tokens (including <eos>)"
            print(f"{split}: {count['lines']:,} lines, {tokens}, {count['unknown']:,} unknown words")
        print(f"The training text has {counts['types']:,} types (including <eos> and <unk>).")

    return command.exit_status(work)


def prepare(folder: Path, output: Path, types: int) -> dict[str, Any]:
    """Write the output folder, or leave it unchanged if an error occurs.

    Returns:
        The number of different words in the training text, and for each split the numbers of lines, tokens and unknown
            words.
    Raises:
        CorpusError: A split is missing, empty or contains a special symbol, or the number of types is not `types`.
    """
    files = {split: find(folder, split) for split in SPLITS}
    if output.resolve() in (folder.resolve(), *folder.resolve().parents):
        raise CorpusError(f"--output {output}: this would replace the text in {folder}. Name another folder.")
    with whole_folder(output) as partial:
        known: set[str] = set()
        splits = {split: copy(path, partial / f"{split}.txt", known, split) for split, path in files.items()}
        number = len(known | {UNKNOWN}) + 1  # <eos>
        if types and number != types:
            raise CorpusError(
                f"{files['train']}: the text has {number:,} types (including <unk> and <eos>), but --types is "
                f"{types:,}. The text is incomplete, or it is not tokenised (wiki.*.raw instead of "
                "wiki.*.tokens). Fetch the text again, or leave out --types if the text is your own."
            )
        counts = {"types": number, "splits": splits}
        (partial / "counts.json").write_text(json.dumps(counts, indent=1) + "\n", encoding="utf-8")
    return counts


def find(folder: Path, split: str) -> Path:
    """Return the file of a split; prefer a plain file to a compressed one, because the downloader keeps both.

    Raises:
        CorpusError: The split has no file, or two files of different names.
    """
    if not folder.is_dir():
        raise CorpusError(f"{folder}: there is no such folder. Give the folder with the three splits.")
    names = (f"wiki.{split}.tokens", f"{split}.txt")
    files = [path for name in names if (path := there(folder / name))]
    if not files:
        others = ", ".join(sorted(path.name for path in folder.iterdir())[:10]) or "nothing"
        raise CorpusError(
            f"{folder}: the folder holds {others}, but not {' or '.join(names)} (plain or .gz). Give the "
            f"file of your {split} text one of these names. Separate the words of the text by spaces."
        )
    if len(files) > 1:
        raise CorpusError(
            f"{folder}: the folder has both {names[0]} and {names[1]}. Move one of these files elsewhere."
        )
    return files[0]


def copy(path: Path, target: Path, known: set[str], split: str) -> dict[str, int]:
    """Copy a split with single spaces between words, add training words to `known`, and return the counts.

    Raises:
        CorpusError: The file contains a special symbol, or has no words.
    """
    count = {"lines": 0, "tokens": 0, "unknown": 0}
    has_words = False
    with target.open("w", encoding="utf-8", newline="\n") as out:
        for line, text in lines.of_file(path):
            words = text.split()
            out.write(" ".join(words) + "\n")
            for word in TAKEN.keys() & set(words):
                raise CorpusError.at(
                    path,
                    line,
                    f"the word {word} stands for {TAKEN[word]}. Remove this word from the text, or replace it by "
                    "another word.",
                )
            if split == "train":
                known.update(words)
            count["lines"] += 1
            count["tokens"] += len(words) + 1
            count["unknown"] += sum(word == UNKNOWN or word not in known for word in words)
            has_words = has_words or bool(words)
    if not has_words:
        raise CorpusError(f"{path}: the file has no words. Give the {split} text, or fetch the file again.")
    return count


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
