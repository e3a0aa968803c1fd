"""Turn parallel corpora, validation sets and test sets into the folder that the translation recipe reads."""

from __future__ import annotations

import json
import shutil
import unicodedata
from dataclasses import asdict
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from corpora.errors import CorpusError
from corpora.partial import RECORD, make
from corpora.processes import mapped
from shared import digest, write_whole
from tqdm import tqdm

from . import parts, report, sets
from .cleaning import PACKAGE, Cleaner, Settings, check_language
from .merge import Tally, merge, total
from .sources import Source

#: Version 1 kept lines without visible characters, and byte order marks of sets. Version 2 did not normalise the sets.
FORMAT = 3
HELD_OUT = ("valid", "test")
SPLITS = ("train", *HELD_OUT)


def prepare(sources: list[Source], output: Path, settings: Settings, workers: int) -> bool:
    """Write the output, unless it is already complete.

    Returns:
        True if the output was written, False if it was already complete.
    Raises:
        CorpusError: The text or an option is not valid.
    """
    if settings.language_id:
        check_language(settings.languages)
    sources = [source for split in SPLITS for source in _of(sources, split)]
    files = [_facts(source) for source in sources]
    identity = {"options": asdict(settings), "files": files, "versions": _versions(settings)}

    def work(folder: Path) -> Path:
        result = folder / "corpus"
        shutil.rmtree(result, ignore_errors=True)
        result.mkdir()
        # The sets come first, so that their errors appear before the long work.
        held_out = {split: sets.write(_of(sources, split), _sides(result, split, settings)) for split in HELD_OUT}
        corpora = _of(sources, "train")
        _clean(folder / "parts", corpora, settings, workers)
        targets = _sides(result, "train", settings)
        tallies = merge(folder / "parts", corpora, targets, duplicates=settings.duplicates == "keep")
        if not total(tallies)["kept"]:
            why = ", ".join(f"{tally.counts[step]:,} {step}" for tally in tallies for step in tally.lines)
            cure = "Give other text, or relax the cleaning options."
            raise CorpusError(f"{corpora[0].files[0]}: the cleaning left out all training pairs ({why}). {cure}")
        _record(result, identity, tallies, held_out, settings)
        return result

    return make(output, identity, work)


def _facts(source: Source) -> dict[str, Any]:
    """Return the names (without folders), the sizes and the hashes of a source's files."""
    files = [{"name": path.name, "bytes": path.stat().st_size, "sha256": digest(path)} for path in source.files]
    return {"split": source.split, "name": source.name, "files": files}


def _versions(settings: Settings) -> dict[str, str]:
    """Return the versions of the format and the libraries, which influence the written bytes."""
    known = {"format": str(FORMAT), "unicode": unicodedata.unidata_version}
    return known | ({PACKAGE: version(PACKAGE)} if settings.language_id else {})


def _of(sources: list[Source], split: str) -> list[Source]:
    return [source for source in sources if source.split == split]


def _sides(folder: Path, split: str, settings: Settings) -> tuple[Path, Path]:
    source, target = settings.languages
    return folder / f"{split}.{source}", folder / f"{split}.{target}"


def _clean(folder: Path, corpora: list[Source], settings: Settings, workers: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    clean = partial(parts.clean, folder, Cleaner(settings))
    for number, source in enumerate(corpora):
        chunks = parts.chunks(number, source, settings.limit)
        with tqdm(desc=source.name, unit=" pairs", mininterval=5, disable=None, leave=False) as bar:
            for pairs in mapped(clean, chunks, workers):
                bar.update(pairs)


def _record(
    folder: Path, identity: dict[str, Any], tallies: list[Tally], held_out: report.Sets, settings: Settings
) -> None:
    """Write corpus.json, report.json and report.md; they do not depend on the machine or the number of processes."""
    totals = total(tallies)
    train = {
        "pairs": totals["kept"],
        "read": totals["read"],
        "left out": {step: totals[step] for step in settings.steps},
        "words": {code: totals[f"words {side}"] for side, code in enumerate(settings.languages)},
    }
    pairs = {split: [entry["pairs"] for entry in held_out[split]] for split in HELD_OUT}
    counts = {"train": train} | {split: {"pairs": sum(pairs[split])} for split in HELD_OUT}
    kept = [tally.counts["kept"] for tally in tallies] + [number for split in HELD_OUT for number in pairs[split]]
    sources = [file | {"pairs": number} for file, number in zip(identity["files"], kept, strict=True)]
    record = {"pair": settings.pair, "counts": counts, "sources": sources, "identity": identity}
    rows = report.rows(tallies, held_out, settings.steps, settings.languages)
    options = {"pair": settings.pair} | identity["options"]
    write_whole(folder / "report.json", json.dumps(rows, indent=1) + "\n")
    write_whole(folder / "report.md", report.page(tallies, held_out, settings.steps, options))
    write_whole(folder / RECORD, json.dumps(record, indent=1) + "\n")
