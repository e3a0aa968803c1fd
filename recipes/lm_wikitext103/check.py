"""Build every model of a comparison once, so that a wrong option or length is refused before hours of training.

python -m recipes.lm_wikitext103.check --output FILE --pos-enc xl --trained 300 --longest 704 -- FLAGS OF fairseq-train
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from fairseq import options
from fairseq.data import Dictionary

from recipes.lib.check_models import build, configuration
from recipes.lib.encodings import Encoding, add_option, parse_all
from recipes.lib.package import write_whole


def checked(encoding: Encoding, flags: list[str], trained: int, longest: int) -> int:
    """Build the model of an encoding, and return its number of parameters without the word embeddings.

    Raises:
        ValueError: The encoding refuses its options, or has too few positions for the evaluation.
    """
    config = configuration(encoding, flags)
    config.model.max_target_positions = trained
    cutoffs = options.eval_str_list(config.model.adaptive_softmax_cutoff or "0", type=int)
    words = Dictionary()
    for number in range(max(cutoffs) + 1):  # enough words for all bands of the adaptive softmax; the text is not needed
        words.add_symbol(str(number))
    model = build(config, words)
    if encoding.remembers:
        if not model.decoder.pos.capabilities.memory:
            problem = "the encoding does not support a memory with these options"
            raise ValueError(f"{problem}. Leave the encoding out, or give --mem-train 0 --mem-eval 0.")
        if longest > (limit := model.decoder.max_positions()):
            raise ValueError(
                f"the encoding has {limit} positions, but evaluation needs {longest} positions for the memory and the "
                "segment. Lower --mem-eval or --eval-segment, or leave the encoding out."
            )
    return sum(weight.numel() for weight in model.parameters() if len(words) not in weight.shape)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--output", type=Path, required=True, metavar="FILE", help="JSON file to write.")
    add_option(parser, "build")
    text = "Length of memory and segment together in training, in tokens."
    add("--trained", type=int, required=True, metavar="N", help=text)
    text = "Maximum length of memory and segment together in evaluation, in tokens."
    add("--longest", type=int, required=True, metavar="N", help=text)
    add("flags", nargs="*", help="Flags of fairseq-train, given after -- and without the data folder.")
    args = parser.parse_args()
    parameters: dict[str, int] = {}
    for encoding in parse_all(args.pos_enc):
        try:
            parameters[encoding.label] = checked(encoding, args.flags, args.trained, args.longest)
        except ValueError as error:
            sys.exit(f"error: --pos-enc {encoding.label}: {error}")
    write_whole(args.output, json.dumps(parameters, indent=1))


if __name__ == "__main__":
    main()
