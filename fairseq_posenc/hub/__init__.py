"""Exchange models with Hugging Face and with stock fairseq.

The plain model, which `load` returns, needs torch and safetensors only.
"""

from __future__ import annotations

from pathlib import Path

from .model import MaskedLM, ModelConfig

__all__ = ["MaskedLM", "ModelConfig", "load"]


def load(source: str | Path) -> MaskedLM:
    """Load a masked language model in plain torch, in evaluation mode: `model(input_ids, attention_mask)` gives logits.

    Args:
        source: A folder written by `export-hf` or `import-hf`, a folder with Hugging Face's BERT or RoBERTa, or a
            fairseq checkpoint.
    Raises:
        CheckpointError: The source cannot be read. The message names the file and says what to do.
    """
    from ..compat.checkpoints import CheckpointError
    from .convert import as_it_is, converted, model_of
    from .pretrained import read

    pretrained = read(Path(source))
    if any(not name.startswith(("encoder.", "embed_tokens.", "lm_head.")) for name in pretrained.tensors):
        pretrained, report = converted(pretrained, as_it_is(pretrained.config, pretrained.tensors))
        if report.made:
            name = next(iter(report.made))
            problem = f"{source} has no weight {name}, so it is not a complete masked language model"
            raise CheckpointError(f"{problem}. Give a model with all of its weights.")
    return model_of(pretrained)
