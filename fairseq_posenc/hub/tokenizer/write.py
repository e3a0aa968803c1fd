"""Write a tokenizer as the files that Hugging Face's packages and prepare_corpus.py read."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from ...compat.checkpoints import CheckpointError
from ..model import ModelConfig
from .read import BYTE_LEVEL, INSTALL, Tokenizer, built


def write(contents: Tokenizer, folder: Path, config: ModelConfig) -> None:
    """Write tokenizer.json, tokenizer_config.json and special_tokens_map.json.

    Args:
        contents: Contents of tokenizer.json, which `fitted` returned for this model.
        folder: Folder to write to.
        config: Settings of the model.
    Raises:
        CheckpointError: transformers is not installed, or cannot read the tokenizer.
    """
    try:
        from transformers import AddedToken, PreTrainedTokenizerFast
    except ImportError as error:
        raise CheckpointError(f"a tokenizer needs transformers ({error}). {INSTALL}") from None
    special: dict[str, Any] = {"eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}
    if not config.causal:
        special |= {"bos_token": "<s>", "cls_token": "<s>", "sep_token": "</s>"}
        special["mask_token"] = AddedToken("<mask>", lstrip=True, normalized=False, special=True)
    else:  # generation needs the last tokens of all texts in one column
        special |= {"bos_token": config.beginning, "padding_side": "left"}
    PreTrainedTokenizerFast(
        tokenizer_object=built(contents),
        model_max_length=config.max_length,
        model_input_names=["input_ids", *["token_type_ids"] * config.has_segments, "attention_mask"],
        clean_up_tokenization_spaces=False,
        **special,
        **_of_text(contents.get("normalizer") or {}),
    ).save_pretrained(folder)


def _of_text(normalizer: dict[str, Any]) -> dict[str, Any]:
    """Return the settings by which BERT's tokenizers change text; prepare_corpus.py reads them next to vocab.txt."""
    names = {"do_lower_case": "lowercase", "strip_accents": "strip_accents"}
    names |= {"tokenize_chinese_chars": "handle_chinese_chars"}
    if normalizer.get("type") != "BertNormalizer":
        return {}
    return {theirs: normalizer[ours] for theirs, ours in names.items() if ours in normalizer}


def write_training_files(source: Path, contents: Tokenizer, folder: Path) -> str:
    """Write the files of a tokenizer that data-bin-scripts/prepare_corpus.py can use to a folder.

    Args:
        source: Folder of the original tokenizer.
        contents: Contents of the original tokenizer as in tokenizer.json.
    Returns:
        An empty text, or the reason why there are no such files.
    """
    if pieces := next(iter(sorted(source.glob("*.model"))), None):
        shutil.copyfile(pieces, folder / "sentencepiece.model")
    elif contents["model"]["type"] == "WordPiece":
        built(contents).model.save(str(folder))  # vocab.txt
    elif reason := _unlike_gpt2(contents):
        return reason
    else:
        for written, name in zip(built(contents).model.save(str(folder)), BYTE_LEVEL[0], strict=True):
            Path(written).rename(folder / name)
    return ""


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
