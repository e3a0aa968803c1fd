"""Read input lines of fairseq-interactive for question generation: `answer </s> context`, or only a sentence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

import torch
from torch import Tensor

from ..core.refusal import InputError
from .copied_words import CopyDictionary
from .words import MASK

#: separates answer and context
SEPARATOR = "</s>"


class QuestionLines:
    """Convert input lines to tokens, and count the lines for error messages.

    Args:
        folder: Folder of the prepared questions.
        answers: Whether the prepared sources contain answers; None if this is unknown.
        dictionary: Dictionary of the prepared questions.
    """

    def __init__(self, folder: Path, answers: bool | None, dictionary: CopyDictionary) -> None:
        self._folder, self._answers, self._dictionary = folder, answers, dictionary
        self._read = 0

    def tokens(self, line: str, encode: Callable[[str], str], longest: int) -> Tensor:
        """Return the tokens of the next input line as a source of the model; unknown words get permanent ids.

        Args:
            line: Line with an answer and its context, or with a sentence.
            encode: Function that splits a text into pieces and returns them separated by spaces.
            longest: Maximum number of tokens.

        Raises:
            ValueError: The line is too long, a part of it is empty, or only one of the line and the prepared questions
                has an answer.
        """
        self._read += 1
        dictionary = self._dictionary
        ids = [dictionary.bos()]
        for words in self._pieces(line.split(SEPARATOR), encode):
            ids += [dictionary.index(word) if self._known(word) else dictionary.number(word) for word in words]
            ids.append(dictionary.eos())
        if len(ids) > longest:
            most = f"sources may have at most {longest} (--max-source-positions)"
            self._refuse(f"it has {len(ids)} tokens, but {most}. Shorten the line.")
        return torch.tensor(ids)

    def _known(self, word: str) -> bool:
        """Return whether the dictionary has the word.

        A special symbol that a text contains counts as an unknown word, as it does in the prepared questions.
        """
        dictionary = self._dictionary
        return word in dictionary and word not in dictionary.symbols[: dictionary.nspecial] and word != MASK

    def _pieces(self, parts: Sequence[str], encode: Callable[[str], str]) -> list[list[str]]:
        """Return the pieces of the answer and of the context, or the pieces of the sentence."""
        contains = f"it contains {len(parts) - 1} x {SEPARATOR}"
        if self._answers is None and len(parts) > 2:
            self._refuse(f"{contains}. Write at most one {SEPARATOR}, between the answer and its context.")
        if self._answers is True and len(parts) != 2:
            self._refuse(f"{contains}. Write ANSWER {SEPARATOR} CONTEXT, because {self._folder} has answers.")
        if self._answers is False and len(parts) != 1:
            self._refuse(f"{contains}. Write only a sentence, because {self._folder} has no answers.")
        pieces = [encode(part.strip()).split() for part in parts]
        if not all(pieces):
            self._refuse(f"{'it' if len(pieces) == 1 else 'the context' if pieces[0] else 'the answer'} is empty.")
        return pieces

    def _refuse(self, why: str) -> NoReturn:
        raise InputError(f"line {self._read} of the input: {why}")
