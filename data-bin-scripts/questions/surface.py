"""The lines of surface.jsonl: an item's texts, and the questions of the same source as its references."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple

from .items import Cut, Ids
from .reading import Question


class Item(NamedTuple):
    """source: a digest of what the model sees. facts: its line, but for what depends on other items."""

    source: bytes
    facts: dict[str, Any]


def item(one: Question, cut: Cut, ids: Ids) -> Item:
    """Of a question and its pieces."""
    # The pieces count, not the words around them nor the answer's offset, which the model does not see.
    seen = hashlib.sha256(repr((ids.source, ids.unknown)).encode()).digest()
    answer = {"answer": one.answers[0].text} if one.answers else {}
    facts = {"id": one.id, "question": one.text, **answer, "sentence": cut.sentence, "unknown": ids.unknown}
    return Item(seen, facts)


def grouped(found: Sequence[Item]) -> list[dict[str, Any]]:
    """The lines; questions with the same source are references of each other."""
    asked: dict[bytes, list[str]] = {}
    for one in found:
        asked.setdefault(one.source, []).append(one.facts["question"])
    place = {source: number for number, source in enumerate(asked)}
    references = {source: list(dict.fromkeys(texts)) for source, texts in asked.items()}
    return [
        {"id": facts["id"], "source": place[source], "references": references[source], **facts}
        for source, facts in found
    ]
