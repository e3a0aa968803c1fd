"""Write the error message about a checkpoint that does not fit the model: what differs, and what the user can do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Settings = Mapping[str, Any]

#: settings on which the shapes or the names of the weights depend
SIZES = (
    *(f"{side}_{size}" for side in ("encoder", "decoder") for size in ("layers", "embed_dim", "ffn_embed_dim")),
    *(f"{side}_attention_heads" for side in ("encoder", "decoder")),
    *(f"{side}_normalize_before" for side in ("encoder", "decoder")),
    "layernorm_embedding",
    "share_all_embeddings",
    "share_decoder_input_output_embed",
    "untie_weights_roberta",
    "copy_mechanism",
)
ENCODING = (
    *("pos_enc", "pos_enc_args", "pos_enc_defaults"),
    *(f"pos_enc_{side}{part}" for side in ("encoder", "decoder") for part in ("", "_args")),
    "pos_enc_random",
)
LENGTHS = ("max_positions", "tokens_per_sample", "max_source_positions", "max_target_positions")
#: parts of the names of position tables, in this plugin and in fairseq
_TABLES = (".pos.", "embed_positions")


def differences(theirs: Settings, mine: Settings, names: Sequence[str]) -> list[str]:
    """Return a line for each setting in `names` that checkpoint and model both have, but with different values."""
    pairs = [(name, theirs[name], mine[name]) for name in names if name in theirs and name in mine]
    pairs = [pair for pair in pairs if pair[0] not in LENGTHS or (pair[1] and pair[2])]  # skip unset lengths
    differing = [(name, _shown(old), _shown(new)) for name, old, new in pairs if (old or None) != (new or None)]
    return [f"--{name.replace('_', '-')} is {old} in the checkpoint, {new} here" for name, old, new in differing]


def _shown(value: Any) -> str:
    return "not set" if value is None or value == "" else str(value)


def refusal(
    filename: str, settings: Sequence[str] | None, weights: Sequence[str], theirs: Settings, mine: Settings
) -> str:
    """Return the error message, which names the file and says what differs and what to do.

    Args:
        filename: Path of the checkpoint.
        settings: Lines about differing settings; None to compare the settings on which the weights depend.
        weights: Lines about weights that do not fit.
        theirs: Settings of the checkpoint.
        mine: Settings of the model.
    """
    tables = [line for line in weights if any(mark in line for mark in _TABLES)]
    others = [line for line in weights if line not in tables]
    names = [*(SIZES if others or settings else ()), *(ENCODING + LENGTHS if tables or others else ())]
    problems = list(settings) if settings else _models(theirs, mine) + differences(theirs, mine, names)
    symbols = [line for line in weights if _is_of_symbols(line)]
    shown = (symbols[:1] if not problems else []) or weights[:1]
    count = f" (and {len(weights) - 1} more)" if len(weights) > 1 else ""
    problems += [f"{line}{count}" for line in shown]
    return f"{filename} does not fit this model: {'; '.join(problems)}. {_cure(filename, others, tables, theirs, mine)}"


def _models(theirs: Settings, mine: Settings) -> list[str]:
    old, new = (settings.get("_name") or settings.get("arch") for settings in (theirs, mine))
    return [f"the checkpoint has the architecture {old}, but the model has {new}"] if old != new else []


def _is_of_symbols(line: str) -> bool:
    return "embed_tokens.weight has" in line


def _cure(filename: str, others: Sequence[str], tables: Sequence[str], theirs: Settings, mine: Settings) -> str:
    if others and all(_is_of_symbols(line) or "lm_head" in line for line in others):
        return (
            "The two dictionaries have different sizes. Binarise the data with the checkpoint's dict.txt "
            "(fairseq-preprocess --srcdict)."
        )
    name = str(theirs.get("_name") or theirs.get("arch"))
    random = theirs.get("pos_enc_random"), mine.get("pos_enc_random")
    if tables and random[0] != random[1]:
        return "Give --pos-enc-random the checkpoint's value, because it is the number of rows in the tables."
    if tables and not others and "pos_enc" in mine and ("roberta" in name or "bert" in name):
        length = mine.get("max_positions") or mine.get("tokens_per_sample")
        more = f" --max-positions {length}" if isinstance(length, int) else ""
        return (
            f"Convert the checkpoint with `python -m fairseq_posenc import-hf {filename} --pos-enc {mine['pos_enc']}"
            f"{more} --output DIR`. Or set --pos-enc and the maximum length to the values of the checkpoint."
        )
    return "Give the settings of the checkpoint, or start from another checkpoint."
