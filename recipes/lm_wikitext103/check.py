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
from recipes.lib.encodings import Encoding, parse_all
from recipes.lib.package import write_whole


def checked(encoding: Encoding, flags: list[str], trained: int, longest: int) -> int:
    """Return the number of parameters, without the embeddings of words.

    Raises:
        ValueError: The model refuses its options, or its encoding does not define the lengths in evaluation.
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
            raise ValueError("has no memory with these options: leave it out, or give --mem-train 0 --mem-eval 0")
        if longest > model.decoder.max_positions():
            raise ValueError(
                f"is defined up to {model.decoder.max_positions()}, memory and segment in evaluation are {longest}: "
                "lower --mem-eval or --eval-segment, or leave it out"
            )
    return sum(one.numel() for one in model.parameters()) - sum(
        one.numel() for name, one in model.named_parameters() if len(words) in one.shape
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--pos-enc", action="append", required=True)
    parser.add_argument("--trained", type=int, required=True, help="memory and segment in training")
    parser.add_argument("--longest", type=int, required=True, help="memory and segment in evaluation")
    parser.add_argument("flags", nargs="*", help="after --, of fairseq-train; without data")
    asked = parser.parse_args()
    found: dict[str, int] = {}
    for encoding in parse_all(asked.pos_enc):
        try:
            found[encoding.label] = checked(encoding, asked.flags, asked.trained, asked.longest)
        except ValueError as error:
            sys.exit(f"error: {encoding.label}: {error}")
    write_whole(asked.output, json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
