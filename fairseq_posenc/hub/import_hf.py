"""`python -m fairseq_posenc import-hf`: convert a pretrained BERT or RoBERTa to any position encoding."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from ..compat.checkpoints import CheckpointError
from .convert import converted
from .pretrained import read, reordered

EXAMPLES = """examples:
  import-hf bert-base-uncased --pos-enc m4 --output bert-m4
  import-hf roberta-base --pos-enc learned+m4m --pos-enc-args gate_offset=1 --output roberta-m4m
  fairseq-train DATA --user-dir "$(python -m fairseq_posenc path)" --finetune-from-model bert-m4/checkpoint.pt ...
"""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m fairseq_posenc import-hf",
        description="Convert a pretrained BERT or RoBERTa to a checkpoint of fairseq's, with any position encoding.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "source", metavar="DIR", type=Path, help="Folder of Hugging Face's, or a checkpoint of fairseq's RoBERTa."
    )
    parser.add_argument(
        "--pos-enc",
        required=True,
        metavar="NAME",
        help="Position encoding, as of fairseq-train; `learned` keeps the table.",
    )
    parser.add_argument("--pos-enc-args", metavar="OPTIONS", help="Options of the position encoding.")
    parser.add_argument(
        "--max-positions", type=int, metavar="N", help="Longest sequence, in tokens. Default: the source's."
    )
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="Random seed of new tables (default: 1).")
    parser.add_argument(
        "--output", required=True, type=Path, metavar="PATH", help="Folder for checkpoint.pt, dict.txt and report.json."
    )
    return parser


def main(argv: Sequence[str]) -> int:
    """Convert as the command line says. Return 0, or 1 after printing an error of one line."""
    args = _parser().parse_args(argv)
    try:
        from .checkpoint import CHECKPOINT, flags, save

        source = reordered(read(args.source))
        given = (args.pos_enc, args.pos_enc_args)
        made, report = converted(source, *given, max_length=args.max_positions, seed=args.seed)
        save(made, report, args.output, args.source)
    except ModuleNotFoundError as error:
        print(f"import-hf: {error}: it needs fairseq (python -m fairseq_posenc doctor)", file=sys.stderr)
        return 1
    except (CheckpointError, ValueError, OSError) as error:
        print(f"import-hf: {error}", file=sys.stderr)
        return 1
    print("\n".join(report.lines()))
    if made.vocabulary is None:
        print(
            "note: the source has no vocabulary file: special symbols have the published models' ids, dict.txt numbers"
        )
    start = f"--finetune-from-model {args.output / CHECKPOINT} --arch posenc_roberta"
    print(f"go on training: {start} {' '.join(flags(made))}")
    return 0
