"""Check that the new model has the sizes of the pretrained model in --init-from, before any text is prepared.

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

import fairseq_posenc.models  # noqa: F401  registers the architectures
from fairseq_posenc.compat.checkpoints import CheckpointError
from fairseq_posenc.hub.model import ModelConfig
from fairseq_posenc.hub.pretrained import read
from recipes.lib.package import write_whole

#: Flags of fairseq that must agree with the pretrained model, and the fields of its configuration. Some wrong values
#: would not prevent loading the weights, but the model would compute something else.
FIELDS = {
    "encoder-layers": "layers",
    "encoder-embed-dim": "dim",
    "encoder-ffn-embed-dim": "ffn",
    "encoder-attention-heads": "heads",
    "activation-fn": "activation",
    "layer-norm-eps": "layer_norm_eps",
    "encoder-normalize-before": "normalize_before",
}


def differences(source: ModelConfig, ours: Any) -> list[str]:
    """Return a text with both values for each flag whose value differs from that of the pretrained model."""
    pairs = {flag: (getattr(ours, flag.replace("-", "_")), getattr(source, field)) for flag, field in FIELDS.items()}
    return [
        f"--{flag} is {own}, but the pretrained model has {theirs}"
        for flag, (own, theirs) in pairs.items()
        if own != theirs
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", type=Path, required=True, metavar="PATH", help="Pretrained model.")
    parser.add_argument("--output", type=Path, required=True, metavar="FILE", help="JSON file to write.")
    parser.add_argument("flags", nargs="*", help="Flags of fairseq-train, given after -- and without the data folder.")
    args = parser.parse_args()
    flags = options.parse_args_and_arch(options.get_training_parser(), ["data-bin", *args.flags])
    model = convert_namespace_to_omegaconf(flags).model
    where = f"error: --init-from {args.source}"
    try:
        source = read(args.source).config
    except (CheckpointError, ValueError, OSError) as error:
        sys.exit(f"{where}: {error}")
    if problems := differences(source, model):
        advice = "Give the --arch of the pretrained model, or set each flag, for example --train.encoder-layers N"
        sys.exit(f"{where}: {'; '.join(problems)}. {advice}.")
    facts = {field: getattr(source, field) for field in (*FIELDS.values(), "max_length", "vocabulary")}
    write_whole(args.output, json.dumps(facts, indent=1))


if __name__ == "__main__":
    main()
