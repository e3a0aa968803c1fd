"""Read tar archives of text files, such as OpenWebText's, without extracting them; each file is a document."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from shared import is_utf16, utf16_problem

from .compressed import DAMAGED, damaged
from .errors import CorpusError
from .lines import Document, binary, checked

#: maximum size of a member in bytes
LARGEST = 80_000_000


def is_tar(head: bytes) -> bool:
    """Return whether a file that begins with these bytes is a tar archive."""
    return head[257:262] == b"ustar"


def members(path: Path, file: IO[bytes]) -> Iterator[Document]:
    """Yield the files of an archive as documents. `Document.line` is the number of the file in the archive."""
    number = 0
    try:
        with tarfile.open(fileobj=file, mode="r|") as tar:
            for number, member in enumerate(tar, start=1):
                content = tar.extractfile(member) if member.isfile() else None
                if content is None:
                    continue
                if member.size > LARGEST:
                    raise CorpusError.at(path, number, f"{member.name} is too large: {member.size:,} bytes. Remove it.")
                yield Document(number, _text(path, number, member.name, content.read()))
    except (*DAMAGED, tarfile.TarError) as error:
        raise damaged(path, number + 1, error) from None


def _text(path: Path, number: int, name: str, content: bytes) -> list[str]:
    if is_utf16(content):
        raise CorpusError.at(path / name, 1, utf16_problem(name))
    if b"\0" in content:
        raise binary(path / name, number)
    try:
        return [checked(path, number, line) for line in content.decode("utf-8").split("\n")]
    except UnicodeDecodeError as error:
        line = 1 + content[: error.start].count(b"\n")
        raise CorpusError.at(path / name, line, "the file is not UTF-8 text. Leave this file out.") from None
