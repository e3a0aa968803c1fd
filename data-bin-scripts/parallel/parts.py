"""Clean training pairs in several processes, and write each chunk to parts/CORPUS-SIZE-CHUNK.{a,b,kept,json}.

A part is complete if all its files exist. A later run does not write complete parts again.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
from corpora.binary import replacing
from corpora.compressed import DAMAGED, damaged, opened
from corpora.errors import CorpusError
from shared import is_utf16, utf16_problem

from .cleaning import Cleaner, Kept
from .sets import unequal
from .sources import Source

CHUNK = 20_000  # pairs per chunk
SHOWN = 3  # number of example lines for each step, per part and per corpus
ENDS = ("a", "b", "kept", "json")
#: a kept pair: hash of its text, line number, words of both sides, whether the text was mended
KEPT = np.dtype([("high", "<u8"), ("low", "<u8"), ("line", "<u8"), ("words", "<u4", 2), ("mended", "u1")])


class Chunk(NamedTuple):
    """Hold a chunk of consecutive lines of a parallel corpus.

    Args:
        part: Name of the part's files, without their endings.
        line: Number of the chunk's first line; lines count from 1.
        sides: Lines of both languages, separated by line feeds.
    """

    part: str
    line: int
    sides: tuple[bytes, bytes]


def name(corpus: int, chunk: int) -> str:
    """Return the name of a part; it includes the chunk size, so that a run with another chunk size writes new parts."""
    return f"{corpus:02d}-{CHUNK}-{chunk:06d}"


def chunks(corpus: int, source: Source, limit: int) -> Iterator[Chunk]:
    """Yield the chunks of a corpus, or of its first `limit` pairs.

    Raises:
        CorpusError: A file is damaged or empty, or the two files have different numbers of lines.
    """
    with opened(source.files[0]) as a, opened(source.files[1]) as b:
        for number in count():
            line = number * CHUNK + 1
            most = max(0, min(CHUNK, limit - number * CHUNK)) if limit else CHUNK
            first, second = _lines(source.files[0], a, line, most), _lines(source.files[1], b, line, most)
            if len(first) != len(second):
                raise unequal(source.files, line + min(len(first), len(second)), len(first) < len(second))
            if not first:
                break
            yield Chunk(name(corpus, number), line, (b"\n".join(first), b"\n".join(second)))
    if number == 0:
        raise CorpusError(f"{source.files[0]} and {source.files[1]} are both empty. Fetch both files again.")


def _lines(path: Path, file: IO[bytes], line: int, most: int) -> list[bytes]:
    """Return the next `most` lines of a file, or fewer at its end.

    Only a line feed ends a line; other line breaks of Unicode would misalign the pairs.
    """
    lines: list[bytes] = []
    try:
        lines.extend(text.removesuffix(b"\n") for text in islice(file, most))
    except DAMAGED as error:
        raise damaged(path, line + len(lines), error) from None
    if line == 1 and lines and is_utf16(lines[0]):
        raise CorpusError.at(path, 1, utf16_problem(path))
    return lines


def clean(folder: Path, cleaner: Cleaner, chunk: Chunk) -> int:
    """Clean a chunk and write its part, unless an earlier run wrote it; return the number of pairs in the chunk.

    The .json file says how many pairs each step left out, with the line numbers of the first such pairs.
    """
    left_out, places, kept = Counter[str](), dict[str, list[int]](), list[tuple[object, ...]]()
    sides = [side.split(b"\n") for side in chunk.sides]
    if (folder / f"{chunk.part}.json").is_file():
        return len(sides[0])
    with replacing(folder / chunk.part, ENDS) as new:
        with new["a"].open("wb") as a, new["b"].open("wb") as b:
            for line, pair in enumerate(zip(*sides, strict=True), start=chunk.line):
                verdict = cleaner.judge(pair)
                if isinstance(verdict, Kept):
                    texts = verdict.texts[0].encode() + b"\n", verdict.texts[1].encode() + b"\n"
                    a.write(texts[0])
                    b.write(texts[1])
                    kept.append((*_key(texts), line, verdict.words, verdict.mended))
                    continue
                left_out[verdict] += 1
                if left_out[verdict] <= SHOWN:
                    places.setdefault(verdict, []).append(line)
        np.array(kept, KEPT).tofile(new["kept"])
        record = {"read": len(sides[0]), "left out": left_out, "lines": places}
        new["json"].write_text(json.dumps(record), encoding="utf-8")
    return len(sides[0])


def _key(texts: tuple[bytes, bytes]) -> tuple[int, int]:
    """Return a hash of 128 bits as two numbers; even among a billion pairs, a collision is improbable."""
    digest = hashlib.blake2b(b"".join(texts), digest_size=16).digest()
    return int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:], "little")
