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

import json
import sys
from pathlib import Path

import command
from corpora import lines
from shared import CorpusError, whole_folder

UNKNOWN = "<unk>"
#: Words that fairseq, or a reader of its output, would take for a special symbol, and the meaning of that symbol.
TAKEN = {
    "<s>": "fairseq's beginning of a sentence",
    "<pad>": "fairseq's padding, which is never scored",
    "</s>": "fairseq's end of a line",
    "<eos>": "the end of a line, which fairseq adds to each line",
}


def main(arguments: list[str]) -> int:
    parser = command.parser("prepare_words.py", __doc__ or "", "")
    add = parser.add_argument
    add("--text", type=Path, required=True, metavar="DIR", help="Folder with the text of the three splits.")
    add("--output", type=Path, required=True, metavar="DIR", help="Folder to write.")
    text = "Number of types (different words) that the training text must have, including <unk> and <eos> "
    text += "(default: any number)."
    add("--types", type=int, default=0, metavar="N", help=text)
    options = parser.parse_args(arguments)
    return command.exit_status(lambda: prepare(options.text, options.output, options.types))


def prepare(folder: Path, output: Path, types: int) -> None:
    """Write the output folder, or leave it unchanged if an error occurs.

    Raises:
        CorpusError: A split is missing, empty or contains a special symbol, or the number of types is not `types`.
    """
    if output.resolve() in (folder.resolve(), *folder.resolve().parents):
        raise CorpusError(f"--output {output}: this would replace the text in {folder}. Name another folder.")
    names = {split: (f"wiki.{split}.tokens", f"{split}.txt") for split in ("train", "valid", "test")}
    cure = "Give the text of each split one of its names."
    files = {split: path for split, both in names.items() if (path := lines.only_file(folder, both, cure))}
    with whole_folder(output) as partial:
        known: set[str] = set()
        splits = {split: copy(path, partial / f"{split}.txt", known, split) for split, path in files.items()}
        number = len(known | {UNKNOWN}) + 1  # <eos>
        if types and number != types:
            why = "The text is incomplete, or it is not tokenised (wiki.*.raw instead of wiki.*.tokens)."
            what = f"the text has {number:,} types (including <unk> and <eos>), but --types is {types:,}"
            raise CorpusError(f"{files['train']}: {what}. {why} Fetch it again, or leave out --types.")
        (partial / "counts.json").write_text(json.dumps({"types": number, "splits": splits}, indent=1) + "\n", "utf-8")
    for split, count in splits.items():
        print(f"{split}: {count['lines']:,} lines, {count['tokens']:,} tokens, {count['unknown']:,} unknown words")
    print(f"The training text has {number:,} types. Types and tokens include <eos>.")


def copy(path: Path, target: Path, known: set[str], split: str) -> dict[str, int]:
    """Copy a split with single spaces between words, add training words to `known`, and return the counts.

    Raises:
        CorpusError: The file contains a special symbol, or has no words.
    """
    count = {"lines": 0, "tokens": 0, "unknown": 0}
    with target.open("w", encoding="utf-8", newline="\n") as out:
        for line, text in lines.of_file(path):
            words = text.split()
            out.write(" ".join(words) + "\n")
            for word in TAKEN.keys() & set(words):
                raise CorpusError.at(path, line, f"the word {word} stands for {TAKEN[word]}. Replace it in the text.")
            if split == "train":
                known.update(words)
            count["lines"] += 1
            count["tokens"] += len(words) + 1
            count["unknown"] += sum(word == UNKNOWN or word not in known for word in words)
    if count["tokens"] == count["lines"]:
        raise CorpusError(f"{path}: the file has no words. Give the {split} text, or fetch the file again.")
    return count


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
