"""Check the encoding, the length and the tokenizer of each pretrained model before hours of training.

python -m recipes.lib.finetuning.check --model shaw checkpoint_last.pt none --length 128 --output FILE
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import fairseq_posenc.models  # noqa: F401  registers the architectures and the types that checkpoints may contain
from fairseq_posenc.compat.checkpoints import CheckpointError
from fairseq_posenc.core.writing import write_whole
from fairseq_posenc.encodings import building
from fairseq_posenc.hub import vocabulary
from fairseq_posenc.hub.pretrained import read
from fairseq_posenc.models.lengths import check_length, fine_tuned
from recipes.lib.encodings import options_of, parse

SEGMENTS = {"input": "+segments-input", "head": "+segments", "none": ""}


def facts(label: str, source: Path, segments: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the encoding and the sizes of a pretrained model.

    Raises:
        ValueError: The model has another encoding, or fewer positions than --length, or cannot have these segments.
        CheckpointError: The checkpoint or its tokenizer cannot be read.
    """
    pretrained = read(source)
    spec = building.parse(pretrained.config.pos_enc, pretrained.config.pos_enc_args)
    asked, own = parse(label.removesuffix(SEGMENTS[segments])), parse(spec.label)
    if asked.names != own.names or options_of(asked) != options_of(own):
        raise ValueError(f"the model has the encoding {spec.label}, but --pos-enc asks for {asked.label}.")
    symbols, _ = vocabulary.with_tokenizer(source, arguments.tokenizer)
    pos = fine_tuned(pretrained, arguments.pos_enc_args, segments)
    advice = "Give --length LIMIT, or use another encoding."
    check_length(pos, arguments.length, "inputs", advice, "--train.pos-enc-args")
    sizes = {name: getattr(pretrained.config, name) for name in ("layers", "dim", "heads", "max_length")}
    return {"encoding": spec.label, "segments": segments, "pieces": len(symbols), **sizes}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    text = "Label of a model in the report, its checkpoint or folder, and its segment encoding; may be repeated."
    add("--model", action="append", nargs=3, required=True, metavar=("LABEL", "PATH", "SEGMENTS"), help=text)
    add("--tokenizer", type=Path, metavar="PATH", help="Tokenizer (default: the tokenizer next to the model).")
    add("--pos-enc-args", metavar="ARGS", help="Options that fine-tuning adds to the encodings.")
    add("--length", type=int, required=True, metavar="N", help="Maximum number of subword pieces of an input.")
    add("--output", type=Path, required=True, metavar="FILE", help="JSON file for the models' encodings and sizes.")
    arguments = parser.parse_args()
    report: dict[str, Any] = {}
    for label, path, segments in arguments.model:
        try:
            report[label] = facts(label, Path(path), segments, arguments)
        except (CheckpointError, ValueError, OSError) as error:
            sys.exit(f"error: --pretrained {path}: {error}")
    write_whole(arguments.output, json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
