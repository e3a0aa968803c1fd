"""Convert text to ids of a fairseq dictionary with GPT-2's BPE, WordPiece or SentencePiece.

The ids are those of `dict.txt` after fairseq's four special symbols; the task appends <mask> at the end.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from shared import write_whole

from .errors import CorpusError

os.environ["TOKENIZERS_PARALLELISM"] = "false"  # each task is one process on one core
Ids = NDArray[np.int64]
#: fairseq's special symbols, by id
SPECIALS = ("<s>", "<pad>", "</s>", "<unk>")
UNKNOWN, END = 3, 2
#: special symbols of other vocabularies, which are not text
FOREIGN = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *SPECIALS, "<mask>"}
#: files of each tokenizer in its folder
FILES = {
    "gpt2": ("encoder.json", "vocab.bpe", "dict.txt"),
    "wordpiece": ("vocab.txt", "tokenizer_config.json"),
    "sentencepiece": ("sentencepiece.model", "sentencepiece.vocab"),
}
#: files that this program writes itself
WRITTEN = ("sentencepiece.vocab", "tokenizer_config.json")
#: whether a piece begins a word; equal to fairseq_posenc/data/words.py (tested), whose import takes seconds
BEGINS: dict[str, Callable[[str], bool]] = {
    "gpt2": lambda piece: piece[:1] in ("\u0120", "\u010a", "\u0109"),
    "wordpiece": lambda piece: not piece.startswith("##"),
    "sentencepiece": lambda piece: piece.startswith("\u2581"),
}


@dataclass(frozen=True)
class Pieces:
    """A tokenizer and its fairseq dictionary.

    Args:
        symbols: Symbols of the dictionary, after the special ones.
        own: Converts sentences to the tokenizer's ids.
        ids: Id in the dictionary, by id of the tokenizer.
        begins: Whether a piece begins a word, by id in the dictionary.
    """

    symbols: Sequence[str]
    own: Callable[[list[str]], list[list[int]]]
    ids: Ids
    begins: NDArray[np.bool_]

    def __len__(self) -> int:
        """Return the size of the dictionary with the special symbols and <mask>."""
        return len(self.symbols) + len(SPECIALS) + 1

    def encode(self, sentences: list[str]) -> tuple[Ids, Ids]:
        """Return the concatenated ids of all sentences, and the length of each."""
        found = self.own(sentences)
        lengths = np.fromiter(map(len, found), np.int64, len(found))
        flat = np.fromiter(chain.from_iterable(found), np.int64, int(lengths.sum()))
        return self.ids[flat], lengths


def load(scheme: str, folder: Path, *, lowercase: bool = True) -> Pieces:
    """Load the tokenizer from a folder with the `FILES` of its scheme.

    Args:
        lowercase: Lowercase the text for WordPiece, as uncased vocabularies need it.
    Raises:
        CorpusError: Files are missing, have another format, or do not fit each other.
    """
    paths = [folder / name for name in FILES[scheme]]
    for path in paths:
        if not path.is_file() and path.name not in WRITTEN:
            raise CorpusError(f"{path}: no such file; --tokenizer {scheme} wants it")
    if scheme == "gpt2":
        return _gpt2(*paths)
    return _sentencepiece(paths[0]) if scheme == "sentencepiece" else _wordpiece(paths[0], lowercase)


def _made(scheme: str, own: Callable[[list[str]], list[list[int]]], pieces: list[str], symbols: list[str]) -> Pieces:
    """Build the pieces of a tokenizer whose pieces, by its own ids, are the symbols themselves."""
    at = {symbol: number for number, symbol in enumerate(symbols, len(SPECIALS))}
    ids = np.array([at.get(piece, UNKNOWN) for piece in pieces], np.int64)
    return Pieces(symbols, own, ids, _begins(scheme, pieces, ids, len(symbols)))


def _begins(scheme: str, pieces: Sequence[str], ids: Ids, symbols: int) -> NDArray[np.bool_]:
    found = np.zeros(symbols + len(SPECIALS), bool)
    found[ids] = [BEGINS[scheme](piece) for piece in pieces]
    return found


def _gpt2(encoder: Path, merges: Path, dictionary: Path) -> Pieces:
    """Build GPT-2's pieces; the symbols of fairseq's dictionary are GPT-2's ids, sorted by frequency."""
    from tokenizers import ByteLevelBPETokenizer

    try:
        made = ByteLevelBPETokenizer.from_file(str(encoder), str(merges))
    except Exception as error:  # noqa: BLE001  (tokenizers raises Exception itself)
        raise CorpusError(f"{encoder}, {merges}: no vocabulary of GPT-2's form ({error})") from None
    symbols = [line.split(" ")[0] for line in dictionary.read_text("utf-8").splitlines() if line.strip()]
    at = {int(symbol): number for number, symbol in enumerate(symbols, len(SPECIALS)) if symbol.isdecimal()}
    pieces = [made.id_to_token(number) for number in range(made.get_vocab_size())]
    # text never gives <|endoftext|>, which some of fairseq's dictionaries lack
    missing = [number for number, piece in enumerate(pieces) if number not in at and piece != "<|endoftext|>"]
    if missing:
        raise CorpusError(
            f"{dictionary} has no symbol {missing[0]}, as {encoder} has ({len(missing)} in all): they are of two "
            "tokenizers; give the three files of one (fetch.py gpt2-bpe)"
        )
    ids = np.array([at.get(number, UNKNOWN) for number in range(len(pieces))], np.int64)
    return Pieces(symbols, _batches(made), ids, _begins("gpt2", pieces, ids, len(symbols)))


def _batches(made: Any) -> Callable[[list[str]], list[list[int]]]:
    return lambda sentences: [one.ids for one in made.encode_batch(sentences, add_special_tokens=False)]


def _wordpiece(vocabulary: Path, lowercase: bool) -> Pieces:
    from tokenizers import BertWordPieceTokenizer

    try:
        pieces = vocabulary.read_text("utf-8").rstrip("\n").split("\n")
    except UnicodeDecodeError:
        pieces = []
    if "[UNK]" not in pieces or not any(piece.startswith("##") for piece in pieces):
        raise CorpusError(f"{vocabulary}: no vocabulary of WordPiece (no [UNK], or no piece with ##)")
    _unique(vocabulary, pieces)
    if missing := {"[CLS]", "[SEP]"} - {*pieces}:  # `tokenizers` needs them
        raise CorpusError(f"{vocabulary}: no vocabulary of WordPiece (no {min(missing)}); add it as a line")
    made = BertWordPieceTokenizer(str(vocabulary), lowercase=lowercase)
    return _made("wordpiece", _batches(made), pieces, [piece for piece in pieces if piece not in FOREIGN])


def _unique(vocabulary: Path, pieces: list[str]) -> None:
    seen: set[str] = set()
    for number, piece in enumerate(pieces, start=1):
        if piece in seen or not piece.strip() or len(piece.split()) > 1:
            raise CorpusError.at(vocabulary, number, f"the piece {piece!r} is empty, has a space or stands there twice")
        seen.add(piece)


def _sentencepiece(model: Path) -> Pieces:
    import sentencepiece

    try:
        made = sentencepiece.SentencePieceProcessor(model_file=str(model))
    except (OSError, RuntimeError) as error:
        raise CorpusError(f"{model}: no model of SentencePiece ({' '.join(str(error).split())})") from None
    pieces = [made.id_to_piece(number) for number in range(made.vocab_size())]
    symbols = [
        piece
        for number, piece in enumerate(pieces)
        if not made.is_control(number) and not made.is_unknown(number) and piece not in FOREIGN
    ]
    return _made(
        "sentencepiece", lambda sentences: made.encode(sentences, out_type=int, num_threads=1), pieces, symbols
    )


def dictionary(scheme: str, folder: Path, pieces: Pieces, counts: Ids) -> str:
    """Return the content of dict.txt: fairseq's own for GPT-2, otherwise the symbols with their training frequency.

    Args:
        counts: Frequency in the training text, by id.
    """
    if scheme == "gpt2":
        return (folder / "dict.txt").read_text("utf-8")
    return "".join(
        f"{symbol} {max(1, int(counts[number]))}\n" for number, symbol in enumerate(pieces.symbols, len(SPECIALS))
    )


def given(scheme: str, path: Path) -> dict[str, bytes]:
    """Return the contents of the user's tokenizer files, by their names in the tokenizer's folder.

    Raises:
        CorpusError: A file is missing.
    """
    paths = [path / name for name in FILES[scheme]] if scheme == "gpt2" else [path]
    for one in paths:
        if not one.is_file():
            wanted = "a folder with encoder.json, vocab.bpe and dict.txt" if scheme == "gpt2" else "a file"
            raise CorpusError(f"--tokenizer-path {path}: {one} is no file; {scheme} takes {wanted}")
    return {name: one.read_bytes() for name, one in zip(FILES[scheme], paths, strict=False)}


def check_case(vocabulary: Path, *, cased: bool) -> None:
    """Check that --cased fits the user's WordPiece vocabulary.

    tokenizer_config.json in the same folder tells whether the vocabulary is cased; without it, capitals in the pieces
    do. fairseq_posenc/hub/tokenizer/sources.py follows the same rule.

    Raises:
        CorpusError: The text would be lowercased for a cased vocabulary, or the reverse.
    """
    settings = vocabulary.with_name("tokenizer_config.json")
    try:
        lowercase = json.loads(settings.read_text("utf-8"))["do_lower_case"] if settings.is_file() else None
    except (ValueError, KeyError, TypeError):
        lowercase = None
    if lowercase is not None:
        meant, why = not lowercase, f"{settings.name} beside it says do_lower_case {json.dumps(lowercase)}"
    else:
        # [UNK], [unused7] and <S> are not text; tokenizers split marks from words, so text pieces never begin like this
        pieces = (piece for piece in vocabulary.read_text("utf-8").split("\n") if piece[:1] not in ("[", "<"))
        capital = next((piece for piece in pieces if piece != piece.lower()), None)
        meant, why = capital is not None, f"it has capitals ({capital!r})" if capital else "it has no capitals"
    if meant and not cased:
        raise CorpusError(f"--tokenizer-path {vocabulary}: {why}, and text would lose its own; give --cased")
    if cased and not meant:
        raise CorpusError(
            f"--tokenizer-path {vocabulary}: {why}, and words of the text that have some would be unknown; leave out "
            "--cased"
        )


def write_case(folder: Path, *, cased: bool) -> None:
    """Write tokenizer_config.json next to vocab.txt, so that export-hf tokenises text in the same way."""
    write_whole(folder / "tokenizer_config.json", json.dumps({"do_lower_case": not cased}) + "\n")


def write_vocabulary(folder: Path) -> None:
    """Write sentencepiece.vocab next to the model, in the format of SentencePiece's trainer."""
    import sentencepiece

    made = sentencepiece.SentencePieceProcessor(model_file=str(folder / "sentencepiece.model"))
    lines = [f"{made.id_to_piece(number)}\t{made.get_score(number):.6g}\n" for number in range(made.vocab_size())]
    (folder / "sentencepiece.vocab").write_text("".join(lines), encoding="utf-8")
