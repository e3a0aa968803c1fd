"""Provide the dictionary of pieces, learned from the text or taken from a pretrained encoder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corpora.errors import CorpusError
from corpora.pieces import SPECIALS

from .output import write_json

#: names that are already in fairseq's dictionaries
TAKEN = {*SPECIALS, "<mask>"}


@dataclass(frozen=True)
class Dictionary:
    """Hold a dictionary of pieces.

    Args:
        symbols: Symbols in the order of their ids, which begin after fairseq's four special symbols.
        counts: Count of each symbol.
        contents: Content of tokenizer.json, or None.
    """

    symbols: list[str]
    counts: list[int]
    contents: dict[str, Any] | None = None

    def __len__(self) -> int:
        return len(self.symbols) + len(SPECIALS)

    def ids(self) -> dict[str, int]:
        """Return the id of each piece, without special symbols."""
        named = enumerate(self.symbols, start=len(SPECIALS))
        return {symbol: number for number, symbol in named if symbol not in TAKEN}

    def text(self) -> str:
        """Return the content of dict.txt."""
        return "".join(f"{symbol} {count}\n" for symbol, count in zip(self.symbols, self.counts, strict=True))

    def write(self, folder: Path, *names: str) -> None:
        """Write the dictionary to files with these names; also write tokenizer.json if the dictionary has one."""
        for name in names:
            (folder / name).write_text(self.text(), encoding="utf-8")
        if self.contents is not None:
            write_json(folder / "tokenizer.json", self.contents)


def learned(counts: Counter[str], size: int) -> Dictionary:
    """Return a dictionary of the most frequent pieces; equally frequent pieces are sorted alphabetically.

    Raises:
        CorpusError: There are no pieces.
    """
    ranked = sorted(((-count, name) for name, count in counts.items() if name not in TAKEN))[: size - len(SPECIALS)]
    if not ranked:
        raise CorpusError("the dictionary cannot be learned, because all training questions are left out.")
    return Dictionary([name for _, name in ranked], [-count for count, _ in ranked])


def pretrained(source: Path, files: Path | None = None, flag: str = "--tokenizer-path", hint: str = "") -> Dictionary:
    """Return the dictionary of a Hugging Face folder or a fairseq checkpoint, with the ids that fairseq uses.

    <mask> gets the last id.

    Args:
        files: Files of the tokenizer, if they are not in `source`.
        flag: Option that names the source in errors.
        hint: Advice for the user, appended to errors.
    Raises:
        CorpusError: The model or its vocabulary is missing, or the vocabulary does not fit the model's settings.
    """
    with readable(source, flag, hint):
        from fairseq_posenc.hub import vocabulary  # takes seconds, which --help does not need

        symbols, contents = vocabulary.with_tokenizer(source, files)
    own = symbols[len(SPECIALS) :]
    return Dictionary(own, [1] * len(own), contents)


@contextmanager
def readable(source: Path, flag: str, hint: str = "") -> Iterator[None]:
    """If the block raises an error about the model, replace it by an error that names the option and the model."""
    from fairseq_posenc.compat.checkpoints import CheckpointError

    try:
        yield
    except (CheckpointError, ValueError) as error:
        raise CorpusError(f"{flag} {source}: {str(error).rstrip('.')}.{hint}") from None
