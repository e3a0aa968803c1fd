"""Exchange models with Hugging Face and with stock fairseq.

The plain model, which `load` returns, needs torch and safetensors only.
"""

from __future__ import annotations

import logging
from pathlib import Path

from .model import LanguageModel, ModelConfig

__all__ = ["LanguageModel", "ModelConfig", "load"]


def load(source: str | Path) -> LanguageModel:
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
    from .folder import CHECKPOINT
    from .pretrained import read

    path = Path(source)
    model = read(path, causal=True)
    if (path / CHECKPOINT).is_file() and model.dictionary is not None:
        where = "tokenizer" if (path / "tokenizer").is_dir() else "dict.txt"
        text = "%s: the model takes the ids of %s/%s, in fairseq's order, and not the ids of the model that import-hf "
        logging.getLogger(__name__).warning(f"{text}read.", source, source, where)
    return model.model(path)
