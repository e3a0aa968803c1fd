"""Build every model of a comparison once, and compare it with the pretrained model from which it starts, so that wrong
settings are refused before hours of work.

python -m recipes.pretrain_mlm.check --output FILE --pos-enc rope [--init-from PATH] -- FLAGS OF fairseq-train
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from fairseq.data import Dictionary

from fairseq_posenc.core.refusal import RefusedError
from fairseq_posenc.core.writing import write_whole
from fairseq_posenc.hub.pretrained import read
from recipes.lib.check_models import build, configuration
from recipes.lib.encodings import parse_all

#: Flags of fairseq-train whose values must be those of the pretrained model, and the fields of its configuration. Some
#: wrong values would not prevent loading the weights, but the model would compute something else.
FIELDS = {"encoder-layers": "layers", "encoder-embed-dim": "dim", "encoder-ffn-embed-dim": "ffn"}
FIELDS |= {"encoder-attention-heads": "heads", "activation-fn": "activation", "layer-norm-eps": "layer_norm_eps"}
FIELDS |= {"encoder-normalize-before": "normalize_before"}


def compare(source: Any, model: Any) -> None:
    """Compare the configuration of the pretrained model with fairseq's configuration of the new model.

    Raises:
        ValueError: They differ; the message names both values of each flag.
    """
    pairs = {flag: (getattr(model, flag.replace("-", "_")), getattr(source, field)) for flag, field in FIELDS.items()}
    texts = [f"--{flag} is {own}, but the pretrained model has {its}" for flag, (own, its) in pairs.items() if own != its]
    if texts:
        advice = "Give the --arch of the pretrained model, or set each flag, for example --train.encoder-layers N"
        raise ValueError(f"{'; '.join(texts)}. {advice}.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--output", type=Path, required=True, metavar="FILE", help="File to write if nothing is wrong.")
    add("--pos-enc", action="append", required=True, metavar="NAME", help="Encoding to build; may be repeated.")
    add("--init-from", type=Path, metavar="PATH", help="Pretrained model.")
    add("flags", nargs="*", help="Flags of fairseq-train, given after -- and without the data folder.")
    args = parser.parse_args()
    try:
        for encoding in parse_all(args.pos_enc):
            where = f"--pos-enc {encoding.label}"
            config = configuration(encoding, args.flags)
            build(config, Dictionary())  # a dictionary with special symbols only
        if args.init_from:
            where = f"--init-from {args.init_from}"
            compare(read(args.init_from).config, config.model)
    except (RefusedError, ValueError, OSError) as error:
        sys.exit(f"error: {where}: {error}")
    write_whole(args.output, "ok\n")


if __name__ == "__main__":
    main()
