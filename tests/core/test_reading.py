"""Test what counts as a line, as UTF-8 and as a path that fairseq can read."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from fairseq_posenc.core import reading
from fairseq_posenc.core.words import vocabulary_problem

SENTENCE = "Ein Hund läuft.\n"


def test_only_a_line_feed_ends_a_line(tmp_path: Path) -> None:
    others = "\r\u2028\u2029\x85\x0b\x0c\x1c\x1e"
    (tmp_path / "text").write_bytes(f"a{others}b\r\n\nc\n".encode())
    assert reading.read_lines(tmp_path / "text") == [f"a{others}b", "", "c"]


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


def test_errors_of_sentencepiece_become_a_sentence() -> None:
    sentences = tomllib.loads(Path(__file__).with_name("sentencepiece.toml").read_text("utf-8"))
    assert {error: vocabulary_problem(error) for error in sentences} == sentences
