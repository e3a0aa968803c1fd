"""Convert text to the ids of a fairseq dictionary with GPT-2's BPE, WordPiece or SentencePiece.

The ids follow the order of `dict.txt`, after fairseq's four special symbols. The fairseq task adds
<mask> as the last symbol.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from shared import CorpusError, read_json, read_utf8, write_whole

os.environ["TOKENIZERS_PARALLELISM"] = "false"  # each task is one process on one core
Ids = NDArray[np.int64]
Tokenise = Callable[[list[str]], list[list[int]]]  # converts sentences to ids of the tokenizer
#: fairseq's special symbols, by id
SPECIALS = ("<s>", "<pad>", "</s>", "<unk>")
UNKNOWN, END = 3, 2
#: special symbols of other vocabularies, which are not text
FOREIGN = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *SPECIALS, "<mask>", "<|endoftext|>"}
#: the dictionary, which gpt2 needs, and which the other tokenizers have if a pretrained model has one
DICTIONARY, CONFIG = "dict.txt", "tokenizer_config.json"
#: the files of each tokenizer
FILES = {
    "gpt2": ("encoder.json", "vocab.bpe", DICTIONARY),
    "wordpiece": ("vocab.txt",),
    "sentencepiece": ("sentencepiece.model",),
}
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
        return self.ids[np.fromiter(chain.from_iterable(sentence_ids), np.int64, int(lengths.sum()))], lengths


def load(scheme: str, folder: Path, *, cased: bool = False) -> Pieces:
    """Load a tokenizer from a folder with its `FILES`, and with dict.txt if a pretrained model has this dictionary.

    Args:
        cased: Whether WordPiece keeps capitals and accents, unless the folder has a tokenizer_config.json that says it.
    Raises:
        CorpusError: A file has the wrong format, or the files belong to different tokenizers.
    """
    tokenise, pieces = LOADERS[scheme](folder, cased)
    symbols, names, dictionary = [piece for piece in pieces if piece not in FOREIGN], pieces, folder / DICTIONARY
    if dictionary.is_file():
        # `str.splitlines` would also split lines at U+2028 and other characters, which may be pieces.
        symbols = [line.split(" ")[0] for line in read_utf8(dictionary).split("\n") if line.strip()]
        if scheme == "gpt2" and all(name.isdecimal() or name.startswith("madeupword") for name in symbols):
            names = list(map(str, range(len(pieces))))  # fairseq's dictionary holds GPT-2's ids, sorted by frequency
    at = {symbol: number for number, symbol in enumerate(symbols, len(SPECIALS))}
    missing = [name for name, piece in zip(names, pieces, strict=True) if name not in at and piece not in FOREIGN]
    if missing:
        what = f"{dictionary} lacks {len(missing)} pieces of {FILES[scheme][0]} (the first is {missing[0]!r})"
        raise CorpusError(f"{what}, so the files belong to different tokenizers. Give all files of one tokenizer.")
    ids = np.array([at.get(name, UNKNOWN) for name in names], np.int64)
    begins = np.zeros(len(symbols) + len(SPECIALS), bool)
    begins[ids] = [BEGINS[scheme](piece) for piece in pieces]
    return Pieces(symbols, tokenise, ids, begins)


def _gpt2(folder: Path, cased: bool) -> tuple[Tokenise, list[str]]:
    from tokenizers import ByteLevelBPETokenizer

    try:
        tokenizer = ByteLevelBPETokenizer.from_file(str(folder / "encoder.json"), str(folder / "vocab.bpe"))
    except Exception as error:  # noqa: BLE001  (tokenizers raises Exception itself)
        what = "encoder.json and vocab.bpe are not in the format of GPT-2's vocabulary"
        raise CorpusError(f"{folder}: {what} ({error}). Fetch them again.") from None
    return _batches(tokenizer), [tokenizer.id_to_token(number) for number in range(tokenizer.get_vocab_size())]


def _batches(tokenizer: Any) -> Tokenise:
    return lambda sentences: [encoding.ids for encoding in tokenizer.encode_batch(sentences, add_special_tokens=False)]


def _wordpiece(folder: Path, cased: bool) -> tuple[Tokenise, list[str]]:
    from tokenizers import BertWordPieceTokenizer

    vocabulary = folder / "vocab.txt"
    pieces = read_utf8(vocabulary).rstrip("\n").split("\n")
    if missing := {"[UNK]", "[CLS]", "[SEP]"} - {*pieces}:
        raise CorpusError(f"{vocabulary} is not a WordPiece vocabulary: it lacks {min(missing)}. Add a line with it.")
    often = Counter(pieces)
    for line, piece in enumerate(pieces, start=1):
        if len(piece.split()) != 1 or often[piece] > 1:
            raise CorpusError.at(vocabulary, line, f"the piece {piece!r} is empty, has a space or occurs twice.")
    return _batches(BertWordPieceTokenizer(str(vocabulary), **settings(folder, cased=cased))), pieces


def settings(folder: Path, *, cased: bool) -> dict[str, bool]:
    """Return the settings of WordPiece by their names in `tokenizers`: tokenizer_config.json overrides `cased`.

    Raises:
        CorpusError: A setting is neither true nor false.
    """
    contents = read_json(folder / CONFIG)
    found = {name: contents[theirs] for name, theirs in SETTINGS.items() if contents.get(theirs) is not None}
    if wrong := [name for name, value in found.items() if not isinstance(value, bool)]:
        raise CorpusError(f"{folder / CONFIG}: {SETTINGS[wrong[0]]} must be true or false. Correct the file.")
    return {"lowercase": not cased, **found}


def _sentencepiece(folder: Path, cased: bool) -> tuple[Tokenise, list[str]]:
    import sentencepiece

    model = folder / "sentencepiece.model"
    try:
        processor = sentencepiece.SentencePieceProcessor(model_file=str(model))
    except (OSError, RuntimeError) as error:
        raise CorpusError(f"{model} is not a SentencePiece model ({' '.join(str(error).split())}).") from None
    pieces = [
        "<unk>" if processor.is_control(number) or processor.is_unknown(number) else processor.id_to_piece(number)
        for number in range(processor.vocab_size())
    ]
    return lambda sentences: processor.encode(sentences, out_type=int, num_threads=1), pieces


LOADERS = {"gpt2": _gpt2, "wordpiece": _wordpiece, "sentencepiece": _sentencepiece}


def dictionary(folder: Path, pieces: Pieces, frequencies: Ids) -> str:
    """Return the content of dict.txt: the user's file if there is one, otherwise the symbols and their frequencies."""
    if (folder / DICTIONARY).is_file():
        return read_utf8(folder / DICTIONARY)
    counted = enumerate(pieces.symbols, len(SPECIALS))
    return "".join(f"{symbol} {max(1, int(frequencies[number]))}\n" for number, symbol in counted)


def user_paths(scheme: str, path: Path) -> dict[str, Path]:
    """Return the user's tokenizer files, keyed by their names in the tokenizer's folder.

    Args:
        path: Value of --tokenizer-path: a file or folder of the tokenizer, or a folder that `import-hf` wrote.
            `import-hf` writes dict.txt one folder above the tokenizer's files; every kind of tokenizer uses this file.
    Raises:
        CorpusError: A file is missing.
    """
    folder = path / "tokenizer" if (path / "tokenizer").is_dir() else path if path.is_dir() else path.parent
    names = FILES[scheme]
    paths = {name: folder / name for name in names} if path.is_dir() or len(names) > 1 else {names[0]: path}
    if folder.name == "tokenizer" and (above := folder.parent / DICTIONARY).is_file():
        paths[DICTIONARY] = folder / DICTIONARY if (folder / DICTIONARY).is_file() else above
    if scheme == "wordpiece" and (folder / CONFIG).is_file():
        paths[CONFIG] = folder / CONFIG
    if missing := [file for file in paths.values() if not file.is_file()]:
        what = f"{missing[0]} is not a file. --tokenizer {scheme} needs {' and '.join(names)}"
        raise CorpusError(f"--tokenizer-path {path}: {what}.")
    return paths


def check_case(folder: Path, *, cased: bool) -> None:
    """Check that --cased fits the user's WordPiece vocabulary.

    A tokenizer_config.json in the same folder says whether the vocabulary is cased; otherwise it is cased if a piece
    has capitals. fairseq_posenc/hub/tokenizer/sources.py must follow the same rule.

    Raises:
        CorpusError: The vocabulary is cased and --cased is missing, or it is uncased and --cased is given.
    """
    # [UNK], [unused7] and <S> are not text; pieces of text do not begin with [ or <, which are split from words
    pieces = read_utf8(folder / "vocab.txt").split("\n")
    capitals = any(piece != piece.lower() for piece in pieces if piece[:1] not in ("[", "<"))
    if settings(folder, cased=capitals)["lowercase"] == cased:
        what, cure = ("no capitals", "Leave out") if cased else ("capitals", "Give")
        raise CorpusError(f"--tokenizer-path: the vocabulary has {what}, or {CONFIG} says so. {cure} --cased.")


def complete(scheme: str, folder: Path, *, cased: bool) -> None:
    """Write the files from which export-hf exports the tokenizer: sentencepiece.vocab, or tokenizer_config.json."""
    if scheme == "wordpiece":
        contents = {SETTINGS[name]: value for name, value in settings(folder, cased=cased).items()}
        write_whole(folder / CONFIG, json.dumps(contents) + "\n")
    if scheme == "sentencepiece":
        import sentencepiece

        model = sentencepiece.SentencePieceProcessor(model_file=str(folder / "sentencepiece.model"))
        lines = [f"{model.id_to_piece(number)}\t{model.get_score(number):.6g}\n" for number in range(len(model))]
        write_whole(folder / "sentencepiece.vocab", "".join(lines))
