"""Turn prompts into the tokens of a language model, and tokens into text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..hub import tokenizer


class Text:
    """Convert text to ids of a dictionary and back. A line end in the text corresponds to </s>, as in training.

    Args:
        dictionary: fairseq's dictionary.
        place: File or folder of the tokenizer that split the training text; None if the training text consisted of the
            dictionary's symbols, separated by spaces.
    Raises:
        CheckpointError: The tokenizer cannot be read, or does not belong to the dictionary.
    """

    def __init__(self, dictionary: Any, place: Path | None = None) -> None:
        self.dictionary = dictionary
        self.tokenizer = None if place is None else _tokenizer(dictionary, place)

    def ids(self, text: str) -> list[int]:
        """Return the ids of a text, without </s> before or after it. Unknown words become <unk>."""
        ids: list[int] = []
        for number, line in enumerate(text.split("\n")):
            ids += [self.dictionary.eos()] * (number > 0)
            ids += self._of_line(line)
        return ids

    def text(self, ids: Sequence[int]) -> str:
        """Return the text of ids; </s> becomes a line end."""
        ends = [i for i, number in enumerate(ids) if number == self.dictionary.eos()]
        starts = [0, *(end + 1 for end in ends)]
        lines = [ids[start:end] for start, end in zip(starts, [*ends, len(ids)], strict=True)]
        return "\n".join(map(self._line, lines))

    def _of_line(self, line: str) -> list[int]:
        if self.tokenizer is not None:
            ids: list[int] = self.tokenizer.encode(line, add_special_tokens=False).ids
            return ids
        return [self.dictionary.index(word) for word in line.split()]

    def _line(self, ids: Sequence[int]) -> str:
        if self.tokenizer is not None:
            line: str = self.tokenizer.decode(list(ids), skip_special_tokens=False)
            return line
        return " ".join(self.dictionary.symbols[number] for number in ids)


def _tokenizer(dictionary: Any, place: Path) -> Any:
    contents, where = tokenizer.read(place)
    contents, _ = tokenizer.fitted(contents, dictionary.symbols, where, first="</s>")
    return tokenizer.built(contents)
