"""Pieces of questions as text, as the folder says that they were cut, and their ROUGE-L."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from . import question_pieces


class QuestionText:
    """What fairseq calls a BPE: it cuts text and joins pieces. A folder without a record has pieces parted by spaces.

    Args:
        folder: of prepared questions. Its record says `units`, of the text, and `answers`, whether there are some; None
            without a record.
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
        """Pieces, parted by spaces."""
        return text if self._surface is None else " ".join(piece.name for piece in self._surface.cut(text))

    def decode(self, pieces: str) -> str:
        """The text of what `encode` gives."""
        return pieces if self._surface is None else self._surface.join(pieces.split())

    def rouge_l(self, hypothesis: str, references: Sequence[str]) -> float:
        """Of texts.

        Raises:
            ValueError: what it is computed with is not installed; a plugin that is read from a clone works without.
        """
        try:
            from ..metrics.rouge import rouge_l
        except ImportError as error:
            raise ValueError(
                f"--eval-rouge needs rapidfuzz ({error}): pip install rapidfuzz, or leave it out"
            ) from None
        return rouge_l(hypothesis, references, units=self.units)
