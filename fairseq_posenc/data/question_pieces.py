"""Split text into pieces (words, characters or those of a pretrained tokenizer), and join pieces to text.

`load` returns the tokenizer with which data-bin-scripts/prepare_questions.py prepared a folder. Joined text may differ
from the original in its spaces and, if the pieces are lower case, in its capital letters. For example, `24 -7` and
`24-7` have the same pieces. Only byte-level pieces restore all spaces.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from ..compat.checkpoints import CheckpointError
from . import byte_pieces

#: files that data-bin-scripts/prepare_questions.py writes into its folder
RECORD, TOKENIZER = "questions.json", "tokenizer.json"
UNKNOWN = "<unk>"

_CHINESE = "\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
#: Matches U.S., 3.5, 1,000, 22:15, words, 's, 'll and single punctuation marks
_WORDS = re.compile(r"(?:[^\W\d_]\.){2,}|\d+(?:[.,:]\d+)+(?!\w)|\w+|['’](?:s|re|ve|d|ll|m|t)\b|[^\w\s]", re.IGNORECASE)
#: Matches runs of letters and digits that are not Chinese, and every other character alone
_CHARACTERS = re.compile(rf"[^\W{_CHINESE}]+|\S")
#: Matches tokens of CoreNLP: -lrb-, U.S., Mr., 3.5, do n't, well-known, 's, quotes and single punctuation marks
_TOKENS = re.compile(
    r"-[lr][rcs]b-|(?:[^\W\d_]\.){2,}|\b(?:[^\W\d_]|st|mr|mrs|dr|jr|sr|vs) ?\.|\d+(?:[.,:]\d+)+(?!\w)|"
    r"n['’]t\b|\w+?(?=n['’]t\b)|\w+(?:[-/](?![lr][rcs]b-)\w+)*|['’](?:s|re|ve|d|ll|m)\b|` ?`|' ?'|- ?-|[^\w\s]",
    re.IGNORECASE,
)
_SPACES = re.compile(r"\S+")

_ENDINGS = ("s", "re", "ve", "d", "ll", "m", "t")
_LEFT = {*",.?!:;%)]}…°”’", *(f"{mark}{end}" for mark in "'’" for end in _ENDINGS)}
_RIGHT = {*"([{$£€¥#@“‘"}
_BOTH = {*"-–—/_"}
#: Chinese characters and punctuation, which have no spaces around them
_WIDE = re.compile(rf"[{_CHINESE}\u3000-\u303f\uff00-\uffef]")
#: Spaces inside 3.5, 22:15, 1,000 and U.S., which WordPiece splits into several words.
_NUMBER = re.compile(r"(?<=\d)([.:] (?=\d)|, (?=\d{3}(?!\d)))")
_LETTERS = re.compile(r"(?<=\b[^\W\d_]\.) (?=[^\W\d_]\.)")


class Piece(NamedTuple):
    """Hold a piece: its name in the dictionary, and its start and end in the text.

    If a tokenizer's vocabulary lacks the piece, the text of the piece serves as its name.
    """

    name: str
    start: int
    end: int


class Surface(Protocol):
    """Define the methods of tokenizers, which split text into pieces and join pieces.

    `kind` is words, chars, spaces or tokenizer; `cased` says whether capital letters are kept.
    """

    kind: str
    cased: bool

    def cut(self, text: str) -> list[Piece]: ...

    def join(self, pieces: Sequence[str]) -> str:
        """Join pieces to a text. The pieces must not include special symbols, but may include copied words."""
        ...


class Words:
    """Split text by a regular expression.

    Args:
        kind: Which expression to use: words, chars or spaces.
        cased: Whether to keep capital letters; otherwise the pieces are lower case.
    """

    def __init__(self, kind: str, *, cased: bool) -> None:
        self.kind, self.cased = kind, cased
        self._pattern, self._join = JOINED[kind]

    def cut(self, text: str) -> list[Piece]:
        matches = self._pattern.finditer(text)
        return [Piece(match[0] if self.cased else match[0].lower(), *match.span()) for match in matches]

    def join(self, pieces: Sequence[str]) -> str:
        return self._join(pieces)


class Pretrained:
    """Split text by a tokenizer of the `tokenizers` package, with the ids of fairseq's dictionary.

    Args:
        contents: Contents of tokenizer.json, as hub/tokenizer/fit.py writes it.
        tokenised: Whether to put spaces between the tokens of joined text, as in the data of Du et al. 2017.
    """

    kind = "tokenizer"

    def __init__(self, contents: dict[str, Any], *, tokenised: bool = False) -> None:
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # each of our processes uses one core
        from tokenizers import Tokenizer

        self._tokenizer = Tokenizer.from_str(json.dumps(contents))
        self._tokenizer.encode_special_tokens = True  # read <s> in a text as text
        self._wordpieces, self._tokenised = contents["model"]["type"] == "WordPiece", tokenised
        self._special = {token["id"] for token in contents["added_tokens"] if token["special"]}
        self._unknown = self._tokenizer.token_to_id(UNKNOWN)
        self.cased = not (contents.get("normalizer") or {}).get("lowercase", False)

    def cut(self, text: str) -> list[Piece]:
        return [
            Piece(text[start:end] if token == UNKNOWN else token, start, end)
            for token, _, (start, end) in self._encoded(text)
        ]

    def numbered(self, text: str) -> list[tuple[int, int, int]]:
        """Return each piece's id in the dictionary, and its start and end in the text.

        If a text contains the name of a special symbol, this method returns the id of <unk>. A Unigram tokenizer itself
        would return the id of the symbol.
        """
        return [
            (self._unknown if number in self._special else number, start, end)
            for _, number, (start, end) in self._encoded(text)
        ]

    def _encoded(self, text: str) -> Iterator[tuple[str, int, tuple[int, int]]]:
        encoding = self._tokenizer.encode(text, add_special_tokens=False)
        places = byte_pieces.shared(text, encoding.tokens, encoding.offsets)
        return zip(encoding.tokens, encoding.ids, places, strict=True)

    def join(self, pieces: Sequence[str]) -> str:
        if self._wordpieces:
            return _tokens(_wordpieces(pieces)) if self._tokenised else _wordpieces(pieces)
        return str(self._tokenizer.decoder.decode([*pieces])).strip() if pieces else ""


def load(folder: Path) -> Surface:
    """Load the tokenizer of a folder that data-bin-scripts/prepare_questions.py wrote.

    Raises:
        CheckpointError: prepare_questions.py did not write the folder, or the folder is incomplete.
    """
    path = folder / RECORD
    try:
        record = json.loads(path.read_text("utf-8"))
        if record["pieces"] == Pretrained.kind:
            path = folder / TOKENIZER
            contents = json.loads(path.read_text("utf-8"))
            return Pretrained(contents, tokenised=record.get("units") == "spaces")
        return Words(record["pieces"], cased=record["cased"])
    except Exception as error:  # noqa: BLE001 - the package tokenizers raises plain exceptions
        problem = (
            f"{folder} is not a complete output folder of prepare_questions.py: cannot read {path.name} ({error!r})"
        )
        raise CheckpointError(f"{problem}. Prepare the questions again.") from None


def _words(pieces: Sequence[str]) -> str:
    """Join words with spaces, except where rules of English have no space before or after a punctuation mark."""
    text, glued, quoted = "", True, False
    for piece in pieces:
        left, right = piece in _LEFT or piece in _BOTH, piece in _RIGHT or piece in _BOTH
        if piece == '"':
            left, right, quoted = quoted, not quoted, not quoted
        elif piece == "'":  # as in: the players' coach
            left, right = text.endswith("s"), not text.endswith("s")
        glued = glued or left or bool(_WIDE.match(piece) or _WIDE.match(text[-1]))
        text += piece if glued else f" {piece}"
        glued = right
    return text


def _wordpieces(pieces: Sequence[str]) -> str:
    """Join the pieces of each word, and then the words by rules of English.

    The decoder of the `tokenizers` package joins neither hyphenated words nor Chinese correctly.
    """
    words: list[str] = []
    for piece in pieces:
        if words and piece.startswith("##") and len(piece) > 2:
            words[-1] += piece[2:]
        elif len(words) > 1 and words[-1] in ("'", "’") and piece.lower() in _ENDINGS:
            words[-1] += piece
        else:
            words.append(piece)
    return _LETTERS.sub("", _NUMBER.sub(lambda match: match[0].strip(), _words(words)))


def _tokens(text: str) -> str:
    """Separate the tokens of a text by spaces, as CoreNLP does."""
    return " ".join(token.replace(" ", "") for token in _TOKENS.findall(text))


def _characters(pieces: Sequence[str]) -> str:
    """Join pieces, with a space only where two runs of letters or digits would become one."""
    text = ""
    for piece in pieces:
        between = bool(text) and bool(_RUN.fullmatch(text[-1])) and bool(_RUN.fullmatch(piece[:1]))
        text += f" {piece}" if between else piece
    return text


_RUN = re.compile(rf"[^\W{_CHINESE}]")

JOINED: dict[str, tuple[re.Pattern[str], Callable[[Sequence[str]], str]]] = {
    "words": (_WORDS, _words),
    "chars": (_CHARACTERS, _characters),
    "spaces": (_SPACES, " ".join),
}
