"""Test, for every form of tokenizer, the places in the text to which its pieces belong."""

from __future__ import annotations

import itertools
import random
import unicodedata
from pathlib import Path

import pytest
import support_tokenizers as tokenizers

from fairseq_posenc.data.byte_pieces import shared
from fairseq_posenc.data.span_items import Piece, place
from fairseq_posenc.data.span_pieces import Pieces, RegexSplitter, TokenizerSplitter, trimmed
from fairseq_posenc.data.words import MASK
from fairseq_posenc.hub import tokenizer
from fairseq_posenc.hub.ids import SPECIALS

LETTERS = [
    *"abz AZ  09.,'-\"()éüß日本語の、。İﬁ½\t\n\u3000\xa0👍🏽\u200b\u2581",
    *"e\u0301|the |[MASK]|</s>|##a".split("|"),
]


def cutters(folder: Path) -> dict[str, Pieces]:
    """Return a splitter for every form of tokenizer, with the ids of a dictionary in another order."""
    by_kind: dict[str, Pieces] = {}
    for form in (*tokenizers.FORMS, *tokenizers.BYTES):
        files = tokenizers.learned(form, folder / form)
        _, pieces = tokenizers.cutter(form, files)
        symbols = [*SPECIALS, *tokenizers.shuffled(pieces), MASK]
        source, where = tokenizer.read(files)
        by_kind[form] = TokenizerSplitter(tokenizer.fitted(source, symbols, where, segments=False)[0])
    chinese = folder / "chinese"
    chinese.mkdir()
    listed = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"日本語の、。ab", "##b", "##a", "the"]
    (chinese / "vocab.txt").write_text("\n".join(listed) + "\n", "utf-8")
    source, where = tokenizer.read(chinese)
    by_kind["chinese"] = TokenizerSplitter(
        tokenizer.fitted(source, [*SPECIALS, *listed[5:], MASK], where, segments=False)[0]
    )
    for kind in ("words", "chars", "spaces"):
        by_kind[kind] = RegexSplitter(kind, {"the": 4, "日": 5}, cased=False)
    return by_kind


@pytest.fixture(scope="module")
def cut(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Pieces]:
    return cutters(tmp_path_factory.mktemp("tokenizers"))


FORMS = [*tokenizers.FORMS, *tokenizers.BYTES, "chinese", "words", "chars", "spaces"]


@pytest.mark.parametrize("form", FORMS)
def test_places_are_those_of_the_original_text(cut: dict[str, Pieces], form: str) -> None:
    """Places are in order and without surrounding spaces, and every letter and digit belongs to a piece."""
    rng = random.Random(1)
    for number in range(300):
        text = "".join(rng.choices(LETTERS, k=rng.randint(0, 30))) if number else ""
        pieces = cut[form].cut(text)
        for piece, after in itertools.pairwise(pieces):
            assert piece.start <= after.start
            assert piece.end <= max(after.end, after.start)
        for piece in pieces:
            assert 0 <= piece.start <= piece.end <= len(text)
            assert text[piece.start : piece.end] == text[piece.start : piece.end].strip()
            assert piece.id >= 3
        covered = {place for piece in pieces for place in range(piece.start, piece.end)}
        letters = {place for place, letter in enumerate(text) if letter.isascii() and letter.isalnum()}
        assert letters <= covered, text


@pytest.mark.parametrize("form", FORMS)
def test_words_come_back_from_their_pieces(cut: dict[str, Pieces], form: str) -> None:
    """The words stand next to accents, letters without a piece, and spaces of all kinds."""
    rng = random.Random(2)
    words = ["Größe", "naïve", "日本語", "cafe\u0301", "3.14", "Zorn", "(of)", "x\u4dc0y", "👍🏽", "don't"]
    for _ in range(200):
        chosen = rng.choices(words, k=9)
        spaces = [rng.choice([" ", "  ", "\n", "\u3000", "\t "]) for _ in chosen]
        text = "".join(space + word for space, word in zip(spaces, chosen, strict=True))
        first, last = sorted(rng.choices(range(9), k=2))
        start = sum(map(len, chosen[:first])) + sum(map(len, spaces[: first + 1]))
        end = sum(map(len, chosen[: last + 1])) + sum(map(len, spaces[: last + 1]))
        pieces = cut[form].cut(text)
        span = place(pieces, start, end)
        assert span is not None
        assert text[pieces[span[0]].start : pieces[span[1]].end] == text[start:end]


@pytest.mark.parametrize("form", tokenizers.BYTES)
@pytest.mark.parametrize(
    "letters", ["ö ß", "日 本 語", "ö ß é 日 👍", "e\u0301 ß", "ß e\u0301 ö", "\u0958 ß", "か\u3099 日"]
)
def test_each_unknown_letter_has_the_place_of_its_own_bytes(cut: dict[str, Pieces], form: str, letters: str) -> None:
    """This includes letters that normalisation changes: e and its accent become é, and U+0958 two characters."""
    text = f"Gr{letters.replace(' ', '')}e"
    pieces, start = cut[form].cut(text), 2
    for letter in letters.split():
        span = place(pieces, start, start + len(letter))
        assert span is not None
        assert text[pieces[span[0]].start : pieces[span[1]].end] == letter
        forms = (letter, unicodedata.normalize("NFKC", letter))
        assert span[1] - span[0] + 1 in {len(form.encode()) for form in forms}
        start += len(letter)


def test_bytes_whose_letters_cannot_be_told_keep_the_common_place() -> None:
    names = ["<0xC3>", "<0x9F>", "<0xC3>", "<0x9F>", "a", "<0x9F>", "<0xC3>"]
    places = [(0, 3)] * 4 + [(3, 4)] + [(4, 6)] * 2
    assert shared("xyzauv", names, places) == places  # two characters for three letters; no first byte
    assert shared("xyauv", names[:5], [(0, 2)] * 4 + [(2, 3)]) == [(0, 1)] * 2 + [(1, 2)] * 2 + [(2, 3)]


def test_spaces_are_cut_off() -> None:
    assert trimmed(" the ", 9, 0, 5) == Piece(9, 1, 4)
    assert trimmed("a  b", 9, 1, 3) == Piece(9, 3, 3)
    assert place([Piece(4, 0, 2), Piece(5, 3, 3), Piece(6, 4, 6)], 1, 5) == (0, 2)
    assert place([Piece(4, 0, 2)], 2, 3) is None
