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

import fairseq_posenc  # noqa: F401  registers the architectures and the types that checkpoints may contain
from fairseq_posenc.compat.checkpoints import CheckpointError
from fairseq_posenc.hub import vocabulary
from fairseq_posenc.hub.convert import as_it_is
from fairseq_posenc.hub.pretrained import read
from fairseq_posenc.models.finetuning_config import SEGMENTS
from fairseq_posenc.models.lengths import check_length, fine_tuned
from recipes.lib.checkpoints import updates
from recipes.lib.encodings import options_of, parse
from recipes.lib.package import write_whole


def facts(source: Path, tokenizer: Path | None, segments: list[str], longest: int) -> dict[str, Any]:
    """Return the encoding, the sizes and the number of updates of the pretrained model.

    Raises:
        ValueError: The encoding cannot be fine-tuned with these segments and this length.
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
        "encoding": labelled(own.pos_enc, own.pos_enc_args),
        "updates": updates(source) if source.is_file() else None,
        "parameters": sum(tensor.numel() for tensor in pretrained.tensors.values()),
        "pieces": len(symbols),
        **{name: getattr(own, name) for name in ("layers", "dim", "heads", "ffn", "max_length")},
    }


def labelled(name: str, args: str | None) -> str:
    """Return the label of an encoding, such as `m4[clip=16]`."""
    return f"{name}[{args}]" if args else name


def differs(first: str, second: str) -> bool:
    """Return whether two labels name different encodings. The spelling and the order of options do not matter."""
    one, other = parse(first), parse(second)
    return one.name != other.name or options_of(one) != options_of(other)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkpoint", type=Path, required=True)
    parser.add_argument("--tokenizer-path", type=Path)
    parser.add_argument("--pos-enc", help="the encoding that it has to have")
    parser.add_argument("--segments", action="append", default=[], choices=list(SEGMENTS))
    parser.add_argument("--longest", type=int, required=True)
    parser.add_argument("--output", type=Path, required=True)
    asked = parser.parse_args()
    try:
        report = facts(asked.checkpoint, asked.tokenizer_path, asked.segments, asked.longest)
    except (CheckpointError, ValueError, OSError) as error:
        sys.exit(f"error: --checkpoint {asked.checkpoint}: {error}")
    if asked.pos_enc and differs(asked.pos_enc, report["encoding"]):
        sys.exit(f"error: --checkpoint {asked.checkpoint} has {report['encoding']}, not {asked.pos_enc}")
    write_whole(asked.output, json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
