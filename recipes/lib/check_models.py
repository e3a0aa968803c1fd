"""Build every model of a comparison once, so that a wrong option is refused before hours of training.

python -m recipes.lib.check_models --output FILE --pos-enc 'shaw[clip=16],rope' -- FLAGS OF fairseq-train
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

import torch
from fairseq import models, options
from fairseq.data import Dictionary
from fairseq.dataclass.utils import convert_namespace_to_omegaconf

from fairseq_posenc.core.writing import write_whole
from recipes.lib.encodings import facts, parse
from recipes.lib.translation.score import tokenizer

PLUGIN = ("--user-dir", str(Path(__file__).parents[2] / "fairseq_posenc"))
SEPARATOR = re.compile(r",(?![^\[]*\])")  # a comma outside of brackets


def configuration(label: str, flags: list[str]) -> Any:
    """Return fairseq's configuration for a training run with an encoding for both stacks, or ENCODER/DECODER."""
    arguments, parts = ["data-bin", *flags], label.split("/")
    for side, part in zip(("-encoder", "-decoder") if len(parts) == 2 else ("",), parts, strict=True):
        spec = parse(part)
        arguments += [f"--pos-enc{side}", spec.name, *([f"--pos-enc{side}-args", spec.args] if spec.args else [])]
    return convert_namespace_to_omegaconf(options.parse_args_and_arch(options.get_training_parser(), arguments))


def build(config: Any) -> Any:
    """Build a model on PyTorch's meta device, which is quick because it allocates no memory for the weights.

    The dictionary has no words, or as many as all bands of the adaptive softmax need.
    """
    words = Dictionary()
    cutoffs = options.eval_str_list(getattr(config.model, "adaptive_softmax_cutoff", None) or "-1", type=int)
    for number in range(max(cutoffs) + 1):
        words.add_symbol(str(number))
    with torch.device("meta"):
        return models.build_model(config.model, Namespace(source_dictionary=words, target_dictionary=words))


def check_memory(label: str, decoder: Any, longest: int) -> None:
    """Check that a language model can read a memory in evaluation, unless its encoding never has one.

    Raises:
        ValueError: The options of the encoding do not allow a memory, or it has fewer positions than `longest`.
    """
    if not all(facts(name)["memory"] for name in parse(label).names):
        return
    if not decoder.pos.capabilities.memory:
        raise ValueError("the encoding does not support a memory with these options. Leave it out, or use no memory.")
    if longest > (limit := decoder.max_positions()):
        problem = f"the encoding has {limit} positions, but evaluation needs {longest} for the memory and the segment"
        raise ValueError(f"{problem}. Shorten the memory or the segment in evaluation, or leave the encoding out.")


def check_decoding(flags: list[str]) -> None:
    """Parse the flags with fairseq-generate's own parser, which exits if it meets an unknown flag."""
    options.parse_args_and_arch(options.get_generation_parser(), ["data-bin", "--path", "x.pt", *PLUGIN, *flags])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--output", type=Path, required=True, metavar="FILE", help="JSON file for the models' sizes.")
    text = "Encodings to build, separated by commas; may be repeated."
    add("--pos-enc", action="append", required=True, metavar="NAME,...", help=text)
    text = "Flags of fairseq-generate to check, written as a single quoted string."
    add("--generate", default="", metavar="FLAGS", help=text)
    text = "Tokens of memory and segment together in {} of a language model (0: not checked)."
    add("--trained", type=int, default=0, metavar="N", help=text.format("the training"))
    add("--evaluated", type=int, default=0, metavar="N", help=text.format("the longest evaluation"))
    text = "Target language for which BLEU's tokenizer must be installed; the option may be repeated."
    add("--target-lang", action="append", default=[], metavar="LANG", help=text)
    add("flags", nargs="*", help="Flags of fairseq-train, given after -- and without the data folder.")
    args = parser.parse_args()
    check_decoding(shlex.split(args.generate))
    report: dict[str, int | str] = {}
    for language in args.target_lang:
        report[f"BLEU of {language}"] = tokenizer(language)
    for label in SEPARATOR.split(",".join(args.pos_enc)):
        try:
            config = configuration(label, args.flags)
            if args.trained:
                config.model.max_target_positions = args.trained
            model = build(config)
            if args.evaluated:
                check_memory(label, model.decoder, args.evaluated)
        except ValueError as error:
            sys.exit(f"error: --pos-enc {label}: {error}")
        report[label] = sum(weight.numel() for weight in model.parameters())
    write_whole(args.output, json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
