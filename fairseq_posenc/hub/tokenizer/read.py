"""Read published tokenizers, and convert them to the contents of a tokenizer.json with the same ids.

The packages tokenizers and transformers are imported when a tokenizer is read, because nothing else needs them.
"""

from __future__ import annotations

import json
import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ...compat.checkpoints import CheckpointError
from ...core.reading import read_lines, read_utf8
from ..folder import read_json

logger = logging.getLogger(__name__)

#: Contents of a tokenizer.json.
Tokenizer = dict[str, Any]

FORMS = "sentencepiece.model; vocab.txt; encoder.json and vocab.bpe; tokenizer.json"
#: Files of byte-level BPE (vocabulary, merges), as named by OpenAI and by Hugging Face.
BYTE_LEVEL = (("encoder.json", "vocab.bpe"), ("vocab.json", "merges.txt"))
INSTALL = "Run: pip install 'fairseq_posenc[hf]'"


def read(source: Path) -> tuple[Tokenizer, Path]:
    """Return the contents of a tokenizer as in tokenizer.json, and the file from which they were read.

    Args:
        source: A file of the tokenizer, or the folder of its files.
    Raises:
        CheckpointError: The file does not exist, or is not a known kind of tokenizer; the message lists the known
            kinds. Or a package is not installed.
    """
    path = _file(source)
    try:
        contents: Tokenizer = json.loads(_read(path).to_str())
    except ImportError as error:
        raise CheckpointError(f"{path}: {error}. {INSTALL}") from None
    except CheckpointError:
        raise
    except Exception as error:  # noqa: BLE001 - the packages raise nothing narrower for bad files
        raise CheckpointError(f"{path} is not a tokenizer ({error}). Give one of: {FORMS}.") from None
    return contents, path


def built(contents: Tokenizer) -> Any:
    """Return the tokenizer with the contents of a tokenizer.json.

    Raises:
        CheckpointError: The package tokenizers is not installed, or cannot read the contents.
    """
    try:
        from tokenizers import Tokenizer as Reader
    except ImportError as error:
        raise CheckpointError(f"a tokenizer.json needs the package tokenizers ({error}). {INSTALL}") from None
    try:
        return Reader.from_str(json.dumps(contents))
    except Exception as error:  # noqa: BLE001 - the package raises nothing narrower
        problem = f"the tokenizer cannot be expressed as tokenizer.json ({error})"
        raise CheckpointError(f"{problem}. Give another tokenizer.") from None


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


def _read(path: Path) -> Any:
    """Return the tokenizer of a file as an object of the package tokenizers."""
    from tokenizers import Tokenizer as Reader

    if path.suffix == ".model":
        return _sentencepiece(path)
    for names in BYTE_LEVEL:
        if path.name in names:
            return _byte_level(*(path.with_name(name) for name in names))
    return Reader.from_file(str(path)) if path.suffix == ".json" else _wordpiece(path)


def _byte_level(vocabulary: Path, merges: Path) -> Any:
    """Read the byte-level BPE of GPT-2. As in fairseq, the tokenizer adds no space before the text."""
    from tokenizers.implementations import ByteLevelBPETokenizer

    ids, pairs = read_json(vocabulary), []
    for number, line in enumerate(read_lines(merges), 1):
        if line and not line.startswith("#version"):
            left, _, right = line.partition(" ")
            if not {left, right, left + right} <= ids.keys():
                raise ValueError(f"{merges.name}:{number}: the line is not a pair of pieces of {vocabulary.name}")
            pairs.append((left, right))
    return ByteLevelBPETokenizer(ids, pairs)


def _sentencepiece(path: Path) -> Any:
    """Read a SentencePiece model, Unigram or BPE."""
    from transformers.convert_slow_tokenizer import SpmConverter

    class Converter(SpmConverter):
        handle_byte_fallback = True

    converter = Converter(SimpleNamespace(vocab_file=str(path), legacy=False))
    trained, how = converter.proto.trainer_spec, converter.proto.normalizer_spec
    if trained.treat_whitespace_as_suffix or not (how.escape_whitespaces and how.remove_extra_whitespaces):
        raise ValueError("it does not mark the space before a word, or keeps several spaces, unlike tokenizer.json")
    converter.handle_byte_fallback = bool(trained.byte_fallback)
    converter.original_tokenizer.add_prefix_space = how.add_dummy_prefix
    contents = json.loads(converter.converted().to_str())
    whole = [token for token in contents["added_tokens"] if not token["special"]]
    for token in whole:
        token["normalized"] = True  # otherwise, the normalizer would strip the space before such a symbol
    if whole:
        names = ", ".join(token["content"] for token in whole)
        loss = "if a text begins with such a symbol, tokenizer.json drops the piece before it that marks a space"
        logger.warning("%s has user-defined symbols (%s): %s", path, names, loss)
    return built(contents)


def _wordpiece(path: Path) -> Any:
    """Read a WordPiece vocabulary, such as BERT's.

    Text is lowercased if tokenizer_config.json says so, or if there is no such file and the vocabulary has no capital
    letters.
    """
    from tokenizers import BertWordPieceTokenizer
    from tokenizers.models import WordPiece

    pieces = read_utf8(path).rstrip("\n").split("\n")
    if "[UNK]" not in pieces or not any(piece.startswith("##") for piece in pieces):
        raise ValueError("a WordPiece vocabulary must have [UNK] and pieces that begin with ##")
    beside = path.with_name("tokenizer_config.json")
    config = read_json(beside) if beside.is_file() else {}
    capitals = any(piece != piece.lower() for piece in pieces if not piece.startswith(("[", "<")))
    tokenizer = BertWordPieceTokenizer(
        handle_chinese_chars=config.get("tokenize_chinese_chars", True),
        strip_accents=config.get("strip_accents"),
        lowercase=config.get("do_lower_case", not capitals),
    )
    tokenizer.model = WordPiece({piece: i for i, piece in enumerate(pieces)}, unk_token="[UNK]")
    return tokenizer
