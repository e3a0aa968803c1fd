"""Convert a SentencePiece model, Unigram or BPE, to the contents of a tokenizer.json."""

from __future__ import annotations

import base64
import logging
from pathlib import Path
from typing import Any

from ...compat.checkpoints import CheckpointError

logger = logging.getLogger(__name__)

SPACE = "\u2581"
#: Types of pieces in the proto of SentencePiece. The other types are text.
UNKNOWN, CONTROL, USER_DEFINED = 2, 3, 4
UNIGRAM, BPE = 1, 2


def read(path: Path) -> dict[str, Any]:
    """Read a SentencePiece model and return it as a tokenizer.

    Raises:
        CheckpointError: sentencepiece is not installed, or tokenizer.json cannot express the model.
    """
    model = _proto(path)
    trained, how = model.trainer_spec, model.normalizer_spec
    if trained.model_type not in (UNIGRAM, BPE):
        problem = f"{path} is a model of words or characters, but only Unigram and BPE can be exported"
        raise CheckpointError(f"{problem}. Give another tokenizer.")
    if trained.treat_whitespace_as_suffix or not how.escape_whitespaces:
        problem = f"{path} does not mark the space before a word, but tokenizer.json requires this mark"
        raise CheckpointError(f"{problem}. Give another tokenizer.")
    whole = [piece.piece for piece in model.pieces if piece.type == USER_DEFINED]
    if whole:
        loss = "tokenizer.json drops a space before these symbols, which SentencePiece keeps as a piece of its own"
        logger.warning("%s has user-defined symbols (%s): %s", path, ", ".join(whole), loss)
    space = {"type": "Metaspace", "replacement": SPACE, "split": True}
    space["prepend_scheme"] = "first" if how.add_dummy_prefix else "never"
    return {
        "normalizer": _normalizer(how),
        "pre_tokenizer": space,
        "decoder": space,
        "model": _unigram(model) if trained.model_type == UNIGRAM else _bpe(model),
        "added_tokens": [_whole(piece) for piece in whole],
    }


def _proto(path: Path) -> Any:
    try:
        from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
        from sentencepiece import sentencepiece_model_pb2
    except ImportError as error:
        raise CheckpointError(f"{path}: {error}. Run: pip install sentencepiece protobuf") from None
    model = sentencepiece_model_pb2.ModelProto()
    try:
        model.ParseFromString(path.read_bytes())
    except DecodeError:
        raise CheckpointError(f"{path} is not a SentencePiece model. Give another file.") from None
    return model


def _normalizer(how: Any) -> dict[str, Any]:
    steps: list[dict[str, Any]] = []
    if how.precompiled_charsmap:
        charsmap = base64.b64encode(how.precompiled_charsmap).decode()
        steps.append({"type": "Precompiled", "precompiled_charsmap": charsmap})
    if how.remove_extra_whitespaces:
        steps.append({"type": "Strip", "strip_left": False, "strip_right": True})
        steps.append({"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "})
    return {"type": "Sequence", "normalizers": steps}


def _pieces(model: Any) -> list[tuple[str, float]]:
    """Return the pieces with their scores, without control symbols. The unknown piece is <unk>, as in fairseq."""
    named = [("<unk>" if piece.type == UNKNOWN else piece.piece, piece) for piece in model.pieces]
    return [(name, piece.score) for name, piece in named if piece.type != CONTROL]


def _unigram(model: Any) -> dict[str, Any]:
    pieces = _pieces(model)
    unknown = next(i for i, (name, _) in enumerate(pieces) if name == "<unk>")
    fallback = bool(model.trainer_spec.byte_fallback)
    return {"type": "Unigram", "unk_id": unknown, "vocab": pieces, "byte_fallback": fallback}


def _bpe(model: Any) -> dict[str, Any]:
    """Return a BPE model.

    Merges are sorted by score, because SentencePiece merges the pair whose result has the best score.
    """
    scores = dict(_pieces(model))
    pairs = [
        (-scores[piece], index, [piece[:cut], piece[cut:]])
        for index, piece in enumerate(scores)
        for cut in range(1, len(piece))
        if piece[:cut] in scores and piece[cut:] in scores
    ]
    return {
        "type": "BPE",
        "unk_token": "<unk>",
        "fuse_unk": True,
        "byte_fallback": bool(model.trainer_spec.byte_fallback),
        "vocab": {piece: i for i, piece in enumerate(scores)},
        "merges": [pair for _, _, pair in sorted(pairs)],
    }


def _whole(piece: str) -> dict[str, Any]:
    return {"content": piece, "normalized": False, "special": False}
