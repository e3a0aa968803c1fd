#!/usr/bin/env python3
"""Fetch corpora; see `fetch.py --help`. `sources.tsv` lists the corpora, and `fetching/` holds the implementation."""

from __future__ import annotations

import argparse
import json
import re
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import command
from fetching import sources
from fetching.errors import DiskFullError, FetchError, OverLimitError
from fetching.fetcher import Fetcher, find_own
from fetching.record import Record, only_one
from fetching.sources import Source
from fetching.transfer import Policy
from fetching.unpack import target_of
from shared import visible

HERE = Path(__file__).resolve().parent
DESCRIPTION = """\
Download the files of published corpora, check their sizes and sha256, and unpack archives. Each file is stored as
DIR/CORPUS/FILE. The unpacked content of an archive is stored next to the archive, under the same name without the
ending. If a run was interrupted, the same command continues it. Files that are complete are not downloaded again."""
EXAMPLES = """\
examples:
  fetch.py --list                                list the corpora with their sizes and licences
  fetch.py wmt18 squad                           download two corpora into data/raw
  fetch.py glue/MRPC* 'c4/*validation*'          download some files of a corpus
  fetch.py c4 --limit 2GB --no-unpack            download as many whole files as fit into 2 GB
  fetch.py wmt18 --from ~/corpora                copy the published files from your own folder
  fetch.py https://example.org/corpus.tgz        download any file, and record its hash
"""
UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


@dataclass
class Limit:
    """Hold the number of files, or of bytes, that may still be fetched; files are always fetched whole."""

    files: int | None = None
    bytes: int | None = None

    def admits(self, size: int | None) -> bool:
        """Return whether another file of this size is allowed; a file of unknown size is checked during download."""
        return self.files != 0 and (self.bytes is None or size is None or size <= self.bytes)

    def take(self, size: int) -> None:
        self.files = None if self.files is None else self.files - 1
        self.bytes = None if self.bytes is None else self.bytes - size


def limit(text: str) -> Limit:
    """Read `--limit`: `3` is a number of files; `500M`, `2GB` and `1000B` are numbers of bytes."""
    match = re.fullmatch(r"(\d+)([KMGT]?)(B?)", text.strip().upper())
    if match is None or int(match[1]) == 0:
        raise argparse.ArgumentTypeError(
            f"{text!r} is neither a number of files, such as 3, nor a number of bytes, such as 500M or 2GB."
        )
    if match[2] or match[3]:
        return Limit(bytes=int(match[1]) * UNITS[match[2]])
    return Limit(files=int(match[1]))


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = command.parser("fetch.py", DESCRIPTION, EXAMPLES)
    add = parser.add_argument
    text = "Corpora, files of corpora (* matches any characters), or addresses to download."
    add("names", nargs="*", metavar="CORPUS|CORPUS/FILE|URL", help=text)
    text = "Folder for the downloaded files (default: data/raw)."
    add("--output", type=Path, default=Path("data/raw"), metavar="DIR", help=text)
    text = "List all corpora, or the files of the named corpora, and download nothing."
    add("--list", action="store_true", help=text)
    add("--json", action="store_true", help="With --list, print a JSON list with one object per file.")
    text = "Download at most N files, or files of at most BYTES in total, such as 500M or 2GB (default: no limit)."
    add("--limit", type=limit, metavar="N|BYTES", help=text)
    add("--no-unpack", dest="unpack", action="store_false", help="Do not unpack archives.")
    text = "Copy the published files from this folder instead of downloading them."
    add("--from", dest="own", type=Path, metavar="DIR", help=text)
    text = "List of the published files (default: sources.tsv next to this script)."
    add("--sources", type=Path, default=HERE / "sources.tsv", metavar="FILE", help=text)
    text = "Give up on an address after N retries in a row that receive no new byte (default: 5)."
    add("--retries", type=int, default=5, metavar="N", help=text)
    text = "Seconds to wait for the next byte before the connection is closed (default: 60)."
    add("--timeout", type=float, default=60.0, metavar="SECONDS", help=text)
    text = "Print each file that would be written and its source, and write nothing."
    add("--dry-run", action="store_true", help=text)
    options = parser.parse_args(arguments)
    if not options.names and not options.list:
        parser.error("Name at least one corpus, file or address. --list shows the corpora.")
    if options.retries < 0:
        parser.error("--retries must be at least 0.")
    if options.timeout <= 0:
        parser.error("--timeout must be greater than 0.")
    if options.json and not options.list:
        parser.error("--json can only be used with --list.")
    return options


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    try:
        known = sources.read(options.sources)
        chosen = sources.choose(options.names, known) if options.names else known
        if options.list:
            return show(chosen, options.output, as_json=options.json, by_file=bool(options.names))
        if options.dry_run:
            return dry_run(chosen, options)
        if options.own and not options.own.is_dir():
            raise FetchError(
                f"--from {options.own}: there is no such folder. Give the folder with your published files."
            )
        with only_one(options.output):
            return fetch(chosen, options)
    except (FetchError, OSError) as error:
        return fail(error)
    except KeyboardInterrupt:
        print(command.RESUME, file=sys.stderr)
        return 130


def show(chosen: list[Source], output: Path, as_json: bool, by_file: bool) -> int:
    """Print the files that can be fetched."""
    if as_json:
        rows = [_row(source, output) for source in chosen]
        print(json.dumps(rows, indent=1, ensure_ascii=False))
    elif by_file:
        print("\n".join(f"{s.path}\t{_size([s])}\t{s.licence}\t{s.remarks}" for s in chosen))
    else:
        for corpus in dict.fromkeys(source.corpus for source in chosen):
            files = [source for source in chosen if source.corpus == corpus]
            licences = "; ".join(dict.fromkeys(source.licence for source in files))
            print(f"{corpus:14} {len(files):5} files  {_size(files):>14}  {licences}")
    return 0


def _row(source: Source, output: Path) -> dict[str, object]:
    row: dict[str, object] = {"corpus": source.corpus, "file": source.name, "bytes": source.size}
    row |= {"sha256": source.sha256, "md5": source.md5, "urls": " ".join(source.urls), "licence": source.licence}
    return row | {"remarks": source.remarks, "there": (output / source.path).exists()}


def _size(files: list[Source]) -> str:
    known = sum(source.size or 0 for source in files)
    unknown = any(source.size is None for source in files)
    return "size unknown" if not known else f"{'> ' if unknown else ''}{known / 1e6:,.1f} MB"


def dry_run(chosen: list[Source], options: argparse.Namespace) -> int:
    for source in within(chosen, options.limit or Limit()):
        path = options.output / source.path
        own = options.own and (find_own(options.own, source) or f"missing in {options.own}")
        print(f"{path}  <-  {own or ' '.join(source.urls)}")
        if options.unpack and (target := target_of(source.name)):
            print(f"{path.with_name(target)}  <-  unpacked from {path.name}")
    return 0


def within(chosen: list[Source], left: Limit) -> list[Source]:
    """Return the sources whose published sizes are within the limit."""
    admitted = []
    for source in chosen:
        if left.admits(source.size):
            admitted.append(source)
            left.take(source.size or 0)
    return admitted


def fetch(chosen: list[Source], options: argparse.Namespace) -> int:
    """Fetch all chosen files, report each failure when it occurs, and return 1 if a file failed, otherwise 0."""
    fetcher = Fetcher(options.output, Record(options.output), options.own, options.unpack)
    left, failed, fetched = options.limit or Limit(), 0, 0
    policy = Policy(options.retries, options.timeout)
    for source in chosen:
        if not left.admits(source.size):
            continue
        try:
            left.take(fetcher.get(source, replace(policy, most=left.bytes)))
            fetched += 1
        except OverLimitError as error:
            print(error, flush=True)
        except DiskFullError:
            raise
        except FetchError as error:
            failed += fail(error)
    if fetched + failed < len(chosen):
        print(f"--limit: {fetched} of {len(chosen)} files were fetched", flush=True)
    if not fetched and not failed:
        return fail("--limit: every file is larger than the limit. Give a larger limit.")
    print(f"{fetched} of {len(chosen)} files are in {options.output}", flush=True)
    return 1 if failed else 0


def fail(error: object) -> int:
    print(f"error: {visible(error)}", file=sys.stderr, flush=True)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
