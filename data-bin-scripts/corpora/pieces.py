"""Convert text to the ids of a fairseq dictionary with GPT-2's BPE, WordPiece or SentencePiece.

The ids follow the order of `dict.txt`, after fairseq's four special symbols. The fairseq task adds
<mask> as the last symbol.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from shared import CorpusError, read_utf8

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


def load(scheme: str, folder: Path) -> Pieces:
    """Load a tokenizer from a folder with its `FILES`, and with dict.txt if a pretrained model has this dictionary.

    Raises:
        CorpusError: A file has the wrong format, or the files belong to different tokenizers.
    """
    from fairseq_posenc.data.words import SCHEMES

    tokenise, pieces = (_sentencepiece if scheme == "sentencepiece" else _subwords)(folder / FILES[scheme][0])
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
    begins[ids] = [SCHEMES[scheme].begins(piece) for piece in pieces]
    return Pieces(symbols, tokenise, ids, begins)


def _subwords(file: Path) -> tuple[Tokenise, list[str]]:
    """Return GPT-2's BPE or WordPiece, and its pieces. tokenizer_config.json or its capitals say if it is cased."""
    from fairseq_posenc.hub.tokenizer import built, read  # takes seconds, which --help does not need

    tokenizer = built(read(file)[0])
    pieces = [tokenizer.id_to_token(number) for number in range(tokenizer.get_vocab_size())]
    if bad := [line for line, piece in enumerate(pieces, start=1) if piece is None or len(piece.split()) != 1]:
        raise CorpusError.at(file, bad[0], "the piece is empty, has a space or occurs twice. Correct the file.")
    return lambda texts: [code.ids for code in tokenizer.encode_batch(texts, add_special_tokens=False)], pieces


def _sentencepiece(file: Path) -> tuple[Tokenise, list[str]]:
    import sentencepiece

    try:
        model = sentencepiece.SentencePieceProcessor(model_file=str(file))
    except (OSError, RuntimeError) as error:
        raise CorpusError(f"{file} is not a SentencePiece model ({' '.join(str(error).split())}).") from None
    texts = [number for number in range(len(model)) if not (model.is_control(number) or model.is_unknown(number))]
    pieces = ["<unk>"] * len(model)
    for number in texts:
        pieces[number] = model.id_to_piece(number)
    return lambda sentences: model.encode(sentences, out_type=int, num_threads=1), pieces


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
