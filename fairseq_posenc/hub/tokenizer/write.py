"""Write a tokenizer as the files that Hugging Face's packages read."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...compat.checkpoints import CheckpointError
from .sources import BYTE_LEVEL, Tokenizer

_SPECIAL = {
    "bos_token": "<s>",
    "eos_token": "</s>",
    "cls_token": "<s>",
    "sep_token": "</s>",
    "pad_token": "<pad>",
    "unk_token": "<unk>",
    "mask_token": "<mask>",
}
#: The special symbols of a language model, besides the one before each text.
_CAUSAL = {"eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}


def write(
    contents: Tokenizer, folder: Path, *, max_length: int, segments: bool = False, first: str | None = None
) -> None:
    """Write tokenizer.json, tokenizer_config.json and special_tokens_map.json.

    Args:
        contents: Contents of tokenizer.json, which `fitted` returned for the same `segments` and `first`.
        folder: Folder to write to.
        max_length: Longest text in tokens.
    Raises:
        CheckpointError: The `tokenizers` package is not installed, or cannot read the tokenizer back.
    """
    built(contents)
    special: dict[str, Any] = {**_SPECIAL} if first is None else {"bos_token": first, **_CAUSAL}
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        **special,
        "added_tokens_decoder": {
            str(token["id"]): {key: value for key, value in token.items() if key != "id"}
            for token in contents["added_tokens"]
        },
        "model_max_length": max_length,
        "model_input_names": ["input_ids", *["token_type_ids"] * segments, "attention_mask"],
        "clean_up_tokenization_spaces": False,
    }
    settings |= _of_text(contents.get("normalizer") or {})
    if first is not None:  # generation needs the last tokens of all texts in one column
        settings["padding_side"] = "left"
    else:
        mask = next(token for token in contents["added_tokens"] if token["content"] == "<mask>")
        special["mask_token"] = {key: mask[key] for key in mask if key not in ("id", "special")}
    files = {"tokenizer.json": contents, "tokenizer_config.json": settings, "special_tokens_map.json": special}
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", "utf-8")


def _of_text(normalizer: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings by which BERT's tokenizers change text; prepare_corpus.py reads them next to vocab.txt."""
    names = {"do_lower_case": "lowercase", "strip_accents": "strip_accents"}
    names |= {"tokenize_chinese_chars": "handle_chinese_chars"}
    if normalizer.get("type") != "BertNormalizer":
        return {}
    return {theirs: normalizer[ours] for theirs, ours in names.items() if ours in normalizer}


def copy_sources(source: Path, folder: Path) -> None:
    """Copy the tokenizer files that work without Hugging Face's packages, under the names that training uses."""
    names = {"vocab.txt": "vocab.txt", **{theirs: ours for ours, theirs in zip(*BYTE_LEVEL, strict=True)}}
    names |= {path.name: "sentencepiece.model" for path in source.glob("*.model")}
    for theirs, ours in names.items():
        if (source / theirs).is_file() and not (folder / ours).exists():
            shutil.copyfile(source / theirs, folder / ours)


def has_sources(folder: Path) -> bool:
    """Return whether a folder has the files of a tokenizer that data-bin-scripts/prepare_corpus.py can use."""
    forms = (("vocab.txt",), ("sentencepiece.model",), BYTE_LEVEL[0])
    return any(all((folder / name).is_file() for name in form) for form in forms)


def write_byte_level(contents: Tokenizer, folder: Path) -> None:
    """Write encoder.json and vocab.bpe, which split text as the tokenizer.json with the given contents does.

    Raises:
        ValueError: The tokenizer is not GPT-2's byte-level BPE; the message is the reason.
    """
    if reason := _unlike_gpt2(contents):
        raise ValueError(reason)
    model = contents["model"]
    merges = [pair if isinstance(pair, str) else " ".join(pair) for pair in model["merges"]]
    if wrong := next((pair for pair in merges if len(pair.split()) != 2 or pair.count(" ") != 1), None):
        raise ValueError(f"its merge {wrong!r} is not a pair of pieces")
    encoder, bpe = (folder / name for name in BYTE_LEVEL[0])
    encoder.write_text(json.dumps(model["vocab"]) + "\n", "utf-8")
    bpe.write_text("\n".join(["#version: 0.2", *merges]) + "\n", "utf-8")


#: Settings of a BPE that GPT-2 does not have, because they change how it splits text.
_UNLIKE = ("dropout", "continuing_subword_prefix", "end_of_word_suffix", "byte_fallback", "ignore_merges")


def _unlike_gpt2(contents: Tokenizer) -> str:
    """Return in which way a tokenizer differs from GPT-2's byte-level BPE, or an empty text."""
    model, level = contents["model"], contents.get("pre_tokenizer") or {}
    if model["type"] != "BPE":
        return f"its model is {model['type']}"
    if level.get("type") != "ByteLevel":
        return f"its pre_tokenizer is {level.get('type', 'null')}, not ByteLevel"
    if level.get("add_prefix_space") or not level.get("use_regex", True):
        return "its pre_tokenizer does not have add_prefix_space=false and use_regex=true"
    if contents.get("normalizer"):
        return f"its normalizer is {contents['normalizer'].get('type')}, but GPT-2 has none"
    if name := next((name for name in _UNLIKE if model.get(name)), None):
        return f"its model has {name}={model[name]!r}"
    whole = next((token for token in contents.get("added_tokens", ()) if not token.get("special")), None)
    return f"it never splits the token {whole['content']!r}" if whole else ""


def built(contents: Tokenizer) -> Any:
    """Return the tokenizer with the contents of a tokenizer.json.

    Raises:
        CheckpointError: The `tokenizers` package is not installed, or cannot read the contents.
    """
    try:
        from tokenizers import Tokenizer as Reader
    except ImportError:
        raise CheckpointError("a tokenizer.json needs the package tokenizers. Run: pip install tokenizers") from None
    try:
        return Reader.from_str(json.dumps(contents))
    except Exception as error:  # noqa: BLE001 - the package raises nothing narrower
        problem = f"the tokenizer cannot be expressed as tokenizer.json ({error})"
        raise CheckpointError(f"{problem}. Give another tokenizer.") from None
