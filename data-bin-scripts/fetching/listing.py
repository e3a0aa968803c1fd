"""Print the files that can be fetched (`--list`)."""

from __future__ import annotations

import json
from pathlib import Path

from .sources import Source


def show(chosen: list[Source], output: Path, as_json: bool, by_file: bool) -> int:
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
