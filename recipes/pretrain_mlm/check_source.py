"""Check that a pretrained model fits the model that starts from its weights, before any text is prepared.

python -m recipes.pretrain_mlm.check_source --source DIR --output FILE -- FLAGS OF fairseq-train
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from fairseq import options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf

import fairseq_posenc  # noqa: F401  registers the architectures
from fairseq_posenc.compat.checkpoints import CheckpointError
from fairseq_posenc.hub.model import ModelConfig
from fairseq_posenc.hub.pretrained import read
from recipes.lib.package import write_whole

#: Flags of fairseq that must agree with the pretrained model, and the field of its configuration. With some of them
#: different the weights would still load, but the model would compute something else.
MEANT = {
    "encoder-layers": "layers",
    "encoder-embed-dim": "dim",
    "encoder-ffn-embed-dim": "ffn",
    "encoder-attention-heads": "heads",
    "activation-fn": "activation",
    "layer-norm-eps": "layer_norm_eps",
    "encoder-normalize-before": "normalize_before",
}


def differences(source: ModelConfig, asked: Any) -> list[str]:
    """Return a text for each flag that differs, with its value and the value of the pretrained model."""
    pairs = {flag: (getattr(asked, flag.replace("-", "_")), getattr(source, field)) for flag, field in MEANT.items()}
    return [f"--{flag} is {ours}, the model has {theirs}" for flag, (ours, theirs) in pairs.items() if ours != theirs]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("flags", nargs="*", help="after --, of fairseq-train; without data")
    asked = parser.parse_args()
    flags = options.parse_args_and_arch(options.get_training_parser(), ["data-bin", *asked.flags])
    model = convert_namespace_to_omegaconf(flags).model
    try:
        source = read(asked.source).config
    except (CheckpointError, ValueError, OSError) as error:
        sys.exit(f"error: --init-from {asked.source}: {error}")
    found = differences(source, model)
    if found:
        sys.exit(f"error: --init-from {asked.source}: {'; '.join(found)}: take its --arch, or --train.FLAG")
    facts = {field: getattr(source, field) for field in (*MEANT.values(), "max_length", "vocabulary")}
    write_whole(asked.output, json.dumps(facts, indent=1))


if __name__ == "__main__":
    main()
