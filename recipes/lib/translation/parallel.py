"""Check a folder of parallel text, line by line, and lay it out as every later stage reads it.

From FOLDER with NAME.LANGUAGE (plain or .gz) for training, validation and test: OUTPUT/train.en, OUTPUT/valid.de, ...
What would be dropped, shifted or read wrongly by a later program is refused here, with the file and the line.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice, zip_longest
from pathlib import Path

from tqdm import tqdm

from recipes.lib.lines import raw_lines
from recipes.lib.package import whole_folder, write_whole

SHOWN = 5  # problems that are told one by one
SPLITS = ("train", "valid", "test")
COUNTS = "counts.json"


@dataclass(frozen=True)
class Problem:
    kind: str
    where: str
    what: str


@dataclass
class Problems:
    """Those of one pair of files; only the training set may do without a pair."""

    drop: bool
    found: list[Problem] = field(default_factory=list)
    count: Counter[str] = field(default_factory=Counter)
    pairs: int = 0

    @property
    def kinds(self) -> str:
        return ", ".join(f"{number} {kind}" for kind, number in self.count.items())

    def add(self, problems: list[Problem]) -> None:
        self.found += problems[: SHOWN - len(self.found)]
        self.count.update(problem.kind for problem in problems)
        self.pairs += bool(problems)


def side(folder: Path, name: str, language: str) -> Path:
    """The file of one language, plain or gzipped; the downloader leaves both.

    Raises:
        SystemExit: none is there, or both with different text.
    """
    plain = folder / f"{name}.{language}"
    there = [path for path in (plain, plain.with_name(plain.name + ".gz")) if path.is_file()]
    if len(there) == 2 and any(one != other for one, other in zip_longest(*map(raw_lines, there))):
        raise SystemExit(f"error: {plain} and {plain.name}.gz are not the same text: remove one of the two")
    if not there:
        raise SystemExit(f"error: {plain}: no such file, nor {plain.name}.gz; {advice(folder, name, language)}")
    return there[0]


def advice(folder: Path, name: str, language: str) -> str:
    if not folder.is_dir():
        return f"{folder} is no folder: name one with --corpus"
    names = [path.name.removesuffix(".gz") for path in sorted(folder.iterdir()) if path.is_file()]
    languages = [one.removeprefix(f"{name}.") for one in names if one.startswith(f"{name}.")]
    if languages:
        return f"the languages of {name} there: {', '.join(languages)} (--source-lang, --target-lang)"
    others = [one.removesuffix(f".{language}") for one in names if one.endswith(f".{language}")]
    if others:
        return f"the sets of {language} there: {', '.join(others)} (--train-set, --valid-set, --test-set)"
    return f"there are: {', '.join(names[:20]) or 'no files'}"


def faults(path: Path, number: int, line: bytes) -> list[Problem]:
    """What is wrong with one line, and what to do about it."""
    where = f"{path}: line {number}"
    if line.endswith(b"\r"):
        return [Problem("CRLF", where, f"ends in CR LF: convert the file, sed -i 's/\\r$//' {path.name}")]
    if b"\r" in line or b"\0" in line:
        return [Problem("control", where, "holds a CR or NUL, at which programs split or stop: remove it")]
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        what = f"not UTF-8 (byte {line[error.start]:#04x} at {error.start + 1}): iconv -f ENCODING -t UTF-8 {path.name}"
        return [Problem("UTF-8", where, what)]
    if number == 1 and text.startswith("\ufeff"):
        return [
            Problem(
                "byte order mark", where, f"begins with a byte order mark: sed -i '1s/^\\xef\\xbb\\xbf//' {path.name}"
            )
        ]
    if not text.strip():
        return [Problem("empty", where, "empty: remove the line from both files")]
    return []


def pairs(sides: list[Path], problems: Problems, limit: int) -> Iterator[tuple[bytes, bytes]]:
    """The pairs without fault; the others go into `problems`.

    Raises:
        SystemExit: an empty file, or one that ends before the other.
    """
    number = 0
    lines = zip_longest(*map(raw_lines, sides))
    for number, pair in enumerate(islice(lines, limit or None), start=1):
        if None in pair:
            short, long = sides if pair[0] is None else sides[::-1]
            if number == 1:
                raise SystemExit(
                    f"error: {short}: empty, and {long} is not: every line of one translates one of the other"
                )
            raise SystemExit(
                f"error: {short} ends after line {number - 1}, {long} goes on at line {number}: "
                f"every line of one translates the line of the same number of the other; mend or fetch them again"
            )
        found = [fault for path, line in zip(sides, pair, strict=True) for fault in faults(path, number, line)]
        problems.add(found)
        if not found:
            yield pair[0], pair[1]
    if not number:
        raise SystemExit(f"error: {sides[0]}: empty, as is {sides[1]}: give a file with sentences")


def copy(sides: list[Path], targets: list[Path], problems: Problems, limit: int, longest: int = 0) -> tuple[int, int]:
    """How many pairs were written, and how many are longer than `longest` words (0: none is)."""
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


def tell(problems: Problems, name: str) -> None:
    """Refuse, unless such pairs are left out."""
    if not problems.found or problems.drop:
        return
    lines = [f"error: {one.where}: {one.what}" for one in problems.found]
    cure = " (or --bad-lines drop, which leaves such pairs out of the training set)" if name == "train" else ""
    raise SystemExit(
        "\n".join([*lines, f"error: {name}: {problems.pairs} bad pairs ({problems.kinds}): mend them{cure}"])
    )


def lay_out(asked: argparse.Namespace, output: Path) -> dict[str, dict[str, object]]:
    """How many pairs each split has, and how many were left out of it."""
    languages = (asked.source_lang, asked.target_lang)
    names = {split: getattr(asked, f"{split}_set") for split in SPLITS}
    sides = {split: [side(asked.folder, name, language) for language in languages] for split, name in names.items()}
    counts: dict[str, dict[str, object]] = {}
    for split in SPLITS:
        problems = Problems(drop=split == "train" and asked.bad_lines == "drop")
        targets = [output / f"{split}.{language}" for language in languages]
        longest = asked.longest_words if split != "test" else 0
        written, longer = copy(sides[split], targets, problems, asked.limit if split == "train" else 0, longest)
        tell(problems, split)
        if not written:
            why = f": {longer} are longer than --longest-words {longest}" if longer else ""
            raise SystemExit(f"error: {sides[split][0]}: no pair is left{why}")
        counts[split] = {"pairs": written, "left out": problems.pairs, "because": problems.kinds}
        if longest:
            counts[split] |= {"longer": longer, "longest": longest}
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--source-lang", required=True)
    parser.add_argument("--target-lang", required=True)
    for split in SPLITS:
        parser.add_argument(f"--{split}-set", required=True, metavar="NAME", help="its files are NAME.LANGUAGE[.gz]")
    parser.add_argument("--bad-lines", choices=("refuse", "drop"), default="refuse", help="of the training set")
    parser.add_argument("--limit", type=int, default=0, help="pairs of training (0: all)")
    parser.add_argument(
        "--longest-words", type=int, default=0, help="of a side, between spaces, in training and validation (0: all)"
    )
    asked = parser.parse_args()
    with whole_folder(asked.output) as partial:
        write_whole(partial / COUNTS, json.dumps(lay_out(asked, partial), indent=1))


if __name__ == "__main__":
    main()
