#!/usr/bin/env python3
"""Fetch corpora; see `fetch.py --help`. `sources.tsv` lists the corpora, and `fetching/` holds the implementation."""

from __future__ import annotations

import argparse
import re
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import command
from fetching import listing, sources
from fetching.errors import DiskFullError, FetchError, OverLimitError
from fetching.fetcher import Fetcher, find_own
from fetching.record import Record, only_one
from fetching.sources import Source
from fetching.transfer import Policy
from fetching.unpack import target_of

HERE = Path(__file__).resolve().parent
DESCRIPTION = """\
Fetches the files of corpora, checks their size and sha256, and unpacks them: OUTPUT/CORPUS/FILE and, beside it,
the same without its ending. Run again it goes on where it was, and does nothing when all is there."""
EXAMPLES = """\
examples:
  fetch.py --list                                what there is, with sizes and licences
  fetch.py wmt18 squad                           two corpora into data/raw
  fetch.py glue/MRPC* 'c4/*validation*'          some files of a corpus
  fetch.py c4 --limit 2GB --no-unpack            as many whole files as fit into 2 GB
  fetch.py wmt18 --from ~/corpora                the published files, from a folder of your own
  fetch.py https://example.org/corpus.tgz        any file; its hash is recorded at the first fetch
"""
UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


@dataclass
class Limit:
    """The number of files, or of bytes, that may still be fetched; files are always fetched whole."""

    files: int | None = None
    bytes: int | None = None

    def admits(self, size: int | None) -> bool:
        """Return whether one more file is allowed; a file of unknown size is allowed at first."""
        return self.files != 0 and (self.bytes is None or size is None or size <= self.bytes)

    def take(self, size: int) -> None:
        self.files = None if self.files is None else self.files - 1
        self.bytes = None if self.bytes is None else self.bytes - size


def limit(text: str) -> Limit:
    """Read `--limit`: `3` are files; `500M`, `2GB` and `1000B` are bytes."""
    match = re.fullmatch(r"(\d+)([KMGT]?)(B?)", text.strip().upper())
    if match is None or int(match[1]) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a number of files (3) nor of bytes (500M, 2GB, 1000B)")
    if match[2] or match[3]:
        return Limit(bytes=int(match[1]) * UNITS[match[2]])
    return Limit(files=int(match[1]))


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = command.parser("fetch.py", DESCRIPTION, EXAMPLES)
    add = parser.add_argument
    add("wanted", nargs="*", metavar="CORPUS|CORPUS/FILE|URL")
    add("--output", type=Path, default=Path("data/raw"), metavar="DIR", help="default: data/raw")
    add("--list", action="store_true", help="list the files, fetch nothing")
    add("--json", action="store_true", help="with --list: one list of flat objects, a file each")
    add("--limit", type=limit, metavar="N|BYTES", help="files (3) or bytes (500M)")
    add("--no-unpack", dest="unpack", action="store_false", help="leave archives as they are")
    add("--from", dest="own", type=Path, metavar="FOLDER", help="copy from there, download nothing")
    add("--sources", type=Path, default=HERE / "sources.tsv", metavar="FILE", help="another list")
    add("--retries", type=int, default=5, metavar="N", help="attempts in a row without progress")
    add("--timeout", type=float, default=60.0, metavar="S", help="seconds to wait for a byte")
    add("--dry-run", action="store_true", help="print what would be fetched, touch nothing")
    options = parser.parse_args(arguments)
    if not options.wanted and not options.list:
        parser.error("name a corpus or an address; --list shows the corpora")
    if options.retries < 0 or options.timeout <= 0:
        parser.error("--retries must be at least 0, and --timeout more than 0")
    if options.json and not options.list:
        parser.error("--json goes with --list")
    return options


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    try:
        known = sources.read(options.sources)
        chosen = sources.choose(options.wanted, known) if options.wanted else known
        if options.list:
            return listing.show(chosen, options.output, as_json=options.json, by_file=bool(options.wanted))
        if options.dry_run:
            return dry_run(chosen, options)
        if options.own and not options.own.is_dir():
            raise FetchError(f"--from {options.own}: no such folder")
        with only_one(options.output):
            return fetch(chosen, options)
    except (FetchError, OSError) as error:
        return fail(error)
    except KeyboardInterrupt:
        print("interrupted; run it again to go on from here", file=sys.stderr)
        return 130


def dry_run(chosen: list[Source], options: argparse.Namespace) -> int:
    for source in within(chosen, options.limit or Limit()):
        path = options.output / source.path
        origin = find_own(options.own, source) or f"nothing in {options.own}" if options.own else " ".join(source.urls)
        print(f"{path}  <-  {origin}")
        if options.unpack and (target := target_of(source.name)):
            print(f"{path.with_name(target)}  <-  unpacked")
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
    """Fetch all chosen files, report failures at once, and return the exit status: 1 if a file failed."""
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
        print(f"--limit: {fetched} of {len(chosen)} files", flush=True)
    if not fetched and not failed:
        return fail("--limit lets no file through; give it a larger one")
    print(f"{fetched} of {len(chosen)} files are in {options.output}", flush=True)
    return 1 if failed else 0


def fail(error: object) -> int:
    print(f"error: {error}", file=sys.stderr, flush=True)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
