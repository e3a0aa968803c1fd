"""Write a tokenizer as the files that Hugging Face's packages read."""

from __future__ import annotations

import json
import shutil
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
    if first is not None:  # generation needs the last tokens of all texts in one column
        settings["padding_side"] = "left"
    else:
        mask = next(token for token in contents["added_tokens"] if token["content"] == "<mask>")
        special["mask_token"] = {key: mask[key] for key in mask if key not in ("id", "special")}
    files = {"tokenizer.json": contents, "tokenizer_config.json": settings, "special_tokens_map.json": special}
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", "utf-8")


def copy_sources(source: Path, folder: Path) -> None:
    """Copy the tokenizer files that work without Hugging Face's packages, under the names that training uses."""
    names = {"vocab.txt": "vocab.txt", **{theirs: ours for ours, theirs in zip(*BYTE_LEVEL, strict=True)}}
    names |= {path.name: "sentencepiece.model" for path in source.glob("*.model")}
    for theirs, ours in names.items():
        if (source / theirs).is_file() and not (folder / ours).exists():
            shutil.copyfile(source / theirs, folder / ours)


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
