"""Provide toy questions in SQuAD's format, small models for their words, and calls of this project's tools."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import prepare_spans
from integration import support
from support_tokenizers import random_checkpoint

from fairseq_posenc.data.words import MASK
from fairseq_posenc.hub import ModelConfig
from fairseq_posenc.hub.ids import SPECIALS

LETTERS = "bcdefghijklmnop"  # no "a", because it is an article
WORDS = ["what", "?", "(", ")", *LETTERS]
LENGTH = 32


def context(rng: random.Random, words: int) -> tuple[str, str, int]:
    """Return a text of letters, some of them in brackets, and these letters with the places where they begin."""
    letters = rng.choices(LETTERS, k=words)
    first = rng.randrange(words - 2)
    last = rng.randint(first + 1, min(first + 3, words - 1))
    before, answer = " ".join(letters[:first]), " ".join(letters[first:last])
    start = f"{before} " if before else ""
    return f"{start}( {answer} ) {' '.join(letters[last:])}", f"( {answer} )", len(start)


def squad(number: int, seed: int, words: int = 12, *, without: bool = False) -> dict[str, Any]:
    """Ask for the letters in brackets. With `without`, each third question has no brackets and no answer."""
    rng = random.Random(seed)
    data = []
    for index in range(number):
        text, answer, start = context(rng, words)
        question: dict[str, Any] = {"id": f"q{seed}.{index}", "question": "What?"}
        answers = [{"text": answer, "answer_start": start}]
        if without and index % 3 == 2:
            text, answers = text.replace("(", "b").replace(")", "c"), []
            question["is_impossible"] = True
        data.append({"title": str(index), "paragraphs": [{"context": text, "qas": [{**question, "answers": answers}]}]})
    return {"version": "toy", "data": data}


def written(path: Path, content: dict[str, Any]) -> Path:
    path.write_text(json.dumps(content, ensure_ascii=False), "utf-8")
    return path


def checkpoint(
    folder: Path, pos_enc: str = "learned", args: str | None = None, *, layers: int = 1, dim: int = 16
) -> Path:
    """Write the checkpoint of a random model, with its dict.txt."""
    config = ModelConfig(layers, dim, 2 * dim, 2, LENGTH, len(WORDS) + 5, pos_enc, mask=len(WORDS) + 4)
    return random_checkpoint(config, [*SPECIALS, *WORDS, MASK], folder)


def prepared(output: Path, *words: object) -> Path:
    """Run prepare_spans.py on words."""
    arguments = ["--tokenizer", "words", "--longest-question", "4", *map(str, words), "--output", str(output)]
    assert prepare_spans.main(arguments) == 0
    return output


def toy(place: Path, dev: dict[str, Any]) -> Path:
    """Prepare 300 training questions and the given ones; `place`/plain reads the result."""
    train, packed = written(place / "train.json", squad(300, 1)), place / "dev.json.gz"
    packed.write_bytes(gzip.compress(json.dumps(dev).encode()))
    source = place / "plain" / "checkpoint.pt"
    return prepared(place / "data", "--checkpoint", source, "--train", train, "--eval", packed, "--length", 24)


def words(data: Path, source: Path, *more: Any) -> list[str]:
    """Return the arguments of fairseq-train; without --save-dir nothing is saved."""
    task = "--task posenc_squad --criterion squad --batch-size 32".split()
    recipe = [word for word in support.RECIPE if word not in ("--max-tokens", "120")]
    model = ["--arch", "posenc_roberta_pretrained", "--pretrained", source, "--dropout", 0, "--attention-dropout", 0]
    return support.command_line(data, *more, task=task, recipe=recipe, model=model)


def built(data: Path, source: Path, *more: Any) -> tuple[Any, Any]:
    """Return a model that starts from a checkpoint, in evaluation mode, and its task."""
    return support.built_of(words(data, source, *more), 5)


def predictions(folder: Path) -> list[dict[str, Any]]:
    """Return the answers, several for each question, and the odds that a question has none."""
    return [read(folder / f"{name}.json") for name in ("predictions", "nbest_predictions", "null_odds")]


def read(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


def texts(content: dict[str, Any]) -> dict[str, Sequence[str]]:
    """Return the answers by question."""
    questions = [question for article in content["data"] for part in article["paragraphs"] for question in part["qas"]]
    return {question["id"]: [answer["text"] for answer in question["answers"]] for question in questions}
