"""Generated questions beside their references."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SHOWN = 20


def gallery(given: list[dict[str, Any]], questions: Mapping[str, list[str]]) -> str:
    """Markdown: of items evenly drawn, the answer, its sentence, the references, and each model's question.

    Args:
        given: lines of surface.jsonl. questions: by model, one an item.
    """
    first = list({one["source"]: number for number, one in reversed(list(enumerate(given)))}.values())
    first.sort()
    chosen = [first[k * len(first) // min(SHOWN, len(first))] for k in range(min(SHOWN, len(first)))]
    parts = ["# Generated questions", "Sources drawn evenly from the split; none was chosen by its result."]
    for number in chosen:
        one = given[number]
        lines = [f"**{_one_line(one['sentence'])}**"]
        lines += [f"- answer: {_one_line(one['answer'])}"] if "answer" in one else []
        lines += [f"- asked: {_one_line(text)}" for text in one["references"]]
        lines += [f"- {name}: {_one_line(texts[number])}" for name, texts in questions.items()]
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def _one_line(text: str) -> str:
    return " ".join(text.split()).replace("<", "&lt;")
