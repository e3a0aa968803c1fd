"""Check the encoding, the length and the tokenizer of a pretrained model before it is fine-tuned.

python -m recipes.lib.check_pretrained --checkpoint MODEL --longest 128 --output FILE
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import fairseq_posenc.models  # noqa: F401  registers the architectures and the types that checkpoints may contain
from fairseq_posenc.compat.checkpoints import CheckpointError
from fairseq_posenc.encodings import building
from fairseq_posenc.hub import vocabulary
from fairseq_posenc.hub.convert import as_it_is
from fairseq_posenc.hub.pretrained import read
from fairseq_posenc.models.finetuning_config import SEGMENTS
from fairseq_posenc.models.lengths import check_length, fine_tuned
from recipes.lib.checkpoints import updates
from recipes.lib.encodings import options_of, parse
from recipes.lib.package import write_whole


def facts(source: Path, tokenizer: Path | None, segments: list[str], longest: int) -> dict[str, Any]:
    """Return the encoding, the number of updates and the sizes (such as layers and parameters) of a pretrained model.

    Raises:
        ValueError: The encoding supports fewer than `longest` positions, or cannot be combined with a segment encoding.
        CheckpointError: The checkpoint cannot be read.
    """
    pretrained = read(source)
    own = replace(pretrained.config, pos_enc=as_it_is(pretrained.config, pretrained.tensors))
    symbols, _ = vocabulary.with_tokenizer(source, tokenizer)
    for kind in segments:
        pos = fine_tuned(pretrained, segments=kind)
        longer = f"python -m fairseq_posenc import-hf {source} --pos-enc {own.pos_enc} --output LONGER --pos-enc-args"
        check_length(pos, longest, "items", "Give --longest LIMIT, or use another encoding.", longer)
    return {
        "encoding": building.parse(own.pos_enc, own.pos_enc_args).label,
        "updates": updates(source) if source.is_file() else None,
        "parameters": sum(tensor.numel() for tensor in pretrained.tensors.values()),
        "pieces": len(symbols),
        **{name: getattr(own, name) for name in ("layers", "dim", "heads", "ffn", "max_length")},
    }


def differs(first: str, second: str) -> bool:
    """Return whether two labels name different encodings. The order of options does not matter, and an option with its
    default value counts as an option that is not given.
    """
    left, right = parse(first), parse(second)
    return left.name != right.name or options_of(left) != options_of(right)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--checkpoint", type=Path, required=True, metavar="PATH", help="Pretrained model: a checkpoint or a folder.")
    add("--tokenizer-path", type=Path, metavar="PATH", help="Tokenizer (default: the tokenizer next to the model).")
    add("--pos-enc", metavar="NAME", help="Encoding that the model must have (default: accept any).")
    text = "Segment encoding with which the model is fine-tuned; the option may be repeated."
    add("--segments", action="append", default=[], choices=list(SEGMENTS), help=text)
    add(
        "--longest",
        type=int,
        required=True,
        metavar="N",
        help="Maximum number of subword pieces in an input for fine-tuning.",
    )
    add("--output", type=Path, required=True, metavar="FILE", help="JSON file for the model's encoding and sizes.")
    args = parser.parse_args()
    where = f"error: --checkpoint {args.checkpoint}"
    try:
        report = facts(args.checkpoint, args.tokenizer_path, args.segments, args.longest)
    except (CheckpointError, ValueError, OSError) as error:
        sys.exit(f"{where}: {error}")
    if args.pos_enc and differs(args.pos_enc, report["encoding"]):
        sys.exit(f"{where}: the model has the encoding {report['encoding']}, but --pos-enc asks for {args.pos_enc}.")
    write_whole(args.output, json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
