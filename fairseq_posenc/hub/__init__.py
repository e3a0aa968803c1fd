"""Exchange models with Hugging Face and with stock fairseq.

The plain model, which `load` returns, needs torch and safetensors only.
"""

from __future__ import annotations

import logging
from pathlib import Path

from .causal_lm import CausalConfig, CausalLM
from .model import MaskedLM, ModelConfig

__all__ = ["CausalConfig", "CausalLM", "MaskedLM", "ModelConfig", "load"]


def load(source: str | Path) -> MaskedLM | CausalLM:
    """Load a model in plain torch, in evaluation mode: `model(input_ids, attention_mask)` gives logits.

    Args:
        source: A folder written by `export-hf` or `import-hf`, a folder with Hugging Face's BERT, RoBERTa or GPT-2, or
            a fairseq checkpoint of a masked language model or a language model. A folder with Hugging Face's own model
            keeps the ids of that model; for GPT-2, which lacks <s>, <pad> and <unk>, ids of these symbols are added.
            All other sources take the ids of dict.txt, in fairseq's order; `import-hf` and `export-hf` write a
            tokenizer with these ids. For a folder of `import-hf`, a warning says that the ids differ from those of the
            original model.
    Raises:
        CheckpointError: The source cannot be read. The message names the file and says what to do.
    """
    from ..compat.checkpoints import CheckpointError
    from . import gpt2, language_model
    from .convert import as_it_is, converted, model_of
    from .folder import CHECKPOINT
    from .pretrained import read

    path = Path(source)
    if (path / CHECKPOINT).is_file() and not (path / "config.json").exists():
        path = path / CHECKPOINT  # written by import-hf
        _say_ids(source)
    if gpt2.is_decoder(path):
        return language_model.model_of(gpt2.read(path))
    if path.is_file() and language_model.is_language_model(path):
        return language_model.model_of(language_model.of_checkpoint(path))
    if language_model.is_exported(path):
        return language_model.model_of(language_model.of_folder(path))
    pretrained = read(path)
    if any(not name.startswith(("encoder.", "embed_tokens.", "lm_head.")) for name in pretrained.tensors):
        pretrained, report = converted(pretrained, as_it_is(pretrained.config, pretrained.tensors))
        if report.new:
            name = next(iter(report.new))
            problem = f"{source} has no weight {name}, so it is not a complete masked language model"
            raise CheckpointError(f"{problem}. Give a model with all of its weights.")
    return model_of(pretrained)


def _say_ids(folder: str | Path) -> None:
    """Warn that the model takes ids in fairseq's order, not the ids of the model that `import-hf` read."""
    where = "tokenizer" if (Path(folder) / "tokenizer").is_dir() else "dict.txt"
    text = "%s: the model takes the ids of %s/%s, in fairseq's order, and not the ids of the model that import-hf read."
    logging.getLogger(__name__).warning(text, folder, folder, where)
