"""Pieces of questions as text, as the folder says that they were cut, and their ROUGE-L."""

from __future__ import annotations

import importlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

#: what prepare_questions.py writes of how it cut
RECORD = "questions.json"
#: as lines of fairseq-interactive part answer and context
SEPARATOR = "</s>"


class QuestionText:
    """What fairseq calls a BPE: it cuts text and joins pieces. A folder without a record has pieces parted by spaces.

    Args:
        folder: of prepared questions.
    """

    def __init__(self, folder: Path) -> None:
        path = folder / RECORD
        self._surface: Any = None
        self.units = "words"
        if path.is_file():
            self._surface = importlib.import_module("..data.question_pieces", __package__).load(folder)
            self.units = json.loads(path.read_text("utf-8")).get("units", self.units)

    def encode(self, text: str) -> str:
        """Pieces, parted by spaces."""
        return text if self._surface is None else " ".join(piece.name for piece in self._surface.cut(text))

    def decode(self, pieces: str) -> str:
        """The text of what `encode` gives."""
        return pieces if self._surface is None else str(self._surface.join(pieces.split()))

    def rouge_l(self, hypothesis: str, references: Sequence[str]) -> float:
        """Of texts.

        Raises:
            ValueError: this copy of the package has no scores.
        """
        try:
            score = importlib.import_module("..scoring.rouge", __package__).rouge_l
        except ImportError as error:
            raise ValueError(f"--eval-rouge needs fairseq_posenc.scoring ({error}): leave it out") from None
        return float(score(hypothesis, references, units=self.units))
