"""Test the windows of questions and contexts, and how answers are found from logits."""

from __future__ import annotations

import json

import numpy as np
import pytest

from fairseq_posenc.data import span_items
from fairseq_posenc.data.span_items import NULL, Item, Piece, Shape, Window, items, owner, windows
from fairseq_posenc.data.span_search import Answer, Search, WindowLogits, probabilities, search

# --- windows


def run_squad(pieces: int, room: int, stride: int) -> list[Window]:
    """Return the windows by BERT's own loop."""
    spans = []
    start_offset = 0
    while start_offset < pieces:
        length = pieces - start_offset
        if length > room:
            length = room
        spans.append(Window(start_offset, length))
        if start_offset + length == pieces:
            break
        start_offset += min(length, stride)
    return spans


def is_max_context(spans: list[Window], current: int, position: int) -> bool:
    """Return the result of BERT's own _check_is_max_context."""
    best_score = best_index = None
    for index, (start, length) in enumerate(spans):
        end = start + length - 1
        if position < start or position > end:
            continue
        score = min(position - start, end - position) + 0.01 * length
        if best_score is None or score > best_score:
            best_score, best_index = score, index
    return current == best_index


@pytest.mark.parametrize("room", [1, 5, 8])
@pytest.mark.parametrize("stride", [1, 3, 8, 20])
def test_windows_equal_those_of_bert(room: int, stride: int) -> None:
    for pieces in range(25):
        spans = windows(pieces, room, stride)
        assert spans == run_squad(pieces, room, stride)
        for piece in range(pieces):
            best = owner(spans, piece)
            assert [is_max_context(spans, number, piece) for number in range(len(spans))].index(True) == best


def test_a_window_by_hand() -> None:
    context = [Piece(10 + number, number, number + 1) for number in range(7)]
    shape = Shape(longest=10, stride=3, longest_question=2)
    samples = items([7, 8, 9], context, (3, 4), shape)  # the question's third piece is cut off
    assert [item.tokens for item in samples] == [
        [0, 7, 8, 2, 2, 10, 11, 12, 13, 2],
        [0, 7, 8, 2, 2, 13, 14, 15, 16, 2],
    ]
    assert [item[1:] for item in samples] == [(Window(0, 4), 5, NULL, NULL), (Window(3, 4), 5, 5, 6)]
    (sample,) = items([7], context, None, Shape(longest=20, longest_question=2, separators=1))
    assert sample == Item([0, 7, 2, *range(10, 17), 2], Window(0, 7), 3, NULL, NULL)
    assert items([7], [], None, shape) == []


def test_shapes_without_room_are_refused() -> None:
    with pytest.raises(ValueError, match="--length 68 leaves no room for a context after a question of 64 pieces"):
        Shape(longest=68)
    assert Shape(longest=69).room(64) == 1
    with pytest.raises(ValueError, match=r"--separators 3: the number must be 1 or 2"):
        Shape(longest=100, separators=3)
    with pytest.raises(ValueError, match="--stride 0, --longest-question 64: both must be at least 1"):
        Shape(longest=100, stride=0)


# --- answers


def read(window: Window, start: list[float], end: list[float], column: int = 1) -> WindowLogits:
    return WindowLogits(window, column, np.array(start, float), np.array(end, float))


OFFSETS = [(0, 1), (2, 3), (4, 5), (6, 7)]
TEXT = "a b c d"


def test_answers_by_hand() -> None:
    window = read(Window(0, 4), [1, 0, 3, 0, 2, 9], [0.5, 0, 1, 4, 0, 9])  # the last column is </s>
    answers = search(TEXT, OFFSETS, [window], Search(n_best=3, longest=2))
    assert answers.best == [Answer("b c", 3, 4), Answer("b", 3, 1), Answer("c", 0, 4)]
    assert answers.null == Answer("", 1, 0.5)
    assert answers.odds == 1.5 - 7
    longer = search(TEXT, OFFSETS, [window], Search(n_best=20, longest=30))
    assert len(longer.best) == 4 + 3 + 2 + 1
    assert longer.best[0].text == "b c"


def test_a_piece_counts_in_the_window_with_most_context() -> None:
    """The answer begins with c, at the edge of the first window; no answer has the lowest score of all windows."""
    spans = [Window(0, 3), Window(1, 3)]
    first = read(spans[0], [5, 0, 0, 9, 0], [5, 0, 0, 0, 0])
    second = read(spans[1], [1, 0, 2, 0, 0], [1, 0, 2, 0, 0])
    answers = search(TEXT, OFFSETS, [first, second], Search())
    assert answers.best[0] == Answer("c", 2, 2)
    assert answers.null == Answer("", 1, 1)
    assert owner(spans, 1) == 0
    assert search(TEXT, OFFSETS, [first], Search()).best[0] == Answer("c", 9, 0)


def test_texts_are_not_empty_and_each_comes_once() -> None:
    offsets = [(0, 1), (1, 1), (2, 3)]
    window = read(Window(0, 3), [0, 1, 9, 2], [0, 1, 9, 2])
    answers = search("a a", offsets, [window], Search())
    assert [answer.text for answer in answers.best] == ["a", "a a"]
    assert answers.best[0] == Answer("a", 9, 2)  # from the piece without text to the second a
    nothing = search("", [], [], Search())
    assert nothing == ([], Answer("", 0, 0), 0)
    assert probabilities(nothing.best) == []


def test_pieces_of_one_place_leave_room_for_other_texts() -> None:
    """Each letter has three bytes, so that nine spans have the same text."""
    offsets = [(at, at + 1) for at in range(4) for _ in range(3)]
    logits = [0.0, *np.linspace(1, 2, 12), 0.0]
    answers = search("日本語文", offsets, [read(Window(0, 12), logits, logits)], Search(n_best=20))
    assert len(answers.best) == 10  # one per different text


@pytest.mark.parametrize("seed", range(10))
def test_no_span_is_better_than_the_first(seed: int) -> None:
    """Compare with a search over all spans that BERT's rules allow."""
    rng = np.random.default_rng(seed)
    length = int(rng.integers(1, 30))
    spans = span_items.windows(length, int(rng.integers(1, 12)), int(rng.integers(1, 9)))
    offsets = [(2 * number, 2 * number + 1) for number in range(length)]
    text = " ".join("abcdefghijklmnopqrstuvwxyzABCDEFGH"[:length])
    reads = [
        WindowLogits(span, 3, rng.normal(size=span.length + 4), rng.normal(size=span.length + 4)) for span in spans
    ]
    most = int(rng.integers(1, 6))
    tried = [
        (read.start[3 + i] + read.end[3 + j], text[2 * (read.window.first + i) : 2 * (read.window.first + j) + 1])
        for number, read in enumerate(reads)
        for i in range(read.window.length)
        for j in range(i, min(i + most, read.window.length))
        if is_max_context(spans, number, read.window.first + i)
    ]
    tried.sort(reverse=True)
    answers = search(text, offsets, reads, Search(n_best=5, longest=most))
    seen = list(dict.fromkeys(answer for _, answer in tried))[:5]
    assert [answer.text for answer in answers.best] == seen
    assert answers.best[0].score == pytest.approx(tried[0][0])
    assert sum(probabilities(answers.best)) == pytest.approx(1)
    assert json.dumps(probabilities(answers.best))
