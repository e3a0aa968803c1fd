"""Change a tokenizer, so that it uses the ids and the special symbols of fairseq's dictionary."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...compat.checkpoints import CheckpointError
from ...data.words import MASK
from ..ids import SPECIALS
from .read import Tokenizer, built

#: BERT's special symbols, and their names in fairseq.
ALIASES = {"[CLS]": "<s>", "[PAD]": "<pad>", "[SEP]": "</s>", "[UNK]": "<unk>", "[MASK]": MASK}
#: Pieces that never result from splitting text, so that a dictionary need not contain them.
NO_TEXT = {*SPECIALS, MASK, *ALIASES, "<|endoftext|>"}
#: A space in GPT-2's alphabet of bytes.
BYTE_SPACE = "\u0120"
#: Fraction of the pieces that may be missing on either side. Rare pieces may be missing in the text from which the
#: dictionary was made.
FEW = 0.01


def fitted(
    source: Tokenizer,
    symbols: Sequence[str],
    where: Path,
    *,
    segments: bool = False,
    first: str | None = None,
) -> tuple[Tokenizer, list[str]]:
    """Return a tokenizer.json's contents, and the pieces of `source` that it omits because the dictionary lacks them.

    Args:
        source: Tokenizer to convert, with its own ids.
        symbols: The symbols of the dictionary in the order of their ids; for a masked language model with <mask>.
        where: The file of the tokenizer, for error messages.
        segments: Whether the second text of a pair is segment 1.
        first: Symbol before each text of a language model, </s> or <s>; None for a masked language model.
    Raises:
        CheckpointError: The tokenizer does not belong to this dictionary, or its ids are not in fairseq's order.
    """
    if tuple(symbols[: len(SPECIALS)]) != SPECIALS or (first is None and MASK not in symbols):
        raise CheckpointError(f"{where}: the model's ids are not in fairseq's order. Convert the model with import-hf.")
    model = source["model"]
    own = _scores(model, source.get("added_tokens") or ())
    names = _named(symbols, model["vocab"])
    ids = {name: i for i, name in enumerate(names)}
    lacking = [piece for piece in own if piece not in ids and _is_text(piece)]
    _check(own, names, lacking, where)
    from tokenizers import AddedToken

    unset = dict.fromkeys(("truncation", "padding", "post_processor"))
    tokenizer = built({**source, **unset, "added_tokens": [], "model": _model(model, own, names, ids)})
    special = [name for name in (*SPECIALS, MASK) if name in ids]
    # <mask> absorbs the space before it, which belongs to the masked word
    tokenizer.add_special_tokens([AddedToken(name, lstrip=name == MASK, normalized=False) for name in special])
    whole = [token for token in source.get("added_tokens") or () if not token.get("special")]
    whole = [AddedToken(t["content"], normalized=bool(t.get("normalized"))) for t in whole if t["content"] in ids]
    tokenizer.add_tokens(whole)
    tokenizer.post_processor = _template(ids, segments, first)
    contents: Tokenizer = json.loads(tokenizer.to_str())
    return contents, lacking


def _scores(model: Mapping[str, Any], added: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Return the score of each piece of the tokenizer; 0 if it has no scores."""
    vocabulary = model["vocab"]
    own = dict.fromkeys(vocabulary, 0.0) if isinstance(vocabulary, Mapping) else {p: float(s) for p, s in vocabulary}
    for token in added:
        if not token.get("special"):
            own.setdefault(token["content"], 0.0)
    return own


def _is_text(piece: str) -> bool:
    """Return whether text may contain this piece.

    Text contains neither special symbols nor the unused entries of vocabularies (madeupword0, [unused0]).
    """
    return piece not in NO_TEXT and not re.fullmatch(r"madeupword\d+|\[unused\d+\]", piece)


def _named(symbols: Sequence[str], vocabulary: Any) -> list[str]:
    """Return the pieces of the dictionary.

    If the dictionary contains GPT-2's ids instead of pieces, as for fairseq's RoBERTa, look up the pieces of these ids.
    """
    text = [symbol for symbol in symbols if _is_text(symbol)]
    byte_level = isinstance(vocabulary, Mapping) and any(piece.startswith(BYTE_SPACE) for piece in vocabulary)
    if not byte_level or not all(symbol.isdecimal() for symbol in text):
        return list(symbols)
    pieces = {str(number): piece for piece, number in vocabulary.items() if piece not in SPECIALS and piece != MASK}
    return [pieces.get(symbol, symbol) for symbol in symbols]


def _check(own: Mapping[str, float], names: Sequence[str], lacking: Sequence[str], where: Path) -> None:
    """Raise CheckpointError if the tokenizer belongs to another dictionary."""
    letters = {piece for piece in own if len(piece) == 1}
    # SentencePiece leaves text with unknown letters unchanged, so such text can get into dictionaries.
    extra = [name for name in names if name not in own and _is_text(name)]
    extra = [name for name in extra if letters & set(name)]
    if len(lacking) + len(extra) <= FEW * len(own):
        return
    lacks = (("dictionary", lacking, f"tokenizer's {len(own)}"), ("tokenizer", extra, f"dictionary's {len(names)}"))
    differences = (f"the {one} lacks {len(x)} of the {other} pieces ({_first(x)})" for one, x, other in lacks if x)
    raise CheckpointError(
        f"{where} is not the tokenizer of this model: {', and '.join(differences)}. Give the tokenizer that split "
        "the model's training text, or export without a tokenizer (--tokenizer none)."
    )


def _first(pieces: Sequence[str]) -> str:
    return ", ".join(map(repr, pieces[:3])) + (", ..." if len(pieces) > 3 else "")


def _model(model: Mapping[str, Any], own: Mapping[str, float], names: Sequence[str], ids: Mapping[str, int]) -> Any:
    fitted_model = dict(model)
    if model["type"] == "Unigram":
        least = min(own.values())
        fitted_model["vocab"] = [(name, 0.0 if name in NO_TEXT else own.get(name, least)) for name in names]
        fitted_model["unk_id"] = SPECIALS.index("<unk>")
        return fitted_model
    fitted_model["vocab"] = dict(ids)
    if model.get("unk_token") is not None:
        unknown = model["unk_token"]
        fitted_model["unk_token"] = unknown if unknown in ids else ALIASES.get(unknown, "<unk>")
    if model["type"] == "BPE":
        fitted_model["merges"] = [pair for pair in model["merges"] if {*pair, "".join(pair)} <= ids.keys()]
    return fitted_model


def _template(ids: Mapping[str, int], segments: bool, first: str | None) -> Any:
    """Return the template that adds special symbols.

    For masked language models: <s> a </s>, and for two texts, as in RoBERTa, <s> a </s></s> b </s>. For language
    models, whose texts begin with </s>: </s> a.
    """
    from tokenizers.processors import TemplateProcessing

    if first is None:
        second, names = int(segments), ["<s>", "</s>"]
        single, pair = "<s> $A </s>", f"<s> $A </s> </s>:{second} $B:{second} </s>:{second}"
    else:
        single, pair, names = f"{first} $A", f"{first} $A $B", [first]
    return TemplateProcessing(single=single, pair=pair, special_tokens=[(name, ids[name]) for name in names])
