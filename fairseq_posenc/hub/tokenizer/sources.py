"""Read published tokenizers, and convert them to the contents of a tokenizer.json with the same ids."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ...compat.checkpoints import CheckpointError
from ...core.reading import read_lines

#: Contents of a tokenizer.json.
Tokenizer = dict[str, Any]

FORMS = "sentencepiece.model; vocab.txt; encoder.json and vocab.bpe; tokenizer.json"
#: Files of byte-level BPE (vocabulary, merges), as named by OpenAI and by Hugging Face.
BYTE_LEVEL = (("encoder.json", "vocab.bpe"), ("vocab.json", "merges.txt"))


def read(source: Path) -> tuple[Tokenizer, Path]:
    """Return the contents of a tokenizer as in tokenizer.json, and the file from which they were read.

    Args:
        source: A file of the tokenizer, or the folder of its files.
    Raises:
        CheckpointError: The file does not exist, or is not a known kind of tokenizer; the message lists the known
            kinds.
    """
    path = _file(source)
    try:
        return _reader(path)(path), path
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CheckpointError(f"{path} is not a tokenizer ({error}). Give one of: {FORMS}.") from None


def beside(dictionary: Path) -> Path | None:
    """Return tokenizer/ next to a dict.txt or (for data in shards) one folder higher; None if neither folder exists."""
    folders = (dictionary.parent / "tokenizer", dictionary.parent.parent / "tokenizer")
    return next((folder for folder in folders if folder.is_dir()), None)


def _file(source: Path) -> Path:
    if source.is_file():
        return source
    if not source.is_dir():
        raise CheckpointError(f"{source} does not exist. Give a tokenizer ({FORMS}) or its folder.")
    known = [source / "tokenizer.json", *sorted(source.glob("*.model")), source / "vocab.txt"]
    known += [source / vocabulary for vocabulary, _ in BYTE_LEVEL]
    files = [path for path in known if path.is_file()]
    if not files:
        raise CheckpointError(f"{source} contains no tokenizer. Give one of: {FORMS}.")
    return files[0]


def _reader(path: Path) -> Callable[[Path], Tokenizer]:
    if path.suffix == ".model":
        from .sentencepieces import read as sentencepiece  # imported here because it needs the package

        return sentencepiece
    if path.name in {name for pair in BYTE_LEVEL for name in pair}:
        return _byte_level
    return _whole if path.suffix == ".json" else _wordpiece


def _whole(path: Path) -> Tokenizer:
    contents: Tokenizer = json.loads(path.read_text("utf-8"))
    if contents["model"]["type"] not in ("BPE", "WordPiece", "Unigram"):
        raise ValueError(f"its model is {contents['model']['type']}, but only BPE, WordPiece and Unigram are supported")
    return contents


def _byte_level(path: Path) -> Tokenizer:
    """Read the byte-level BPE of GPT-2. As in fairseq, the tokenizer adds no space before the text."""
    names = next(pair for pair in BYTE_LEVEL if path.name in pair)
    vocabulary, merges = (path.with_name(name) for name in names)
    pairs = []
    for number, line in enumerate(read_lines(merges), 1):
        if line and not line.startswith("#version"):
            pairs.append(line.split(" "))
            if len(pairs[-1]) != 2:
                raise ValueError(f"{merges.name}:{number}: the line is not a pair of pieces")
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {
        "normalizer": None,
        "pre_tokenizer": level,
        "decoder": level,
        "model": {"type": "BPE", "vocab": json.loads(vocabulary.read_text("utf-8")), "merges": pairs},
    }


def _wordpiece(path: Path) -> Tokenizer:
    """Read a WordPiece vocabulary, such as BERT's.

    Text is lowercased if tokenizer_config.json says so, or if there is no such file and the vocabulary has no capital
    letters.
    """
    pieces = path.read_text("utf-8").rstrip("\n").split("\n")
    if "[UNK]" not in pieces or not any(piece.startswith("##") for piece in pieces):
        raise ValueError("a WordPiece vocabulary must have [UNK] and pieces that begin with ##")
    beside = path.with_name("tokenizer_config.json")
    config = _settings(beside) if beside.is_file() else {}
    capitals = any(piece != piece.lower() for piece in pieces if not piece.startswith(("[", "<")))
    normalizer = {
        "type": "BertNormalizer",
        "clean_text": True,
        "handle_chinese_chars": config.get("tokenize_chinese_chars", True),
        "strip_accents": config.get("strip_accents"),
        "lowercase": config.get("do_lower_case", not capitals),
    }
    model = {
        "type": "WordPiece",
        "unk_token": "[UNK]",
        "continuing_subword_prefix": "##",
        "max_input_chars_per_word": 100,
        "vocab": {piece: i for i, piece in enumerate(pieces)},
    }
    decoder = {"type": "WordPiece", "prefix": "##", "cleanup": True}
    return {"normalizer": normalizer, "pre_tokenizer": {"type": "BertPreTokenizer"}, "decoder": decoder, "model": model}


def _settings(path: Path) -> dict[str, Any]:
    try:
        settings = json.loads(path.read_text("utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path.name} is not valid JSON: {error}") from None
    if not isinstance(settings, dict):
        raise ValueError(f"{path.name} is not a JSON object with settings")
    return settings
