"""`python -m fairseq_posenc import-hf`: convert a pretrained BERT, RoBERTa or GPT-2 to any position encoding."""

from __future__ import annotations

import shlex
from argparse import Namespace
from collections.abc import Sequence

from ..encodings.building import parse, spelled_out
from . import command
from .convert import converted
from .folder import CHECKPOINT
from .ids import SPECIALS, reordered
from .pretrained import read

EXAMPLES = """examples (import-hf downloads nothing: download a model of the Hugging Face hub first):
  huggingface-cli download google-bert/bert-base-uncased --local-dir bert
  %(prog)s bert --pos-enc m4 --output bert-m4
  %(prog)s roberta --pos-enc 'learned+m4m[gate_offset=1]' --output roberta-m4m
  %(prog)s gpt2 --pos-enc rope --output gpt2-rope
  fairseq-train DATA --user-dir "$(python -m fairseq_posenc path)" --finetune-from-model bert-m4/checkpoint.pt ...
  python -c "import fairseq_posenc; model = fairseq_posenc.load('bert-m4')"
"""


def main(argv: Sequence[str]) -> int:
    """Convert the model that the command line names. Return 0, or print an error message of one line and return 1."""
    parser = command.parser(
        "import-hf",
        "Convert a pretrained BERT, RoBERTa or GPT-2 to a fairseq checkpoint with any position encoding.",
        EXAMPLES,
        "FILE_OR_FOLDER",
        "Folder of a Hugging Face model, or checkpoint of fairseq's RoBERTa.",
    )
    text = "Position encoding of the new model, for example 'm4[clip=64]'. `learned` keeps the table of positions."
    parser.add_argument("--pos-enc", required=True, metavar="NAME", help=text)
    parser.add_argument("--pos-enc-args", metavar="OPTIONS", help="More options of the position encoding.")
    text = "Maximum length in tokens. Default: the length of the source."
    parser.add_argument("--max-positions", type=int, metavar="N", help=text)
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="Random seed of the new weights (default: 1).")
    return command.run(parser, argv, _import)


def _import(args: Namespace) -> list[str]:
    """Convert the model, and return the lines to print."""
    from .checkpoint import flags, save

    original = read(args.source, causal=True)
    source = reordered(original)
    parse(args.pos_enc, args.pos_enc_args)  # an error names the flags of this command
    encoding = spelled_out(args.pos_enc, args.pos_enc_args)
    model, report = converted(source, *encoding, max_length=args.max_positions, seed=args.seed)
    save(model, report, args.output, args.source)
    lines = report.lines()
    if original.config != source.config:
        last = "; </s> is GPT-2's end of text" if model.config.causal else ", <mask>"
        lines.append(
            f"note: the ids are in fairseq's order ({', '.join(SPECIALS)}, the other pieces{last}), so they differ "
            f"from those of {args.source}. Encode text with {args.output}/dict.txt or {args.output}/tokenizer."
        )
    if model.vocabulary is None:
        lines.append(
            "note: the source has no vocabulary file. Therefore dict.txt contains numbers, and special symbols have "
            "the ids of the published models."
        )
    words = shlex.join(["--finetune-from-model", str(args.output / CHECKPOINT), *flags(model)])
    return [
        *lines,
        f"To load the model in Python: fairseq_posenc.load({str(args.output)!r})",
        "To continue training, replace DATA in this command, and add --optimizer, --lr, --batch-size and so on:",
        f'fairseq-train DATA --user-dir "$(python -m fairseq_posenc path)" {words}',
    ]
