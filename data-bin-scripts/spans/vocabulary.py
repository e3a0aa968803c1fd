"""Load the dictionary and the tokenizer of a pretrained model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from corpora.errors import CorpusError
from corpora.pieces import SPECIALS
from questions.vocabulary import Dictionary, pretrained, readable

if TYPE_CHECKING:
    from fairseq_posenc.data.span_pieces import Pieces

#: simple tokenizers in place of a file, implemented in fairseq_posenc/data/question_pieces.py
WORDS = ("words", "chars", "spaces")
AUTO = "auto"
MASK = "<mask>"


@dataclass(frozen=True)
class Vocabulary:
    """Hold the dictionary and the tokenizer of a model.

    Args:
        kind: One of `WORDS`, or the type of the tokenizer's model.
        cased: Whether the tokenizer keeps capitals.
    """

    dictionary: Dictionary
    pieces: Pieces
    kind: str
    cased: bool


def of_model(source: Path, tokenizer: str) -> Vocabulary:
    """Return the vocabulary of a pretrained model.

    Args:
        source: A fairseq checkpoint, or a folder written by Hugging Face or export-hf.
        tokenizer: One of `WORDS`, or the file or folder of a tokenizer, or `AUTO` for the tokenizer in the folder of
            the model's dictionary.
    Raises:
        CorpusError: The dictionary or the tokenizer is missing, or belongs to another model.
    """
    # this takes seconds, which --help does not need
    from fairseq_posenc.data.span_pieces import RegexSplitter, TokenizerSplitter

    if tokenizer in WORDS:
        dictionary = _without_tokenizer(source)
        cased = any(symbol != symbol.lower() for symbol in dictionary.ids())  # the dictionary has capitals
        return Vocabulary(dictionary, RegexSplitter(tokenizer, dictionary.ids(), cased=cased), tokenizer, cased)
    hint = f" Or give --tokenizer-path {', '.join(WORDS)}." if tokenizer == AUTO else ""
    dictionary = pretrained(source, None if tokenizer == AUTO else Path(tokenizer), "--checkpoint", hint)
    contents = dictionary.contents or {}
    cased = not (contents.get("normalizer") or {}).get("lowercase", False)
    return Vocabulary(dictionary, TokenizerSplitter(contents), contents["model"]["type"], cased)


def _without_tokenizer(source: Path) -> Dictionary:
    """Return the dictionary of a model that may have no tokenizer.

    Raises:
        CorpusError: The model has no dictionary.
    """
    from fairseq_posenc.hub import vocabulary
    from fairseq_posenc.hub.checkpoint import symbols_in_dictionary
    from fairseq_posenc.hub.pretrained import read, reordered

    with readable(source, "--checkpoint"):
        if source.is_dir():
            symbols = vocabulary.dictionary(source)[len(SPECIALS) :]
        else:
            checkpoint = read(source)
            if checkpoint.vocabulary is None:
                raise CorpusError(
                    f"{source}: dict.txt is neither in the folder of the checkpoint nor in its training data. Copy "
                    "dict.txt into the folder of the checkpoint."
                )
            symbols = [*symbols_in_dictionary(reordered(checkpoint)), MASK]
    return Dictionary(symbols, [1] * len(symbols))
