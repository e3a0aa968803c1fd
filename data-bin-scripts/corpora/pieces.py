"""Text to ids of a fairseq dictionary: GPT-2's BPE, WordPiece, SentencePiece.

The ids are those of `dict.txt` behind fairseq's four special symbols; <mask> is added by the task, at the end.
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

os.environ["TOKENIZERS_PARALLELISM"] = "false"  # a task is one process on one core
Ids = NDArray[np.int64]
#: fairseq's, by id
SPECIALS = ("<s>", "<pad>", "</s>", "<unk>")
UNKNOWN, END = 3, 2
#: the same in vocabularies of others, which are no text
FOREIGN = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *SPECIALS, "<mask>"}
#: the files of a tokenizer in its folder
FILES = {
    "gpt2": ("encoder.json", "vocab.bpe", "dict.txt"),
    "wordpiece": ("vocab.txt", "tokenizer_config.json"),
    "sentencepiece": ("sentencepiece.model", "sentencepiece.vocab"),
}
#: those of them that are written here
WRITTEN = ("sentencepiece.vocab", "tokenizer_config.json")
#: which pieces begin a word; those of fairseq_posenc/data/words.py, whose import takes seconds (tested to agree)
BEGINS: dict[str, Callable[[str], bool]] = {
    "gpt2": lambda piece: piece[:1] in ("\u0120", "\u010a", "\u0109"),
    "wordpiece": lambda piece: not piece.startswith("##"),
    "sentencepiece": lambda piece: piece.startswith("\u2581"),
}


@dataclass(frozen=True)
class Pieces:
    """A tokenizer and the dictionary that it is for.

    Args:
        symbols: of the dictionary, behind the special ones. own: sentences to the tokenizer's ids. ids: by the
            tokenizer's id, the dictionary's. begins: by the dictionary's id, whether a piece begins a word.
    """

    symbols: Sequence[str]
    own: Callable[[list[str]], list[list[int]]]
    ids: Ids
    begins: NDArray[np.bool_]

    def __len__(self) -> int:
        """With the special symbols and <mask>."""
        return len(self.symbols) + len(SPECIALS) + 1

    def encode(self, sentences: list[str]) -> tuple[Ids, Ids]:
        """The ids of all sentences, one behind the other, and how many each has."""
        found = self.own(sentences)
        lengths = np.fromiter(map(len, found), np.int64, len(found))
        flat = np.fromiter(chain.from_iterable(found), np.int64, int(lengths.sum()))
        return self.ids[flat], lengths


def load(scheme: str, folder: Path, *, lowercase: bool = True) -> Pieces:
    """The tokenizer of a folder with `FILES`.

    Args:
        lowercase: of WordPiece's text, as in uncased vocabularies.
    Raises:
        CorpusError: files that are missing, or not of this form, or do not fit each other.
    """
    paths = [folder / name for name in FILES[scheme]]
    for path in paths:
        if not path.is_file() and path.name not in WRITTEN:
            raise CorpusError(f"{path}: no such file; --tokenizer {scheme} wants it")
    if scheme == "gpt2":
        return _gpt2(*paths)
    return _sentencepiece(paths[0]) if scheme == "sentencepiece" else _wordpiece(paths[0], lowercase)


def _made(scheme: str, own: Callable[[list[str]], list[list[int]]], pieces: list[str], symbols: list[str]) -> Pieces:
    """Of a tokenizer whose pieces [own id] are themselves the symbols."""
    at = {symbol: number for number, symbol in enumerate(symbols, len(SPECIALS))}
    ids = np.array([at.get(piece, UNKNOWN) for piece in pieces], np.int64)
    return Pieces(symbols, own, ids, _begins(scheme, pieces, ids, len(symbols)))


def _begins(scheme: str, pieces: Sequence[str], ids: Ids, symbols: int) -> NDArray[np.bool_]:
    found = np.zeros(symbols + len(SPECIALS), bool)
    found[ids] = [BEGINS[scheme](piece) for piece in pieces]
    return found


def _gpt2(encoder: Path, merges: Path, dictionary: Path) -> Pieces:
    """fairseq's dictionary has GPT-2's numbers as symbols, by frequency."""
    from tokenizers import ByteLevelBPETokenizer

    try:
        made = ByteLevelBPETokenizer.from_file(str(encoder), str(merges))
    except Exception as error:  # noqa: BLE001  (tokenizers raises Exception itself)
        raise CorpusError(f"{encoder}, {merges}: no vocabulary of GPT-2's form ({error})") from None
    symbols = [line.split(" ")[0] for line in dictionary.read_text("utf-8").splitlines() if line.strip()]
    at = {int(symbol): number for number, symbol in enumerate(symbols, len(SPECIALS)) if symbol.isdecimal()}
    pieces = [made.id_to_token(number) for number in range(made.get_vocab_size())]
    # a text never gives <|endoftext|>, which fairseq's dictionary has or has not
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
    if missing := {"[CLS]", "[SEP]"} - {*pieces}:  # which `tokenizers` asks for
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
    """dict.txt: fairseq's own for GPT-2, else the symbols with how often they stand in the training text [id]."""
    if scheme == "gpt2":
        return (folder / "dict.txt").read_text("utf-8")
    return "".join(
        f"{symbol} {max(1, int(counts[number]))}\n" for number, symbol in enumerate(pieces.symbols, len(SPECIALS))
    )


def given(scheme: str, path: Path) -> dict[str, bytes]:
    """The files of a tokenizer that the user has, by their names in its folder.

    Raises:
        CorpusError: they are not there.
    """
    paths = [path / name for name in FILES[scheme]] if scheme == "gpt2" else [path]
    for one in paths:
        if not one.is_file():
            wanted = "a folder with encoder.json, vocab.bpe and dict.txt" if scheme == "gpt2" else "a file"
            raise CorpusError(f"--tokenizer-path {path}: {one} is no file; {scheme} takes {wanted}")
    return {name: one.read_bytes() for name, one in zip(FILES[scheme], paths, strict=False)}


def check_case(vocabulary: Path, *, cased: bool) -> None:
    """Of a vocabulary of WordPiece that the user has: by the settings beside it, without them by its capitals.

    So fairseq_posenc/hub/tokenizer/sources.py tells it too.
    Raises:
        CorpusError: text would be cut otherwise than the vocabulary is meant for.
    """
    settings = vocabulary.with_name("tokenizer_config.json")
    try:
        lowercase = json.loads(settings.read_text("utf-8"))["do_lower_case"] if settings.is_file() else None
    except (ValueError, KeyError, TypeError):
        lowercase = None
    if lowercase is not None:
        meant, why = not lowercase, f"{settings.name} beside it says do_lower_case {json.dumps(lowercase)}"
    else:
        # [UNK], [unused7], <S> are no text, in which marks stand alone
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
    """tokenizer_config.json beside vocab.txt, by which export-hf cuts text in the same way."""
    write_whole(folder / "tokenizer_config.json", json.dumps({"do_lower_case": not cased}) + "\n")


def write_vocabulary(folder: Path) -> None:
    """sentencepiece.vocab beside the model, in the form that SentencePiece's trainer writes."""
    import sentencepiece

    made = sentencepiece.SentencePieceProcessor(model_file=str(folder / "sentencepiece.model"))
    lines = [f"{made.id_to_piece(number)}\t{made.get_score(number):.6g}\n" for number in range(made.vocab_size())]
    (folder / "sentencepiece.vocab").write_text("".join(lines), encoding="utf-8")
