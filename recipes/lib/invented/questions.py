"""Write a small invented question answering data set in SQuAD's format: who built what, where and when."""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path
from typing import Any

from fairseq_posenc.core.writing import whole_folder

ARTICLES = {"train": 120, "valid": 12}
SENTENCES = (3, 6)
SYLLABLES = "ka lo mi ne ru sta ver on del pra zu tor".split()
THINGS = "bridge tower mill harbour library garden castle road well school".split()
#: The sentence about a person, a thing, a town and a year, and the questions about its parts.
SENTENCE = "{person} built the {thing} of {town} in {year}."
QUESTIONS = {
    "person": "Who built the {thing} of {town}?",
    "town": "In which town did {person} build a {thing}?",
    "year": "When was the {thing} of {town} built?",
}


def name(rng: random.Random) -> str:
    """Return a random name. Most names occur only once, so a model must copy them from the article."""
    return "".join(rng.choices(SYLLABLES, k=rng.randint(2, 4))).capitalize()


def article(rng: random.Random, split: str, number: int) -> dict[str, Any]:
    context, questions = "", list[dict[str, Any]]()
    for sentence in range(rng.randint(*SENTENCES)):
        facts = {
            "person": name(rng),
            "town": name(rng),
            "thing": rng.choice(THINGS),
            "year": str(rng.randint(900, 1999)),
        }
        text = SENTENCE.format(**facts)
        for part, question in QUESTIONS.items():
            answer = {"text": facts[part], "answer_start": len(context) + text.index(facts[part])}
            identity = {"id": f"{split}.{number}.{sentence}.{part}", "question": question.format(**facts)}
            questions.append(identity | {"answers": [answer]})
        context += f"{text} "
    return {"title": f"{split} {number}", "paragraphs": [{"context": context.strip(), "qas": questions}]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--output", type=Path, required=True, metavar="DIR", help="Folder for train.json and valid.json."
    )
    parser.add_argument("--seed", type=int, required=True, metavar="N", help="Random seed for generating the articles.")
    args = parser.parse_args()
    rng = random.Random(args.seed)
    with whole_folder(args.output) as partial:
        for split, count in ARTICLES.items():
            content = {"version": "builtin", "data": [article(rng, split, number) for number in range(count)]}
            (partial / f"{split}.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
