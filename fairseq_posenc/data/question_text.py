"""Split questions into pieces and join pieces with the tokenizer of the data folder, and compute ROUGE-L."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from ..metrics.rouge import rouge_l
from . import question_pieces


class QuestionText:
    """Split text into pieces and join pieces, with the methods of fairseq's BPE classes.

    If the folder has no file questions.json, the pieces of a text are separated by spaces.

    Args:
        folder: Folder of the prepared questions. Its file questions.json says in which units ROUGE-L compares
            texts (words, characters or tokens), and whether sources contain answers.
    """

    def __init__(self, folder: Path) -> None:
        path = folder / question_pieces.RECORD
        self._surface: question_pieces.Surface | None = None
        self.units = "words"
        self.answers: bool | None = None
        if path.is_file():
            self._surface = question_pieces.load(folder)
            record = json.loads(path.read_text("utf-8"))
            self.units, self.answers = record.get("units", self.units), record.get("answers")

    def encode(self, text: str) -> str:
        """Return the pieces of a text, separated by spaces."""
        return text if self._surface is None else " ".join(piece.name for piece in self._surface.cut(text))

    def decode(self, pieces: str) -> str:
        """Return the text that consists of these pieces, which are separated by spaces."""
        return pieces if self._surface is None else self._surface.join(pieces.split())

    def rouge_l(self, hypothesis: str, references: Sequence[str]) -> float:
        """Return the ROUGE-L of a hypothesis."""
        return rouge_l(hypothesis, references, units=self.units)
