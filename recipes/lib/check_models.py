"""Build every model of a comparison once, so that a wrong option is refused before hours of training.

python -m recipes.lib.check_models --output FILE --pos-enc 'shaw[clip=16]' --pos-enc rope -- FLAGS OF fairseq-train
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

import torch
from fairseq import models, options
from fairseq.data import Dictionary
from fairseq.dataclass.utils import convert_namespace_to_omegaconf

from recipes.lib.encodings import Either, add_option, parse_stacks
from recipes.lib.flags import PLUGIN
from recipes.lib.package import write_whole
from recipes.lib.translation.score import tokenizer


def configuration(encoding: Either, flags: list[str]) -> Any:
    """Return fairseq's configuration for a training run with this encoding."""
    arguments = ["data-bin", *flags, *encoding.flags()]
    return convert_namespace_to_omegaconf(options.parse_args_and_arch(options.get_training_parser(), arguments))


def build(config: Any, words: Dictionary) -> Any:
    """Build a model on PyTorch's meta device, which is quick because it allocates no memory for the weights."""
    with torch.device("meta"):
        return models.build_model(config.model, Namespace(source_dictionary=words, target_dictionary=words))


def check_decoding(flags: list[str]) -> None:
    """Parse the flags with fairseq-generate's own parser, which exits if it meets an unknown flag."""
    options.parse_args_and_arch(options.get_generation_parser(), ["data-bin", "--path", "x.pt", *PLUGIN, *flags])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--output", type=Path, required=True, metavar="FILE", help="JSON file for the models' sizes.")
    add_option(parser, "build")
    add(
        "--generate",
        default="",
        metavar="FLAGS",
        help="Flags of fairseq-generate to check, written as a single quoted string.",
    )
    text = "Target language for which BLEU's tokenizer must be installed; the option may be repeated."
    add("--target-lang", action="append", default=[], metavar="LANG", help=text)
    add("flags", nargs="*", help="Flags of fairseq-train, given after -- and without the data folder.")
    args = parser.parse_args()
    check_decoding(shlex.split(args.generate))
    report: dict[str, int | str] = {}
    for language in args.target_lang:
        report[f"BLEU of {language}"] = tokenizer(language)
    for encoding in parse_stacks(args.pos_enc):
        try:
            model = build(configuration(encoding, args.flags), Dictionary())  # a dictionary with special symbols only
            report[encoding.label] = sum(weight.numel() for weight in model.parameters())
        except ValueError as error:
            sys.exit(f"error: {encoding.label}: {error}")
    write_whole(args.output, json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
