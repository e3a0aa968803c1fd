#!/usr/bin/env python3
"""Fetch the files of published corpora; see `fetch.py --help`. `sources.tsv` lists the corpora.

requests handles redirects, proxies (HTTPS_PROXY) and certificates (REQUESTS_CA_BUNDLE).
"""

from __future__ import annotations

import csv
import gzip
import json
import re
import shutil
import sys
import tarfile
import time
import zipfile
import zlib
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import Any

import command
from shared import CorpusError, digest, locked, named_when_full, nearest, read_json, read_lines, write_whole

DESCRIPTION = """\
Download the files of published corpora, check their sizes and sha256, and unpack archives. Each file is stored as
DIR/CORPUS/FILE. The unpacked content of an archive is stored next to the archive, under the same name without the
ending. If a run was interrupted, the same command continues it. Files that are complete are not downloaded again."""
EXAMPLES = """\
examples:
  fetch.py --list                                list the files with their sizes and licences
  fetch.py wmt18 squad                           download two corpora into data/raw
  fetch.py glue/MRPC* 'c4/*validation*'          download some files of a corpus
  fetch.py 'c4/c4-train.0000[0-7]*' --no-unpack  download the first eight files of C4
"""
ARCHIVES = (".tar.gz", ".tar.xz", ".tar.bz2", ".tgz", ".tar", ".zip")
SHARDS = re.compile(r"\{(\d+)\.\.(\d+)\}")  # {00000..01023}, which a shell would expand in the same way
RECORD = "fetched.json"  # sha256, size and time of each file: an unchanged file is not hashed again
ATTEMPTS, PAUSE = 6, 1.0  # attempts in a row without a new byte; seconds before the second, doubled before each other
TIMEOUT = 60.0  # seconds without a byte
BROKEN = (tarfile.TarError, zipfile.BadZipFile, shutil.ReadError, gzip.BadGzipFile, zlib.error, EOFError)


@dataclass(frozen=True)
class Source:
    """Hold a line of sources.tsv; `sha256` and `bytes` are empty if they are not published."""

    corpus: str
    file: str
    urls: str
    sha256: str
    bytes: str
    licence: str
    remarks: str

    @property
    def path(self) -> str:
        return f"{self.corpus}/{self.file}"


def read(path: Path) -> Iterator[Source]:
    """Yield the files of a list such as sources.tsv."""
    rows = csv.DictReader(read_lines(path), delimiter="\t", quoting=csv.QUOTE_NONE)
    for row in rows:
        if rows.fieldnames != list(Source.__dataclass_fields__) or None in row or None in row.values():
            what = f"the columns must be {', '.join(Source.__dataclass_fields__)}, separated by tabs."
            raise CorpusError.at(path, rows.line_num, what)
        source = Source(**row)
        if not re.fullmatch(r"\w[\w.+-]*/\w[\w.+-]*", SHARDS.sub("0", source.path), re.ASCII):
            raise CorpusError.at(path, rows.line_num, "the corpus and the file must be plain names, without folders.")
        first, last = SHARDS.findall(source.file)[0] if SHARDS.search(source.file) else ("0", "0")
        for text in (str(number).zfill(len(first)) for number in range(int(first), int(last) + 1)):
            yield replace(source, file=SHARDS.sub(text, source.file), urls=SHARDS.sub(text, source.urls))


def choose(names: list[str], known: list[Source]) -> list[Source]:
    """Return the named files without duplicates; a name is `corpus` or `corpus/file`, in which `*` is allowed."""
    chosen: dict[Source, None] = {}
    for name in names:
        matching = [source for source in known if fnmatch(source.path, name if "/" in name else f"{name}/*")]
        if not matching:
            paths = [source.path for source in known if source.corpus == name.partition("/")[0]]
            raise CorpusError(f"{name}: unknown corpus or file{nearest(name, paths or {s.corpus for s in known})}")
        chosen.update(dict.fromkeys(matching))
    return list(chosen)


def fetch(source: Source, options: Namespace, record: dict[str, dict[str, Any]]) -> None:
    """Download a file, check it, and only then give it its name; unpack an archive."""
    path = options.output / source.path
    target = path.with_name(unpacked_name(path.name)) if options.unpack else path
    if path.exists():
        check(source, path, options, record)
    elif not (target.exists() and source.path in record):  # an archive may be deleted once it is unpacked
        path.parent.mkdir(parents=True, exist_ok=True)
        print(f"{source.path}: fetching", flush=True)
        part = path.with_name(f"{path.name}.part")
        download(source, part, options, record)
        part.replace(path)
    if not target.exists():
        unpack(path, target)
        print(f"{source.path}: unpacked to {target}", flush=True)


def check(source: Source, path: Path, options: Namespace, record: dict[str, dict[str, Any]], sent: str = "") -> None:
    """Compare a file with its published hash, or the one that its server sent or the record has, and record the hash.

    Raises:
        CorpusError: The size or the content is wrong.
    """
    known, facts = record.get(source.path, {}), path.stat()
    if source.bytes and facts.st_size != int(source.bytes):
        raise CorpusError(f"{path} has {facts.st_size:,} bytes instead of {int(source.bytes):,}. Delete the file.")
    if known.get("bytes") == facts.st_size and known.get("modified") == facts.st_mtime_ns:
        return
    sha256 = digest(path)
    expected = source.sha256 or sent or known.get("sha256", sha256)
    if sha256 != expected:
        cure = f"Delete the file, and its entry in {RECORD} if the publisher has changed it."
        raise CorpusError(f"{path}: the sha256 is {sha256} instead of {expected}. {cure}")
    record[source.path] = {"sha256": sha256, "bytes": facts.st_size, "modified": facts.st_mtime_ns}
    write_whole(options.output / RECORD, json.dumps(record, indent=1, sort_keys=True) + "\n")
    origin = "published" if source.sha256 or sent else "recorded; no hash is published"
    print(f"{source.path}: {facts.st_size:,} bytes, sha256 {sha256} ({origin})", flush=True)


def download(source: Source, part: Path, options: Namespace, record: dict[str, dict[str, Any]]) -> None:
    """Try the addresses in order until one delivers the right file; retry as long as new bytes arrive."""
    from requests import RequestException  # takes a while, which --help and --list do not need
    from urllib3.exceptions import HTTPError

    urls, problems, fruitless = source.urls.split(), list[str](), 0
    while urls:
        size = part.stat().st_size if part.exists() else 0
        try:
            return check(source, part, options, record, receive(source, urls[0], part))
        except CorpusError as error:
            part.unlink(missing_ok=True)  # a wrong file must not be continued
            problems.append(f"{urls.pop(0)}: {error}")
        except (RequestException, HTTPError) as error:
            fruitless = 0 if part.exists() and part.stat().st_size > size else fruitless + 1
            if fruitless < ATTEMPTS:
                time.sleep(PAUSE * 2**fruitless)
            else:
                problems.append(f"{urls.pop(0)}: {error}")
                fruitless = 0
    raise CorpusError(f"{'; '.join(problems)}. Run the command again, or put your own copy there.")


def receive(source: Source, url: str, part: Path) -> str:
    """Download a file, or the rest of it, and return the sha256 that the server sends (Hugging Face does), or "".

    Files without a hash are compressed and have checksums, which would show that a rest does not fit its beginning.
    """
    import requests
    from tqdm import tqdm

    begun = part.stat().st_size if part.exists() else 0
    if begun and str(begun) == source.bytes:
        return ""  # an earlier run ended after the last byte, before the check
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={begun}-"} if begun else {})
    with requests.get(url, headers=headers, stream=True, timeout=TIMEOUT) as response:
        if response.status_code == 416:
            part.unlink()  # the file on the server is shorter than the part: begin anew
        if response.status_code in (400, 401, 403, 404, 410, 451) or "html" in response.headers.get("Content-Type", ""):
            raise CorpusError(f"the server sent HTTP {response.status_code}, or a page instead of the file")
        response.raise_for_status()
        mode = "ab" if response.status_code == 206 else "wb"  # servers may ignore the request for a part
        total = int(response.headers.get("Content-Length") or 0) + (begun if mode == "ab" else 0)
        bar = tqdm(initial=begun, total=total, unit="B", unit_scale=True, desc=source.file, disable=None, leave=False)
        with bar, named_when_full(part, total or None), part.open(mode) as file:
            for block in response.raw.stream(1 << 16, decode_content=False):
                file.write(block)
                bar.update(len(block))
        sent = [answer.headers.get("X-Linked-Etag", "").strip('"') for answer in (*response.history, response)]
    return next((text for text in sent if re.fullmatch("[0-9a-f]{64}", text)), "")


def unpacked_name(name: str) -> str:
    """Return the name of the file or folder to which a file is unpacked; other files keep their name."""
    return next((name.removesuffix(end) for end in (*ARCHIVES, ".gz") if name.endswith(end)), name)


def unpack(archive: Path, target: Path) -> None:
    """Unpack an archive or a .gz file; if all lies in one top folder, leave that folder out of the paths.

    Raises:
        CorpusError: The archive is damaged, or an entry leads out of the folder.
    """
    box = target.with_name(f"{target.name}.partial")
    shutil.rmtree(box, ignore_errors=True)  # of a run that was killed
    content = box / "content"
    try:
        with named_when_full(target, partial=box):
            box.mkdir()
            if not archive.name.endswith(ARCHIVES):
                with gzip.open(archive) as packed, content.open("wb") as file:
                    shutil.copyfileobj(packed, file)
            elif archive.name.endswith(".zip"):
                with zipfile.ZipFile(archive) as zipped:
                    names = map(PurePosixPath, zipped.namelist())
                if bad := [name for name in names if name.is_absolute() or ".." in name.parts]:
                    raise tarfile.FilterError(f"{bad[0]} leads out of the archive")  # shutil would leave it out
                shutil.unpack_archive(archive, content)
            else:
                shutil.unpack_archive(archive, content, filter="data")
            shutil.rmtree(content / "__MACOSX", ignore_errors=True)  # icons and the like
            tops = list(content.iterdir()) if content.is_dir() else []
            (tops[0] if len(tops) == 1 and tops[0].is_dir() else content).rename(target)
    except BROKEN as error:
        raise CorpusError(f"{archive} cannot be unpacked ({error}). Delete it, or give --no-unpack.") from None
    finally:
        shutil.rmtree(box, ignore_errors=True)


def main(arguments: list[str]) -> int:
    options = parse(arguments)

    def work() -> None:
        known = list(read(options.sources))
        chosen = choose(options.names, known) if options.names else known
        if options.list:
            print("\n".join(f"{s.path}\t{s.bytes or '?'}\t{s.licence}\t{s.remarks}\t{s.urls}" for s in chosen))
            return
        options.output.mkdir(parents=True, exist_ok=True)
        failed = list[str]()
        with locked(options.output / ".lock", 0, f"waiting for another run that writes to {options.output}"):
            record = read_json(options.output / RECORD)
            for source in chosen:
                try:
                    fetch(source, options, record)
                except CorpusError as error:  # the other files are still fetched
                    failed.append(f"{source.path}: {error}")
        if failed:
            raise CorpusError("\nerror: ".join(failed))
        print(f"{len(chosen)} files are in {options.output}", flush=True)

    return command.exit_status(work, command.RESUME)


def parse(arguments: list[str]) -> Namespace:
    parser = command.parser("fetch.py", DESCRIPTION, EXAMPLES)
    add = parser.add_argument
    text = "Corpora, or files of corpora (* matches any characters)."
    add("names", nargs="*", metavar="CORPUS|CORPUS/FILE", help=text)
    text = "Folder for the downloaded files (default: data/raw)."
    add("--output", type=Path, default=Path("data/raw"), metavar="DIR", help=text)
    add("--list", action="store_true", help="List all files, or the named ones, and download nothing.")
    add("--no-unpack", dest="unpack", action="store_false", help="Do not unpack archives.")
    text = "List of the published files (default: sources.tsv next to this script)."
    add("--sources", type=Path, default=Path(__file__).with_name("sources.tsv"), metavar="FILE", help=text)
    options = parser.parse_args(arguments)
    if not options.names and not options.list:
        parser.error("Name at least one corpus or file. --list shows them.")
    return options


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
