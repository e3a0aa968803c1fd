"""Check a folder of parallel text line by line, and copy it to the file names that later stages read.

The input files may have other names and may be gzipped. The output files have names such as train.en and valid.de.
Lines that a later program would drop, shift or misread are refused, with file and line number.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path

from recipes.lib.lines import raw_lines
from recipes.lib.package import is_utf16, utf16_problem, whole_folder, write_whole

SHOWN = 5  # number of problems that are reported one by one
SPLITS = ("train", "valid", "test")
COUNTS = "counts.json"


@dataclass(frozen=True)
class Problem:
    """Describe a problem in a line of text.

    Attributes:
        kind: Short name of the problem; problems of the same kind are counted together.
        where: File and line of the problem.
        what: What is wrong, and what to do about it.
    """

    kind: str
    where: str
    what: str


@dataclass
class Problems:
    """Collect the problems in the lines of a split.

    Attributes:
        drop: Whether bad pairs are left out instead of refused, which is possible only in the training set.
        shown: The first problems, which are reported one by one.
        count: Number of problems by kind.
        pairs: Number of bad pairs.
    """

    drop: bool
    shown: list[Problem] = field(default_factory=list)
    count: Counter[str] = field(default_factory=Counter)
    pairs: int = 0

    @property
    def kinds(self) -> str:
        return ", ".join(f"{number} {kind}" for kind, number in self.count.items())

    def add(self, problems: list[Problem]) -> None:
        self.shown += problems[: SHOWN - len(self.shown)]
        self.count.update(problem.kind for problem in problems)
        self.pairs += bool(problems)


def side(folder: Path, name: str, language: str) -> Path:
    """Return the plain or gzipped file of a language. The plain and the gzipped file may both exist, because fetch.py
    keeps a .gz file after unpacking it.

    Raises:
        SystemExit: There is no file, or the two files have different text.
    """
    plain = folder / f"{name}.{language}"
    files = [path for path in (plain, plain.with_name(plain.name + ".gz")) if path.is_file()]
    if len(files) == 2 and any(line != other for line, other in zip_longest(*map(raw_lines, files))):
        raise SystemExit(f"error: {plain} and {plain.name}.gz have different text. Remove one of the two files.")
    if not files:
        raise SystemExit(
            f"error: {plain}: neither this file nor {plain.name}.gz exists. {advice(folder, name, language)}"
        )
    return files[0]


def advice(folder: Path, name: str, language: str) -> str:
    """Return a sentence that says which files the folder has, to explain a missing file."""
    if not folder.is_dir():
        return f"{folder} is not a folder. Name a folder with --corpus."
    names = [path.name.removesuffix(".gz") for path in sorted(folder.iterdir()) if path.is_file()]
    languages = [file.removeprefix(f"{name}.") for file in names if file.startswith(f"{name}.")]
    if languages:
        known = f"The folder has the set {name} in these languages: {', '.join(languages)}"
        return f"{known}. Set --source-lang and --target-lang to two of these languages."
    sets = [file.removesuffix(f".{language}") for file in names if file.endswith(f".{language}")]
    if sets:
        names_of_sets = f"The folder has these sets in {language}: {', '.join(sets)}"
        return f"{names_of_sets}. Name your sets with --train-set, --valid-set and --test-set."
    return f"The folder contains {', '.join(names[:20]) or 'no files'}."


def faults(path: Path, number: int, line: bytes) -> list[Problem]:
    """Return the problems of a line and the advice for each problem; the list is empty for a good line."""
    where, name = f"{path}:{number}", path.name
    if number == 1 and is_utf16(line):
        return [Problem("UTF-16", where, utf16_problem(name))]
    if line.endswith(b"\r"):
        return [Problem("CRLF", where, f"the line ends in CR LF. Convert the file with: sed -i 's/\\r$//' {name}")]
    if b"\r" in line or b"\0" in line:
        what = "the line contains a CR or NUL character, at which some programs split lines. Remove the character."
        return [Problem("control", where, what)]
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        what = f"the text is not UTF-8 (byte {line[error.start]:#04x} at position {error.start + 1}). "
        return [Problem("UTF-8", where, f"{what}Convert the file with: iconv -f ENCODING -t UTF-8 {name}")]
    if number == 1 and text.startswith("\ufeff"):
        what = f"the file begins with a byte order mark. Remove this mark with: sed -i '1s/^\\xef\\xbb\\xbf//' {name}"
        return [Problem("byte order mark", where, what)]
    if not text.strip():
        return [Problem("empty", where, "the line is empty. Remove the line from both files.")]
    return []


def pairs(sides: list[Path], problems: Problems, limit: int) -> Iterator[tuple[bytes, bytes]]:
    """Yield the good pairs, and add the problems of bad pairs to `problems`.

    Lines after `limit` are only counted: files of different lengths are probably misaligned from the first line on.

    Raises:
        SystemExit: A file is empty or shorter than the other file.
    """
    number = 0
    lines = zip_longest(*map(raw_lines, sides))
    for number, pair in enumerate(lines, start=1):
        if None in pair:
            short, long = sides if pair[0] is None else sides[::-1]
            rule = "Every line must translate the line with the same number in the other file."
            if number == 1:
                raise SystemExit(f"error: {short}: the file is empty, but {long} is not. {rule}")
            raise SystemExit(
                f"error: {short}: the file ends after line {number - 1}, but {long} continues. {rule} "
                "Correct the files or fetch them again."
            )
        if limit and number > limit:
            continue
        bad = [problem for path, line in zip(sides, pair, strict=True) for problem in faults(path, number, line)]
        problems.add(bad)
        if not bad:
            yield pair[0], pair[1]
    if not number:
        raise SystemExit(
            f"error: {sides[0]}: the file is empty, and {sides[1]} is empty, too. Both files must contain sentences."
        )


def copy(sides: list[Path], targets: list[Path], problems: Problems, limit: int, longest: int = 0) -> tuple[int, int]:
    """Copy the good pairs to the target files.

    Args:
        sides: The two files to read.
        targets: The two files to write.
        problems: Collector to which the problems of bad pairs are added.
        limit: Maximum number of pairs to read (0: all).
        longest: Maximum number of words per side; longer pairs are left out (0: no limit).
    Returns:
        The number of pairs that were written, and the number of pairs that were left out because they are too long.
    """
    from tqdm import tqdm  # imported here, because --help and --list must work without it

    written = longer = 0
    with targets[0].open("wb") as first, targets[1].open("wb") as second:
        for pair in tqdm(pairs(sides, problems, limit), desc=targets[0].stem, unit=" pairs", mininterval=5):
            if longest and max(len(line.decode("utf-8").split()) for line in pair) > longest:
                longer += 1
                continue
            first.write(pair[0] + b"\n")
            second.write(pair[1] + b"\n")
            written += 1
    return written, longer


def refuse_bad(problems: Problems, split: str) -> None:
    """Raise SystemExit with the problems of a split, unless bad pairs are left out."""
    if problems.shown and not problems.drop:
        lines = [f"error: {problem.where}: {problem.what}" for problem in problems.shown]
        raise SystemExit("\n".join([*lines, f"error: {bad_pairs(split, problems.pairs, f' ({problems.kinds})')}"]))


def bad_pairs(split: str, count: int, kinds: str = "") -> str:
    """Return the sentences that say how many pairs of a split are bad, and what to do about them."""
    drop = ", or leave bad pairs out with --bad-lines drop" if split == "train" else ""
    return f"{split}: number of bad pairs: {count}{kinds}. Correct the files{drop}."


def lay_out(arguments: argparse.Namespace, output: Path) -> dict[str, dict[str, object]]:
    """Write all splits, and return how many pairs of each split were written and left out."""
    languages = (arguments.source_lang, arguments.target_lang)
    names = {split: getattr(arguments, f"{split}_set") for split in SPLITS}
    sides = {split: [side(arguments.folder, name, code) for code in languages] for split, name in names.items()}
    counts: dict[str, dict[str, object]] = {}
    for split in SPLITS:
        problems = Problems(drop=split == "train" and arguments.bad_lines == "drop")
        targets = [output / f"{split}.{language}" for language in languages]
        longest = arguments.longest_words if split != "test" else 0
        limit = arguments.limit if split == "train" else 0
        written, longer = copy(sides[split], targets, problems, limit, longest)
        refuse_bad(problems, split)
        if not written:
            why = f" ({problems.kinds}). Correct the bad lines"
            if longer:
                why = f" within --longest-words {longest}. Increase this limit"
            raise SystemExit(f"error: {sides[split][0]}: the file has no good pair{why}.")
        counts[split] = {"pairs": written, "left out": problems.pairs, "because": problems.kinds}
        if longest:
            counts[split] |= {"longer": longer, "longest": longest}
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    option = parser.add_argument
    option("--folder", type=Path, required=True, metavar="DIR", help="Folder with the parallel text.")
    option("--output", type=Path, required=True, metavar="DIR", help="Folder for the checked text.")
    option("--source-lang", required=True, metavar="NAME", help="Code of the source language.")
    option("--target-lang", required=True, metavar="NAME", help="Code of the target language.")
    for split in SPLITS:
        option(
            f"--{split}-set",
            required=True,
            metavar="NAME",
            help="Name of the split's files, without the language suffix.",
        )
    text = "What to do with bad training pairs: refuse stops with a list, drop leaves them out."
    option("--bad-lines", choices=("refuse", "drop"), default="refuse", help=text)
    option("--limit", type=int, default=0, metavar="N", help="Maximum number of training pairs (0: all).")
    text = "Leave out training and validation pairs with more words per side (0: keep all lengths)."
    option("--longest-words", type=int, default=0, metavar="N", help=text)
    arguments = parser.parse_args()
    with whole_folder(arguments.output) as partial:
        write_whole(partial / COUNTS, json.dumps(lay_out(arguments, partial), indent=1))


if __name__ == "__main__":
    main()
