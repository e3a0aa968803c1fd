"""Check a folder of parallel text line by line, and copy it to the file names that later steps read.

The input files may have other names and may be gzipped. The output files have names such as train.en and valid.de.
Lines that a later program would drop, shift or misread are refused, with file and line number.
"""

import argparse
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import repeat, zip_longest
from pathlib import Path
from typing import NamedTuple

from fairseq_posenc.core.reading import NotTextError, decoded
from fairseq_posenc.core.writing import whole_folder
from recipes.lib.lines import raw_lines

SPLITS = ("train", "valid", "test")
SHOWN = 5  # number of bad lines that are reported one by one


class Pair(NamedTuple):
    """Hold a pair of sentences, what is wrong with it (None for a good pair), and the length of its longer side."""

    lines: Sequence[str]
    problem: str | None
    length: int


def write_good(pairs: Iterable[Pair], paths: Sequence[Path], drop: bool, longest: int = 0) -> None:
    """Write the good pairs with at most this length (0: any length) to two files, and print the numbers of pairs.

    Raises:
        SystemExit: There are bad pairs that may not be left out, or no good pairs.
    """
    split, bad, written, longer = paths[0].stem, list[str](), 0, 0
    with ExitStack() as stack:
        files = [stack.enter_context(path.open("w", encoding="utf-8", newline="\n")) for path in paths]
        for pair in pairs:
            if pair.problem:
                bad.append(pair.problem if len(bad) < SHOWN else "")
            elif longest and pair.length > longest:
                longer += 1
            else:
                written += 1
                for file, line in zip(files, pair.lines, strict=True):
                    file.write(line + "\n")
    if bad and not (drop and split == "train"):
        advice = ", or leave bad pairs out with --bad-lines drop" if split == "train" else ""
        last = f"{split}: number of bad pairs: {len(bad)}. Correct the files{advice}."
        raise SystemExit("\n".join(f"error: {text}" for text in [*bad[:SHOWN], last]))
    counts = f"{split}: {written:,} pairs are written, {len(bad):,} bad pairs and {longer:,} long pairs are left out"
    print("\n".join([*(f"left out: {text}" for text in bad[:SHOWN]), counts]))
    if not written:
        raise SystemExit(f"error: {split}: there is no good pair that is short enough. Allow longer pairs.")


def side(prefix: Path, language: str) -> Path:
    """Return the plain or gzipped file of a language."""
    plain = Path(f"{prefix}.{language}")
    return plain if plain.is_file() else Path(f"{plain}.gz")


def fault(line: bytes, path: Path, number: int) -> str | None:
    """Return where and why a line is bad and what to do about it, or None for a good line."""
    where, name = f"{path}:{number}", path.name
    if line.endswith(b"\r"):
        return f"{where}: the line ends in CR LF. Convert the file with: sed -i 's/\\r$//' {name}"
    try:
        text = decoded(line, path, number)
    except NotTextError as error:
        return str(error)
    if "\r" in text or "\0" in text:
        return f"{where}: the line contains a CR or NUL character, which splits lines in some programs. Remove it."
    if number == 1 and text.startswith("\ufeff"):
        return f"{where}: the file begins with a byte order mark. Remove it: sed -i '1s/^\\xef\\xbb\\xbf//' {name}"
    return None if text.strip() else f"{where}: the line is empty. Remove the line from both files."


def read_pairs(paths: Sequence[Path], limit: int) -> Iterator[Pair]:
    """Yield the pairs, with lengths in words. Lines after `limit` (0: none) are only counted.

    Raises:
        SystemExit: One file is shorter, so the files are probably misaligned from the first line on.
    """
    first, number = "", 0
    for number, lines in enumerate(zip_longest(*map(raw_lines, paths)), start=1):
        if None in lines:
            short, long = paths if lines[0] is None else paths[::-1]
            rule = "Every line must translate the line with the same number in the other file."
            last = f"error: {short}: the file ends after line {number - 1}, but {long} continues. {rule}"
            raise SystemExit(first + last)  # a file in UTF-16 has another number of lines
        if not limit or number <= limit:
            problem = next(filter(None, map(fault, lines, paths, repeat(number))), None)
            first = first or (f"error: {problem}\n" if problem else "")
            texts = [line.decode(errors="replace") for line in lines]
            yield Pair(texts, problem, max(len(text.split()) for text in texts))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    option = parser.add_argument
    option("--folder", type=Path, required=True, metavar="DIR", help="Folder with the parallel text.")
    option("--output", type=Path, required=True, metavar="DIR", help="Folder for the checked text.")
    option("--languages", nargs=2, required=True, metavar="NAME", help="Codes of the source and the target language.")
    option("--test-set", default="test", metavar="NAME", help="Name of the test files, without the language suffix.")
    text = "Whether bad training pairs are refused or left out."
    option("--bad-lines", choices=("refuse", "drop"), default="refuse", help=text)
    option("--limit", type=int, default=0, metavar="N", help="Maximum number of training pairs (0: all).")
    text = "Leave out training and validation pairs with more words per side (0: keep all lengths)."
    option("--longest", type=int, default=0, metavar="N", help=text)
    options = parser.parse_args()
    valid = "val" if any(options.folder.glob("val.*")) else "valid"
    prefixes = [options.folder / name for name in ("train", valid, options.test_set)]
    sides = [[side(prefix, language) for language in options.languages] for prefix in prefixes]
    with whole_folder(options.output) as partial:
        for split, files in zip(SPLITS, sides, strict=True):
            paths = [partial / f"{split}.{language}" for language in options.languages]
            pairs = read_pairs(files, options.limit * (split == "train"))
            write_good(pairs, paths, options.bad_lines == "drop", options.longest * (split != "test"))


if __name__ == "__main__":
    main()
