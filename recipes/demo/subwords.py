"""One SentencePiece model for both languages, learned on the training set, and the pieces of all splits."""

from __future__ import annotations

import argparse
import os
import shutil
from pathlib import Path

import sentencepiece


def learn(raw: Path, prefix: Path, vocabulary: int) -> None:
    sentencepiece.SentencePieceTrainer.train(
        input=",".join(map(str, sorted(raw.glob("train.*")))),
        model_prefix=str(prefix),
        model_type="bpe",
        vocab_size=vocabulary,
        character_coverage=1.0,
        num_threads=1,  # the same pieces on every machine
        minloglevel=2,
    )


def encode(model: Path, raw: Path, output: Path) -> None:
    processor = sentencepiece.SentencePieceProcessor(model_file=str(model))
    for path in raw.iterdir():
        lines = processor.encode(path.read_text(encoding="utf-8").splitlines(), out_type=str)
        (output / path.name).write_text("".join(" ".join(pieces) + "\n" for pieces in lines))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--raw", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--vocabulary", type=int, required=True)
    options = parser.parse_args()
    partial = options.output.with_name(options.output.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    learn(options.raw, partial / "model", options.vocabulary)
    encode(partial / "model.model", options.raw, partial)
    os.replace(partial, options.output)


if __name__ == "__main__":
    main()
