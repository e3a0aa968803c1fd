"""Convert text to the ids of a fairseq dictionary with GPT-2's BPE, WordPiece or SentencePiece.

The ids follow the order of `dict.txt`, after fairseq's four special symbols. The fairseq task adds
<mask> as the last symbol.
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
from shared import NotTextError, read_utf8, write_whole

from .errors import CorpusError

os.environ["TOKENIZERS_PARALLELISM"] = "false"  # each task is one process on one core
Ids = NDArray[np.int64]
Tokenise = Callable[[list[str]], list[list[int]]]  # converts sentences to ids of the tokenizer
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
#: the dictionary, which gpt2 needs, and which the other tokenizers have if a pretrained model has one
DICTIONARY = "dict.txt"
#: files that this program writes itself
WRITTEN = ("sentencepiece.vocab", "tokenizer_config.json")
#: settings of a tokenizer_config.json that change the pieces of WordPiece, by their names in `tokenizers`;
#: fairseq_posenc/hub/tokenizer/sources.py reads the same settings
SETTINGS = {
    "lowercase": "do_lower_case",
    "strip_accents": "strip_accents",
    "handle_chinese_chars": "tokenize_chinese_chars",
}
#: whether a piece begins a word; a copy of fairseq_posenc/data/words.py (tested), whose import takes seconds
BEGINS: dict[str, Callable[[str], bool]] = {
    "gpt2": lambda piece: piece[:1] in ("\u0120", "\u010a", "\u0109"),
    "wordpiece": lambda piece: not piece.startswith("##"),
    "sentencepiece": lambda piece: piece.startswith("\u2581"),
}


@dataclass(frozen=True)
class Pieces:
    """Hold a tokenizer and its fairseq dictionary.

    Args:
        symbols: Symbols of the dictionary, after the special symbols.
        tokenise: Function that converts sentences to the tokenizer's ids.
        ids: Id in the dictionary for each id of the tokenizer.
        begins: Whether a piece begins a word, for each id in the dictionary.
    """

    symbols: Sequence[str]
    tokenise: Tokenise
    ids: Ids
    begins: NDArray[np.bool_]

    def __len__(self) -> int:
        """Return the size of the dictionary with the special symbols and <mask>."""
        return len(self.symbols) + len(SPECIALS) + 1

    def encode(self, sentences: list[str]) -> tuple[Ids, Ids]:
        """Return the concatenated ids of all sentences, and the number of ids of each sentence."""
        sentence_ids = self.tokenise(sentences)
        lengths = np.fromiter(map(len, sentence_ids), np.int64, len(sentence_ids))
        flat = np.fromiter(chain.from_iterable(sentence_ids), np.int64, int(lengths.sum()))
        return self.ids[flat], lengths


def load(scheme: str, folder: Path, *, lowercase: bool = True) -> Pieces:
    """Load a tokenizer from a folder.

    Args:
        scheme: Kind of the tokenizer, a key of `FILES`.
        folder: Folder with the tokenizer's `FILES`.
        lowercase: Whether to lowercase the text for WordPiece, as uncased vocabularies require, unless the folder has a
            tokenizer_config.json that says it.
    Raises:
        CorpusError: Files are missing, have the wrong format, or belong to different tokenizers.
    """
    paths = [folder / name for name in FILES[scheme]]
    for path in paths:
        if not path.is_file() and path.name not in WRITTEN:
            raise CorpusError(f"{path} does not exist, but --tokenizer {scheme} needs this file.")
    if scheme == "gpt2":
        return _gpt2(*paths)
    own = _sentencepiece(paths[0]) if scheme == "sentencepiece" else _wordpiece(paths[0], lowercase)
    if not (folder / DICTIONARY).is_file():
        return _of_pieces(scheme, *own)
    tokenise, pieces, symbols = own
    listed = _listed(folder / DICTIONARY)
    known = {*listed}
    if missing := [symbol for symbol in symbols if symbol not in known]:
        raise CorpusError(
            f"{folder / DICTIONARY} lacks {len(missing)} pieces of {paths[0]} (the first is {missing[0]!r}), so the "
            "files belong to different tokenizers. Give the tokenizer and the dict.txt of the same model."
        )
    return _of_pieces(scheme, tokenise, pieces, listed)


def _of_pieces(scheme: str, tokenise: Tokenise, pieces: list[str], symbols: list[str]) -> Pieces:
    """Build the `Pieces` of a tokenizer whose dictionary lists the pieces as text.

    Args:
        pieces: Text of the piece for each id of the tokenizer.
        symbols: Symbols of the dictionary, after the special symbols.
    """
    at = {symbol: number for number, symbol in enumerate(symbols, len(SPECIALS))}
    ids = np.array([at.get(piece, UNKNOWN) for piece in pieces], np.int64)
    return Pieces(symbols, tokenise, ids, _begins(scheme, pieces, ids, len(symbols)))


def _begins(scheme: str, pieces: Sequence[str], ids: Ids, symbols: int) -> NDArray[np.bool_]:
    begins = np.zeros(symbols + len(SPECIALS), bool)
    begins[ids] = [BEGINS[scheme](piece) for piece in pieces]
    return begins


def _gpt2(encoder: Path, merges: Path, dictionary: Path) -> Pieces:
    """Build the `Pieces` of GPT-2's tokenizer.

    The symbols of fairseq's dictionary are GPT-2's ids, sorted by frequency. The symbols of a model that `import-hf`
    wrote are the pieces themselves.
    """
    from tokenizers import ByteLevelBPETokenizer

    try:
        tokenizer = ByteLevelBPETokenizer.from_file(str(encoder), str(merges))
    except Exception as error:  # noqa: BLE001  (tokenizers raises Exception itself)
        raise CorpusError(f"{encoder} and {merges} are not in the format of GPT-2's vocabulary ({error}).") from None
    symbols = _listed(dictionary)
    pieces = [tokenizer.id_to_token(number) for number in range(tokenizer.get_vocab_size())]
    has_ids = all(symbol.isdecimal() or symbol.startswith("madeupword") for symbol in symbols)
    names = list(map(str, range(len(pieces)))) if has_ids else pieces
    at = {symbol: number for number, symbol in enumerate(symbols, len(SPECIALS))}
    # no text contains <|endoftext|>, and some of fairseq's dictionaries lack it
    no_text = {"<|endoftext|>", *FOREIGN}
    missing = [name for name, piece in zip(names, pieces, strict=True) if name not in at and piece not in no_text]
    if missing:
        raise CorpusError(
            f"{dictionary} lacks {len(missing)} symbols of {encoder} (the first is {missing[0]}), so the files belong "
            "to different tokenizers. Give all three files of one tokenizer (fetch.py gpt2-bpe fetches them)."
        )
    ids = np.array([at.get(name, UNKNOWN) for name in names], np.int64)
    return Pieces(symbols, _batches(tokenizer), ids, _begins("gpt2", pieces, ids, len(symbols)))


def _listed(dictionary: Path) -> list[str]:
    # `str.splitlines` would also split lines at U+2028 and other characters, which may be pieces.
    return [line.split(" ")[0] for line in _text(dictionary).split("\n") if line.strip()]


def _text(path: Path) -> str:
    """Return the text of a vocabulary, or raise a CorpusError that names the line that is not UTF-8."""
    try:
        return read_utf8(path)
    except NotTextError as error:
        raise CorpusError(str(error)) from None


def _batches(tokenizer: Any) -> Tokenise:
    return lambda sentences: [encoding.ids for encoding in tokenizer.encode_batch(sentences, add_special_tokens=False)]


def _wordpiece(vocabulary: Path, lowercase: bool) -> tuple[Tokenise, list[str], list[str]]:
    """Return a WordPiece tokenizer, its pieces, and the symbols of its dictionary."""
    from tokenizers import BertWordPieceTokenizer

    pieces = _text(vocabulary).rstrip("\n").split("\n")
    if "[UNK]" not in pieces or not any(piece.startswith("##") for piece in pieces):
        raise CorpusError(f"{vocabulary} is not a WordPiece vocabulary: it lacks [UNK], or pieces that begin with ##.")
    _unique(vocabulary, pieces)
    if missing := {"[CLS]", "[SEP]"} - {*pieces}:  # `tokenizers` needs them
        raise CorpusError(f"{vocabulary}: the vocabulary lacks the piece {min(missing)}. Add a line with this piece.")
    tokenizer = BertWordPieceTokenizer(str(vocabulary), **{"lowercase": lowercase, **settings_beside(vocabulary)})
    return _batches(tokenizer), pieces, [piece for piece in pieces if piece not in FOREIGN]


def settings_beside(vocabulary: Path) -> dict[str, bool]:
    """Return the settings in the tokenizer_config.json next to a vocab.txt, by their names in `tokenizers`.

    Raises:
        CorpusError: The file is not a JSON object, or a setting is neither true nor false.
    """
    path = vocabulary.with_name("tokenizer_config.json")
    if not path.is_file():
        return {}
    try:
        contents = json.loads(_text(path))
    except (ValueError, RecursionError) as error:
        raise CorpusError(f"{path} is not valid JSON ({error}). Download the file again.") from None
    if not isinstance(contents, dict):
        raise CorpusError(f"{path} is not a JSON object with settings. Download the file again.")
    settings = {name: contents[theirs] for name, theirs in SETTINGS.items() if contents.get(theirs) is not None}
    for name, value in settings.items():
        if not isinstance(value, bool):
            raise CorpusError(f"{path}: {SETTINGS[name]} is {value!r}, but must be true or false. Correct the file.")
    return settings


def _unique(vocabulary: Path, pieces: list[str]) -> None:
    seen: set[str] = set()
    for number, piece in enumerate(pieces, start=1):
        if piece in seen:
            raise CorpusError.at(vocabulary, number, f"the piece {piece!r} occurs twice.")
        if len(piece.split()) != 1:
            raise CorpusError.at(vocabulary, number, f"the piece {piece!r} is empty or contains a space.")
        seen.add(piece)


def _sentencepiece(model: Path) -> tuple[Tokenise, list[str], list[str]]:
    """Return a SentencePiece tokenizer, its pieces, and the symbols of its dictionary."""
    import sentencepiece

    try:
        processor = sentencepiece.SentencePieceProcessor(model_file=str(model))
    except (OSError, RuntimeError) as error:
        raise CorpusError(f"{model} is not a SentencePiece model ({' '.join(str(error).split())}).") from None
    pieces = [processor.id_to_piece(number) for number in range(processor.vocab_size())]
    symbols = [
        piece
        for number, piece in enumerate(pieces)
        if not processor.is_control(number) and not processor.is_unknown(number) and piece not in FOREIGN
    ]
    return lambda sentences: processor.encode(sentences, out_type=int, num_threads=1), pieces, symbols


def dictionary(folder: Path, pieces: Pieces, counts: Ids) -> str:
    """Return the content of dict.txt: the user's file if there is one, otherwise the symbols and their training counts.

    Args:
        counts: Frequency of each id in the training text.
    """
    if (folder / DICTIONARY).is_file():
        return _text(folder / DICTIONARY)
    return "".join(
        f"{symbol} {max(1, int(counts[number]))}\n" for number, symbol in enumerate(pieces.symbols, len(SPECIALS))
    )


def user_paths(scheme: str, path: Path) -> dict[str, Path]:
    """Return the user's tokenizer files, keyed by their names in the tokenizer's folder.

    Args:
        path: Value of --tokenizer-path: a file or folder of the tokenizer, or a folder that `import-hf` wrote.
            `import-hf` writes dict.txt one folder above the tokenizer's files; every kind of tokenizer uses this file.
    Raises:
        CorpusError: A file is missing.
    """
    names = FILES[scheme] if scheme == "gpt2" else FILES[scheme][:1]
    folder = path / "tokenizer" if (path / "tokenizer").is_dir() else path
    if scheme != "gpt2" and not folder.is_dir():
        paths, folder = {names[0]: path}, path.parent
    else:
        paths = {name: folder / name for name in names}
    if scheme == "wordpiece" and (settings := folder / "tokenizer_config.json").is_file():
        paths[settings.name] = settings
    above = folder.parent / DICTIONARY
    if folder.name == "tokenizer" and above.is_file() and not (folder / DICTIONARY).is_file():
        paths[DICTIONARY] = above
    for file in paths.values():
        if not file.is_file():
            expected = (
                f"a folder with {', '.join(names)}" if scheme == "gpt2" else f"a file, or a folder with {names[0]}"
            )
            raise CorpusError(f"--tokenizer-path {path}: {file} is not a file. --tokenizer {scheme} needs {expected}.")
    return paths


def check_case(vocabulary: Path, *, cased: bool) -> None:
    """Check that --cased fits the user's WordPiece vocabulary.

    A tokenizer_config.json in the same folder says whether the vocabulary is cased. Without
    tokenizer_config.json, a vocabulary is cased if a piece has capitals. fairseq_posenc/hub/tokenizer/sources.py must
    follow the same rule.

    Raises:
        CorpusError: The vocabulary is cased and --cased is missing, or it is uncased and --cased is given.
    """
    lowercase = settings_beside(vocabulary).get("lowercase")
    if lowercase is not None:
        where = "tokenizer_config.json in its folder"
        is_cased, reason = not lowercase, f"{where} sets do_lower_case to {json.dumps(lowercase)}"
    else:
        # [UNK], [unused7] and <S> are not text; pieces of text do not begin with [ or <, which are split from words
        pieces = (piece for piece in _text(vocabulary).split("\n") if piece[:1] not in ("[", "<"))
        capital = next((piece for piece in pieces if piece != piece.lower()), None)
        is_cased, reason = capital is not None, f"it has capitals ({capital!r})" if capital else "it has no capitals"
    if is_cased and not cased:
        raise CorpusError(f"--tokenizer-path {vocabulary}: {reason}, but the text would be lowercased. Give --cased.")
    if cased and not is_cased:
        raise CorpusError(
            f"--tokenizer-path {vocabulary}: {reason}, so words with capitals would be unknown. Leave out --cased."
        )


def write_settings(folder: Path, *, cased: bool) -> None:
    """Write tokenizer_config.json next to vocab.txt, so that export-hf exports the same settings."""
    settings = {"lowercase": not cased, **settings_beside(folder / "vocab.txt")}
    contents = {SETTINGS[name]: value for name, value in settings.items()}
    write_whole(folder / "tokenizer_config.json", json.dumps(contents) + "\n")


def write_vocabulary(folder: Path) -> None:
    """Write sentencepiece.vocab next to the model, in the format of SentencePiece's trainer."""
    import sentencepiece

    model = sentencepiece.SentencePieceProcessor(model_file=str(folder / "sentencepiece.model"))
    lines = [f"{model.id_to_piece(number)}\t{model.get_score(number):.6g}\n" for number in range(model.vocab_size())]
    (folder / "sentencepiece.vocab").write_text("".join(lines), encoding="utf-8")
