"""Provide the texts, tokenizers and runs that the tests of the corpus pipeline share, and read results like fairseq.

PYTEST_DONT_REWRITE: it asserts nothing, and is imported before it is named as a plugin.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

SCRIPTS = Path(__file__).resolve().parents[1] / "data-bin-scripts"
sys.path.insert(0, str(SCRIPTS))

import prepare_corpus  # noqa: E402  (a script's folder, no package)
from corpora import (  # noqa: E402
    binary,
    cluster,
    counts,
    dump,
    files,
    keys,
    lines,
    pieces,
    sample,
    sentences,
    stages,
    tokenise,
)
from corpora import documents as reading  # noqa: E402
from corpora.errors import CorpusError  # noqa: E402

__all__ = [
    "SCRIPTS",
    "Corpora",
    "CorpusError",
    "Ended",
    "binary",
    "cluster",
    "corpora",
    "counts",
    "documents",
    "dump",
    "files",
    "gpt2",
    "hashes",
    "items",
    "keys",
    "lines",
    "pieces",
    "prepare_corpus",
    "reading",
    "sample",
    "script",
    "sentences",
    "stages",
    "text",
    "tokenise",
    "words",
]

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


def script(name: str, *words: object, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run prepare_NAME.sh in a folder, with this environment."""
    environment = {**os.environ, "VIRTUAL_ENV": sys.prefix}
    command = map(str, [SCRIPTS / f"prepare_{name}.sh", *words])
    return subprocess.run([*command], cwd=folder, env=environment, capture_output=True, text=True, check=False)


class Ended(NamedTuple):
    status: int
    out: str
    error: str


class Corpora:
    """Run prepare_corpus.py in a folder."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self._capsys = folder, capsys
        self.output = folder / "out"

    def write(self, name: str, content: str | bytes) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def two(self) -> tuple[Path, Path]:
        """Write a training and a validation file."""
        return self.write("train.txt", text(documents(60))), self.write("valid.txt", text(documents(5, seed=1)))

    def run(self, *words: object, output: Path | None = None) -> Ended:
        arguments = [*map(str, words), "--output", str(output or self.output)]
        try:
            status = prepare_corpus.main(arguments)
        except SystemExit as error:
            status = int(str(error.code))
        captured = self._capsys.readouterr()
        return Ended(status, captured.out, captured.err)

    def learn(self, *words: object, vocabulary: int = 60, output: Path | None = None) -> Ended:
        """Learn a SentencePiece model."""
        return self.run(*words, "--tokenizer", "sentencepiece", "--vocabulary", vocabulary, output=output)

    def record(self, output: Path | None = None) -> dict:
        return json.loads(((output or self.output) / "corpus.json").read_text())


@pytest.fixture
def corpora(tmp_path, capsys) -> Corpora:
    return Corpora(tmp_path, capsys)


def hashes(output: Path) -> dict[str, str]:
    """Return the hashes of all files that are used for training."""
    paths = (path for path in sorted(output.rglob("*")) if path.is_file() and path.name != "corpus.json")
    return {str(path.relative_to(output)): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def items(shard: Path, split: str = "train") -> list[list[str]]:
    """Return the pieces of each item, as fairseq reads them."""
    from fairseq.data import Dictionary, data_utils  # seconds, which not all tests need

    dictionary = Dictionary.load(str(shard / "dict.txt"))
    dataset = data_utils.load_indexed_dataset(str(shard / split), dictionary, "mmap")
    return [[dictionary[number] for number in dataset[index].tolist()] for index in range(len(dataset))]
