"""Check that a pretrained model's encoding can be built for windows of --max-length, before questions are prepared.

python -m recipes.lib.finetuning.questions.check --checkpoint MODEL --max-length N --output FILE -- TRAINING_FLAGS
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from fairseq import options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf

import fairseq_posenc.models  # noqa: F401  registers the architectures
from fairseq_posenc.compat.checkpoints import CheckpointError
from fairseq_posenc.encodings.building import build, parse
from fairseq_posenc.hub.convert import as_it_is
from fairseq_posenc.hub.pretrained import read
from fairseq_posenc.models.finetuning import encoding
from fairseq_posenc.tasks.squad import check_windows
from recipes.lib.package import write_whole


def facts(source: Path, longest: int, model: Any) -> dict[str, Any]:
    """Return the encodings of the fine-tuned and the pretrained model, and the pretrained model's sizes.

    Args:
        source: Checkpoint or folder of the pretrained model.
        longest: Maximum length of a window in subword pieces.
        model: fairseq's configuration of the fine-tuned model.
    Raises:
        ValueError: The encoding cannot be built, or is not defined for windows of `longest` pieces.
    """
    pretrained = read(source)
    own = replace(pretrained.config, pos_enc=as_it_is(pretrained.config, pretrained.tensors))
    name, args = encoding(own, model.pos_enc, model.pos_enc_args, str(model.segments))
    with torch.device("meta"):
        pos = build(name, args, own.stack)
    check_windows(pos, longest)
    sizes = {field: getattr(own, field) for field in ("layers", "dim", "heads", "max_length", "vocabulary")}
    labels = {"encoding": parse(name, args).label, "pretrained": parse(own.pos_enc, own.pos_enc_args).label}
    return {**labels, **sizes}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    option = parser.add_argument
    option("--checkpoint", type=Path, required=True, metavar="PATH", help="Pretrained model: a checkpoint or a folder.")
    option("--max-length", type=int, required=True, metavar="N", help="Maximum length of a window in pieces.")
    option("--output", type=Path, required=True, metavar="FILE", help="JSON file for the model's encodings and sizes.")
    option("flags", nargs="*", help="Flags of fairseq-train, given after -- and without the data folder.")
    arguments = parser.parse_args()
    flags = options.parse_args_and_arch(options.get_training_parser(), ["data-bin", *arguments.flags])
    model = convert_namespace_to_omegaconf(flags).model
    try:
        report = facts(arguments.checkpoint, arguments.max_length, model)
    except (CheckpointError, ValueError, OSError) as error:
        sys.exit(f"error: --checkpoint {arguments.checkpoint}: {error}")
    write_whole(arguments.output, json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
