"""Build every model of a comparison once, so that a wrong option or length is refused before hours of training.

python -m recipes.lm_wikitext103.check --output FILE --pos-enc xl --trained 300 --longest 704 -- FLAGS OF fairseq-train
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from fairseq import options
from fairseq.data import Dictionary

from fairseq_posenc.core.writing import write_whole
from recipes.lib.check_models import build, configuration
from recipes.lib.encodings import Encoding, parse_all


def check(encoding: Encoding, flags: list[str], trained: int, longest: int) -> None:
    """Build the model of an encoding.

    Raises:
        ValueError: The encoding refuses its options, or has too few positions for the evaluation.
    """
    config = configuration(encoding, flags)
    config.model.max_target_positions = trained
    cutoffs = options.eval_str_list(config.model.adaptive_softmax_cutoff or "0", type=int)
    words = Dictionary()
    for number in range(max(cutoffs) + 1):  # enough words for all bands of the adaptive softmax; the text is not needed
        words.add_symbol(str(number))
    decoder = build(config, words).decoder
    if not encoding.remembers or not longest:
        return
    if not decoder.pos.capabilities.memory:
        problem = "the encoding does not support a memory with these options"
        raise ValueError(f"{problem}. Leave the encoding out, or give --mem-train 0 --mem-eval 0.")
    if longest > (limit := decoder.max_positions()):
        problem = f"the encoding has {limit} positions, but evaluation needs {longest} for the memory and the segment"
        raise ValueError(f"{problem}. Lower --mem-eval or --eval-segment, or leave the encoding out.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--output", type=Path, required=True, metavar="FILE", help="File to write if every model can be built.")
    add("--pos-enc", action="append", required=True, metavar="NAME", help="Encoding to build; may be repeated.")
    add("--trained", type=int, required=True, metavar="N", help="Tokens of memory and segment in training.")
    add("--longest", type=int, required=True, metavar="N", help="Tokens of memory and segment in evaluation.")
    add("flags", nargs="*", help="Flags of fairseq-train, given after -- and without the data folder.")
    args = parser.parse_args()
    for encoding in parse_all(args.pos_enc):
        try:
            check(encoding, args.flags, args.trained, args.longest)
        except ValueError as error:
            sys.exit(f"error: --pos-enc {encoding.label}: {error}")
    write_whole(args.output, "ok\n")


if __name__ == "__main__":
    main()
