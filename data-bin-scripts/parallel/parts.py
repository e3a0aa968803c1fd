"""Clean training pairs in several processes, chunk by chunk, and merge the chunks without duplicate pairs.

Each chunk becomes a folder. A later run does not write complete folders again.
"""

from __future__ import annotations

import hashlib
import json
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import compress, count, islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
from shared import mapped, read_json, whole_folder
from tqdm import tqdm

from .cleaning import Kept, judge
from .sets import Source, pairs

CHUNK = 20_000  # pairs per chunk
SHOWN = 3  # number of example lines for each step, per part and per corpus
#: a kept pair: hash of its text, line number, words of both sides, whether the text was mended
KEPT = np.dtype([("hash", "S16"), ("line", "<u8"), ("words", "<u4", 2), ("mended", "u1")])


class Chunk(NamedTuple):
    """Hold consecutive pairs of a corpus: the folder of their part, the number of the first line, and the pairs."""

    folder: Path
    line: int
    pairs: list[tuple[bytes, bytes]]


@dataclass
class Tally:
    """Count the pairs of a corpus that were read, kept and mended, that each step left out, and the words of each side.

    `lines` holds the line numbers of the first pairs that each step left out.
    """

    name: str
    counts: Counter[str] = field(default_factory=Counter)
    lines: dict[str, list[int]] = field(default_factory=dict)

    def leave(self, step: str, number: int, lines: list[int]) -> None:
        self.counts[step] += number
        self.lines[step] = (self.lines.get(step, []) + lines)[:SHOWN]


def clean(folder: Path, sources: list[Source], options: Namespace) -> Iterator[tuple[Tally, list[Path]]]:
    """Write the parts of all corpora; yield an empty tally of each corpus with the folders of its parts."""
    for number, source in enumerate(sources):
        bar = tqdm(desc=source.name, unit=" pairs", mininterval=5, disable=None, leave=False)
        chunks, parts = _chunks(folder / f"{number:02d}", source, options.limit), list[Path]()
        for part, size in mapped(partial(_clean, options), chunks, options.workers):
            parts.append(part)
            bar.update(size)
        yield Tally(source.name), parts


def _chunks(folder: Path, source: Source, limit: int) -> Iterator[Chunk]:
    lines = islice(pairs(source.files), limit or None)
    for number in count():
        if not (chunk := list(islice(lines, CHUNK))):
            return
        yield Chunk(folder / f"{number:06d}", number * CHUNK + 1, chunk)


def _clean(options: Namespace, chunk: Chunk) -> tuple[Path, int]:
    """Clean a chunk and write its part, unless an earlier run wrote it."""
    if chunk.folder.exists():
        return chunk.folder, len(chunk.pairs)
    tally, kept = Tally(""), list[tuple[object, ...]]()
    with whole_folder(chunk.folder) as new:
        with (new / "0").open("wb") as a, (new / "1").open("wb") as b:
            for line, sides in enumerate(chunk.pairs, start=chunk.line):
                verdict = judge(options, sides)
                if isinstance(verdict, Kept):
                    texts = [f"{text}\n".encode() for text in verdict.texts]
                    a.write(texts[0])
                    b.write(texts[1])
                    key = hashlib.blake2b(b"".join(texts), digest_size=16).digest()
                    kept.append((key, line, verdict.words, verdict.mended))
                else:
                    tally.leave(verdict, 1, [line])
        np.save(new / "kept.npy", np.array(kept, KEPT))
        record = {"read": len(chunk.pairs), "left out": tally.counts, "lines": tally.lines}
        (new / "counts.json").write_text(json.dumps(record), encoding="utf-8")
    return chunk.folder, len(chunk.pairs)


def merge(corpora: list[tuple[Tally, list[Path]]], targets: tuple[Path, Path], *, duplicates: bool) -> list[Tally]:
    """Write the pairs of all parts into the training files of both languages; return the counts of each corpus.

    Args:
        duplicates: Whether to keep pairs that occurred before. Even among a billion pairs, it is improbable that two
            different ones have the same hash.
    """
    kept = {part: np.load(part / "kept.npy") for _, parts in corpora for part in parts}
    hashes = np.concatenate([rows["hash"] for rows in kept.values()])
    mask = np.full(len(hashes), duplicates)
    mask[np.unique(hashes, return_index=True)[1]] = True  # the first pair of each hash
    begin = 0
    with targets[0].open("wb") as a, targets[1].open("wb") as b:
        for tally, parts in corpora:
            for part in parts:
                rows, record = kept[part], read_json(part / "counts.json")
                written = mask[begin : (begin := begin + len(rows))]
                for side, target in enumerate((a, b)):
                    with (part / str(side)).open("rb") as lines:
                        target.writelines(compress(lines, written.tolist()))
                for step, number in record["left out"].items():
                    tally.leave(step, number, record["lines"][step])
                if number := int((~written).sum()):
                    tally.leave("duplicate", number, rows["line"][~written][:SHOWN].tolist())
                rows = rows[written]
                words = rows["words"].sum(axis=0, dtype=np.int64).tolist()
                numbers = {"read": record["read"], "kept": len(rows), "mended": int(rows["mended"].sum())}
                tally.counts.update(numbers | {"words 0": words[0], "words 1": words[1]})
    return [tally for tally, _ in corpora]
