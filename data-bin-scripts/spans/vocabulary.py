"""The dictionary and the tokenizer of a pretrained model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from corpora.errors import CorpusError
from corpora.pieces import SPECIALS

#: instead of a tokenizer's files: fairseq_posenc/data/question_pieces.py cuts these
WORDS = ("words", "chars", "spaces")
AUTO = "auto"
MASK = "<mask>"


class Piece(Protocol):
    """As fairseq_posenc/data/span_items.py has it."""

    @property
    def id(self) -> int: ...
    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...


class Pieces(Protocol):
    def cut(self, text: str) -> list[Any]: ...


@dataclass(frozen=True)
class Vocabulary:
    """symbols: of the dictionary, by id, <mask> too. kind: of `WORDS`, or the tokenizer's model. contents: of its
    tokenizer.json. cased: case is kept."""

    symbols: list[str]
    pieces: Pieces
    kind: str
    cased: bool
    contents: dict[str, Any] | None = None

    @property
    def text(self) -> str:
        """dict.txt."""
        return "".join(f"{one} 1\n" for one in self.symbols[len(SPECIALS) :])


def of_model(source: Path, tokenizer: str) -> Vocabulary:
    """Args:
        source: a checkpoint of fairseq's, or a folder of Hugging Face's or of export-hf.
        tokenizer: of `WORDS`, its files or their folder, or `AUTO`: what lies beside the model's dictionary.
    Raises:
        CorpusError: no dictionary or tokenizer, or that of another model.
    """
    from fairseq_posenc.compat.checkpoints import CheckpointError  # seconds, which --help does not need
    from fairseq_posenc.data.span_pieces import OfTokenizer
    from fairseq_posenc.hub import vocabulary

    try:
        if tokenizer in WORDS:
            return _of_words(tokenizer, _symbols(source))
        symbols, contents = vocabulary.with_tokenizer(source, None if tokenizer == AUTO else Path(tokenizer))
    except CheckpointError as error:
        words = f"; or --tokenizer-path {', '.join(WORDS)}" if tokenizer == AUTO else ""
        raise CorpusError(f"--checkpoint {source}: {error}{words}") from None
    cased = not (contents.get("normalizer") or {}).get("lowercase", False)
    return Vocabulary(symbols, OfTokenizer(contents), contents["model"]["type"], cased, contents)


def _symbols(source: Path) -> list[str]:
    """Of a model that may have no tokenizer.

    Raises:
        CorpusError: no dictionary either.
    """
    from fairseq_posenc.hub import vocabulary
    from fairseq_posenc.hub.checkpoint import symbols_in_dictionary
    from fairseq_posenc.hub.pretrained import read, reordered

    if source.is_dir():
        return vocabulary.dictionary(source)
    found = read(source)
    if found.vocabulary is None:
        raise CorpusError(f"{source}: no dict.txt beside it, or in the data of its training: copy it there")
    return [*SPECIALS, *symbols_in_dictionary(reordered(found)), MASK]


def _of_words(kind: str, symbols: list[str]) -> Vocabulary:
    """Case is kept where the dictionary has capitals."""
    from fairseq_posenc.data.span_pieces import OfWords

    own = {symbol: number for number, symbol in enumerate(symbols) if symbol not in (*SPECIALS, MASK)}
    cased = any(symbol != symbol.lower() for symbol in own)
    return Vocabulary(symbols, OfWords(kind, own, cased=cased), kind, cased)
