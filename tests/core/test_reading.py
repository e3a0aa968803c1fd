"""Test what counts as a line, as UTF-8 and as a path that fairseq can read."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairseq_posenc.core import reading
from fairseq_posenc.core.words import vocabulary_problem

SENTENCE = "Ein Hund läuft.\n"


@pytest.mark.parametrize("separator", ["\r", "\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\x1e"])
def test_only_a_line_feed_ends_a_line(separator: str, tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(f"a{separator}b\r\n\nc\n".encode())
    assert reading.read_lines(path) == [f"a{separator}b", "", "c"]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf_16_is_named(encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(SENTENCE.encode(encoding))
    with pytest.raises(reading.NotTextError, match=r"text is UTF-16, but must be UTF-8. Convert it with: iconv"):
        reading.read_utf8(path)
    with pytest.raises(reading.NotTextError, match="UTF-16"):
        reading.decoded(path.read_bytes().partition(b"\n")[0], path, 1)


@pytest.mark.parametrize("content", [b"", b"a", b"a\0", b"a\0b\n", b"text\0", b"\0\0\0\0\0\0\0\0", SENTENCE.encode()])
def test_other_text_is_not_taken_for_utf_16(content: bytes) -> None:
    assert not reading.is_utf16(content)


def test_a_line_that_is_not_utf_8_is_named() -> None:
    with pytest.raises(reading.NotTextError, match=r"^text:7: the line is not UTF-8, .* the byte 0xe4"):
        reading.decoded(b"l\xe4uft", "text", 7)


def test_a_path_with_a_colon_is_no_path_for_fairseq() -> None:
    assert "fairseq splits a path" in reading.colon_problem("data/12:30")
    assert not reading.colon_problem("data/12-30")


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (
            "INTERNAL: a.cc(744) [(size()) == (b)] Vocabulary size too high (99). Please set it to a value <= 37.",
            "the text is too short. Give at most --vocabulary 37.",
        ),
        (
            "INTERNAL: a.cc(638) [(a) <= (b)] Vocabulary size is smaller than required_chars. 3 vs 26. Increase it.",
            "the characters of the text and the special symbols need more. Give at least --vocabulary 26.",
        ),
        ("INTERNAL: a.cc(829) [insert_id(x)] ", "the special symbols alone need more. Give a larger --vocabulary."),
    ],
)
def test_errors_of_sentencepiece_become_a_sentence(error: str, sentence: str) -> None:
    assert vocabulary_problem(error) == sentence
