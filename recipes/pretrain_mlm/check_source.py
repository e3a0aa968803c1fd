"""Check that the new model has the sizes of the pretrained model in --init-from, before any text is prepared.

python -m recipes.pretrain_mlm.check_source --source PATH --output FILE -- FLAGS OF fairseq-train
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from fairseq import options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf

import fairseq_posenc.models  # noqa: F401  registers the architectures
from fairseq_posenc.core.refusal import RefusedError
from fairseq_posenc.core.writing import write_whole
from fairseq_posenc.hub.pretrained import read

#: Flags of fairseq-train whose values must be those of the pretrained model, and the fields of its configuration. Some
#: wrong values would not prevent loading the weights, but the model would compute something else.
FIELDS = {"encoder-layers": "layers", "encoder-embed-dim": "dim", "encoder-ffn-embed-dim": "ffn"}
FIELDS |= {"encoder-attention-heads": "heads", "activation-fn": "activation", "layer-norm-eps": "layer_norm_eps"}
FIELDS |= {"encoder-normalize-before": "normalize_before"}


def differences(source: Any, model: Any) -> list[str]:
    """Return a text with both values for each flag whose value differs from that of the pretrained model."""
    pairs = {flag: (getattr(model, flag.replace("-", "_")), getattr(source, field)) for flag, field in FIELDS.items()}
    return [
        f"--{flag} is {own}, but the pretrained model has {its}" for flag, (own, its) in pairs.items() if own != its
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", type=Path, required=True, metavar="PATH", help="Pretrained model.")
    parser.add_argument("--output", type=Path, required=True, metavar="FILE", help="File to write if the sizes agree.")
    parser.add_argument("flags", nargs="*", help="Flags of fairseq-train, given after -- and without the data folder.")
    args = parser.parse_args()
    flags = options.parse_args_and_arch(options.get_training_parser(), ["data-bin", *args.flags])
    try:
        problems = differences(read(args.source).config, convert_namespace_to_omegaconf(flags).model)
    except (RefusedError, ValueError, OSError) as error:
        sys.exit(f"error: --init-from {args.source}: {error}")
    if problems:
        advice = "Give the --arch of the pretrained model, or set each flag, for example --train.encoder-layers N"
        sys.exit(f"error: --init-from {args.source}: {'; '.join(problems)}. {advice}.")
    write_whole(args.output, "the sizes agree\n")


if __name__ == "__main__":
    main()
