"""Write the gallery, a page that shows generated questions next to their references."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SHOWN = 20  # number of sources


def gallery(items: list[dict[str, Any]], questions: Mapping[str, list[str]]) -> str:
    """Return Markdown with the sentence, the answer, the references and the question of each model for some sources.

    The sources are at equal intervals over the split.

    Args:
        items: Items of surface.jsonl.
        questions: Generated questions by model, one for each item.
    """
    first = list({item["source"]: number for number, item in reversed(list(enumerate(items)))}.values())
    first.sort()
    chosen = [first[k * len(first) // min(SHOWN, len(first))] for k in range(min(SHOWN, len(first)))]
    parts = ["# Generated questions", "The sources are at equal intervals over the split, whatever their scores are."]
    for number in chosen:
        item = items[number]
        lines = [f"**{_one_line(item['sentence'])}**"]
        lines += [f"- answer: {_one_line(item['answer'])}"] if "answer" in item else []
        lines += [f"- reference: {_one_line(text)}" for text in item["references"]]
        lines += [f"- {name}: {_one_line(texts[number])}" for name, texts in questions.items()]
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def _one_line(text: str) -> str:
    return " ".join(text.split()).replace("<", "&lt;")
