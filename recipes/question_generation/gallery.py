"""Write the gallery, a page that shows generated questions next to their references."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SHOWN = 20


def gallery(given: list[dict[str, Any]], questions: Mapping[str, list[str]]) -> str:
    """Return Markdown with the sentence, the answer, the references and the question of each model for some items.

    The items are at equal intervals over the split, one for each source at most.

    Args:
        given: Items of surface.jsonl.
        questions: Generated questions by model, one for each item.
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
