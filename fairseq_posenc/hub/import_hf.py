"""`python -m fairseq_posenc import-hf`: convert a pretrained BERT or RoBERTa to any position encoding."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from ..compat.checkpoints import CheckpointError
from .convert import converted
from .folder import CHECKPOINT
from .model import ModelConfig
from .pretrained import SPECIALS, read, reordered

EXAMPLES = """examples (import-hf downloads nothing: download a model of the Hugging Face hub first):
  huggingface-cli download google-bert/bert-base-uncased --local-dir bert
  import-hf bert --pos-enc m4 --output bert-m4
  import-hf roberta --pos-enc learned+m4m --pos-enc-args gate_offset=1 --output roberta-m4m
  fairseq-train DATA --user-dir "$(python -m fairseq_posenc path)" --finetune-from-model bert-m4/checkpoint.pt ...
  python -c "import fairseq_posenc; model = fairseq_posenc.load('bert-m4')"
"""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m fairseq_posenc import-hf",
        description="Convert a pretrained BERT or RoBERTa to a fairseq checkpoint with any position encoding.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "source",
        metavar="FILE_OR_FOLDER",
        type=Path,
        help="Folder of a Hugging Face model, or checkpoint of fairseq's RoBERTa.",
    )
    parser.add_argument(
        "--pos-enc",
        required=True,
        metavar="NAME",
        help="Position encoding of the new model, as in fairseq-train. `learned` keeps the table of positions.",
    )
    parser.add_argument("--pos-enc-args", metavar="OPTIONS", help="Options of the position encoding, such as clip=64.")
    parser.add_argument(
        "--max-positions", type=int, metavar="N", help="Maximum length in tokens. Default: that of the source model."
    )
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="Random seed of the new weights (default: 1).")
    parser.add_argument(
        "--output", required=True, type=Path, metavar="DIR", help="Folder to write, which must be new or empty."
    )
    return parser


def special_ids(config: ModelConfig) -> tuple[int | None, ...]:
    """Return the ids of the special tokens, which tell whether two vocabularies have the same order."""
    return config.bos, config.pad, config.eos, config.unk, config.mask


def main(argv: Sequence[str]) -> int:
    """Convert the model that the command line names. Return 0, or print an error message of one line and return 1."""
    args = _parser().parse_args(argv)
    try:
        from .checkpoint import flags, save

        original = read(args.source)
        source = reordered(original)
        encoding = (args.pos_enc, args.pos_enc_args)
        model, report = converted(source, *encoding, max_length=args.max_positions, seed=args.seed)
        save(model, report, args.output, args.source)
    except ModuleNotFoundError as error:
        print(
            f"import-hf: {error}. Install fairseq; `python -m fairseq_posenc doctor` checks the installation.",
            file=sys.stderr,
        )
        return 1
    except (CheckpointError, ValueError, OSError) as error:
        print(f"import-hf: {error}", file=sys.stderr)
        return 1
    print("\n".join(report.lines()))
    if special_ids(original.config) != special_ids(source.config):
        print(
            f"note: the ids are in fairseq's order ({', '.join(SPECIALS)}, the other pieces, <mask>), so they "
            f"differ from those of {args.source}. Encode text with {args.output}/dict.txt or {args.output}/tokenizer."
        )
    if model.vocabulary is None:
        print(
            "note: the source has no vocabulary file. Therefore dict.txt contains numbers, and special symbols have "
            "the ids of the published models."
        )
    print(f"To load the model in Python: fairseq_posenc.load({str(args.output)!r})")
    start = f"--finetune-from-model {args.output / CHECKPOINT} --arch posenc_roberta"
    print(f"To continue training, give fairseq-train these flags: {start} {' '.join(flags(model))}")
    return 0
