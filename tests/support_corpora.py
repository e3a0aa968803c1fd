"""Provide the texts, tokenizers and runs that the tests of the corpus pipeline share, and read results like fairseq.

PYTEST_DONT_REWRITE: it asserts nothing, and is imported before it is named as a plugin.
"""

from __future__ import annotations

import json
import random
from pathlib import Path

import prepare_corpus
import pytest
from support_scripts import Ended, Runs, symbols

SYLLABLES = "ka lo mi ne ru sta ver on del pra".split()


def words(number: int, seed: int) -> list[str]:
    drawn = random.Random(seed)
    return ["".join(drawn.choices(SYLLABLES, k=drawn.randint(1, 3))) for _ in range(number)]


def documents(number: int, seed: int = 0, sentences: int = 3) -> list[list[str]]:
    """Return documents with one sentence per line."""
    return [
        [" ".join(words(6, seed * 7919 + 31 * document + line)).capitalize() + "." for line in range(sentences)]
        for document in range(number)
    ]


def text(texts: list[list[str]]) -> str:
    return "\n\n".join("\n".join(lines) for lines in texts) + "\n"


def gpt2(folder: Path) -> Path:
    """Write a tokenizer in GPT-2's form with bytes and a few merges, and fairseq's dictionary in another order."""
    folder.mkdir(exist_ok=True)
    codes = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [code for code in range(256) if code not in codes]
    alphabet = [*map(chr, codes), *(chr(256 + number) for number in range(len(others)))]
    merges = ["k a", "l o", "\u0120 k", "\u0120k a", "m i"]
    vocabulary = [*alphabet, *(merge.replace(" ", "") for merge in merges), "<|endoftext|>"]
    (folder / "encoder.json").write_text(json.dumps({piece: number for number, piece in enumerate(vocabulary)}))
    (folder / "vocab.bpe").write_text("#version: 0.2\n" + "\n".join(merges) + "\n", encoding="utf-8")
    order = random.Random(1).sample(range(len(vocabulary)), len(vocabulary))
    (folder / "dict.txt").write_text("".join(f"{number} {9}\n" for number in order))
    return folder


class Corpora(Runs):
    """Run prepare_corpus.py."""

    def two(self) -> tuple[Path, Path]:
        """Write a training and a validation file."""
        return self.write("train.txt", text(documents(60))), self.write("valid.txt", text(documents(5, seed=1)))

    def both(self) -> list[object]:
        """Return the options that name these two files."""
        train, valid = self.two()
        return ["--train", train, "--valid", valid]

    def learn(self, *words: object, vocabulary: int = 60, output: Path | None = None) -> Ended:
        """Learn a SentencePiece model."""
        return self.run(*words, "--tokenizer", "sentencepiece", "--vocabulary", vocabulary, output=output)

    def record(self, output: Path | None = None) -> dict:
        return json.loads(((output or self.output) / "corpus.json").read_text())


@pytest.fixture
def corpora(tmp_path, capsys) -> Corpora:
    return Corpora(prepare_corpus.main, tmp_path, capsys)


def items(shard: Path, split: str = "train") -> list[list[str]]:
    """Return the pieces of each item, as fairseq reads them."""
    return symbols(shard / split, shard / "dict.txt")
