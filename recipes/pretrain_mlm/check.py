"""Check that a prepared corpus and a pretrained model fit the settings, before hours of training.

python -m recipes.pretrain_mlm.check [--prepared DIR] [--init-from PATH] --output FILE -- FLAGS OF fairseq-train
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fairseq import options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf

import fairseq_posenc.models  # noqa: F401  registers the architectures
from fairseq_posenc.core.refusal import RefusedError
from fairseq_posenc.core.writing import write_whole
from fairseq_posenc.hub.pretrained import read

#: Fields of fairseq's configuration that must agree with the pretrained model, and the fields of its configuration.
#: Some wrong values would not prevent loading the weights, but the model would compute something else.
FIELDS = {
    "encoder_layers": "layers",
    "encoder_embed_dim": "dim",
    "encoder_ffn_embed_dim": "ffn",
    "encoder_attention_heads": "heads",
    "activation_fn": "activation",
    "layer_norm_eps": "layer_norm_eps",
    "encoder_normalize_before": "normalize_before",
}


def of_corpus(folder: Path, tokenizer: str, length: int) -> Iterator[str]:
    """Yield what does not fit a corpus that prepare_corpus.py wrote."""
    made = json.loads((folder / "corpus.json").read_text(encoding="utf-8"))["options"]
    if made["tokenizer"] != tokenizer:
        yield f"--tokenizer {tokenizer}: {folder} has the tokenizer {made['tokenizer']}. Give this tokenizer"
    if made["longest"] > length - 2:
        problem = f"sentences in {folder} may have {made['longest']} pieces plus <s> and </s>"
        yield f"--length {length}: {problem}. Give --length {made['longest'] + 2} or more, or prepare the text again"


def of_pretrained(source: Path, model: Any) -> Iterator[str]:
    """Yield both values of each setting in which the new model differs from the pretrained model."""
    theirs = read(source).config
    for field, name in FIELDS.items():
        if (own := getattr(model, field)) != (other := getattr(theirs, name)):
            flag = f"--train.{field.replace('_', '-')}"
            problem = f"the pretrained model has {flag} {other}, the new model {own}"
            yield f"--init-from {source}: {problem}. Give the --arch of the pretrained model, or set {flag}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--prepared", type=Path, metavar="DIR", help="Corpus that prepare_corpus.py wrote.")
    add("--tokenizer", required=True, metavar="NAME", help="Tokenizer of the text.")
    add("--init-from", type=Path, metavar="PATH", help="Pretrained model.")
    add("--output", type=Path, required=True, metavar="FILE", help="File to write if everything fits.")
    add("flags", nargs="*", help="Flags of fairseq-train, given after -- and without the data folder.")
    args = parser.parse_args()
    words = options.parse_args_and_arch(options.get_training_parser(), ["data-bin", *args.flags])
    config = convert_namespace_to_omegaconf(words)
    try:
        problems = [
            *(of_corpus(args.prepared, args.tokenizer, config.task.tokens_per_sample) if args.prepared else ()),
            *(of_pretrained(args.init_from, config.model) if args.init_from else ()),
        ]
    except (RefusedError, ValueError, OSError) as error:
        problems = [f"{args.init_from or args.prepared}: {error}"]
    if problems:
        sys.exit("\n".join(f"error: {problem}." for problem in problems))
    write_whole(args.output, "ok\n")


if __name__ == "__main__":
    main()
