"""Test which pieces begin a word, and masks of whole words, on real text with the tokenizers that users have."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import numpy as np
import pytest
import support_tokenizers as tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers.pre_tokenizers import BertPreTokenizer

from fairseq_posenc.data.whole_words import Masking, masked
from fairseq_posenc.data.words import SCHEMES, Words, gpt2_pieces

SPECIALS = ["<s>", "<pad>", "</s>", "<unk>"]
#: Form of the tokenizer of each scheme but fastBPE, whose mark is all that the tests are about.
FORMS = {"sentencepiece": "unigram", "wordpiece": "wordpiece", "gpt2": "gpt2"}


class Text:
    """Hold the pieces of a scheme, and samples with their numbers of words: <s>, and four lines that end with </s>."""

    def __init__(self, scheme: str) -> None:
        self.samples, lines = [], [" ".join(line.split()) for line in tokenizers.lines()]
        if scheme in FORMS:
            with tempfile.TemporaryDirectory() as folder:
                cut, pieces = tokenizers.cutter(FORMS[scheme], tokenizers.learned(FORMS[scheme], Path(folder) / "x"))
        else:
            cut, pieces = fastbpe, sorted({piece for line in lines for piece in fastbpe(line)})
        self.pieces = [*SPECIALS, *pieces]
        self.words = Words(self.pieces, range(len(SPECIALS)), scheme)
        index = {piece: i for i, piece in enumerate(self.pieces)}
        for start in range(0, len(lines), 4):
            part = lines[start : start + 4]
            ids = [0, *(i for line in part for i in [*(index.get(piece, 3) for piece in cut(line)), 2])]
            count = BertPreTokenizer().pre_tokenize_str if scheme == "wordpiece" else str.split
            self.samples.append((np.array(ids), sum(len(count(line)) for line in part)))
        assert sum(len(ids) for ids, _ in self.samples) > 1.3 * sum(count for _, count in self.samples)


def fastbpe(line: str) -> list[str]:
    """Split words after three letters."""
    cut = ([word[i : i + 3] for i in range(0, len(word), 3)] for word in line.split())
    return [piece + "@@" * (i < len(pieces) - 1) for pieces in cut for i, piece in enumerate(pieces)]


@pytest.fixture(scope="module", params=SCHEMES)
def text(request: pytest.FixtureRequest) -> Text:
    return Text(request.param)


def masking(mask_idx: int, size: int, **more: float) -> Masking:
    parts = {"mask_prob": 0.15, "leave_unmasked_prob": 0.1, "random_token_prob": 0.1, **more}
    weights = np.ones(size)
    weights[: len(SPECIALS)] = 0
    return Masking(**parts, mask_idx=mask_idx, pad_idx=1, weights=weights / weights.sum(), seed=5)


def test_words_are_those_of_the_text(text: Text) -> None:
    for ids, count in text.samples:
        numbers = text.words.numbered(ids)
        assert numbers.max() + 1 == count
        assert ((ids < len(SPECIALS)) == (numbers == -1)).all()


@pytest.mark.parametrize(
    ("scheme", "pieces", "expected"),
    [
        ("sentencepiece", "▁M <unk> or i ▁ <unk> ▁x </s> <unk> y", [0, -1, 0, 0, 1, -1, 2, -1, -1, 3]),
        ("wordpiece", "a <unk> b ##c <unk> </s> <unk> ##d", [0, -1, 1, 1, -1, -1, -1, 2]),
        ("gpt2", "a <unk> b Ġc <unk>", [0, -1, 0, 1, -1]),
        ("fastbpe", "a@@ <unk> b <unk> c", [0, -1, 1, -1, 2]),
    ],
)
def test_an_unknown_piece_does_not_end_a_word(scheme: str, pieces: str, expected: list[int]) -> None:
    """The unknown piece is not part of the word either, so that it is never predicted."""
    listed = [*SPECIALS, *dict.fromkeys(piece for piece in pieces.split() if piece not in SPECIALS)]
    words = Words(listed, range(len(SPECIALS)), scheme)
    ids = np.array([listed.index(piece) for piece in pieces.split()])
    assert words.numbered(ids).tolist() == expected


def test_whole_words_are_masked_as_often_as_asked(text: Text) -> None:
    """All pieces of a word are masked, or none: a seventh of the text, a tenth of it kept and a tenth replaced."""
    words, how = text.words, masking(len(text.pieces), len(text.pieces))
    seen = predicted = kept = hidden = chosen = total = 0
    for number, (ids, count) in enumerate(text.samples):
        for epoch in range(4):
            source, target = masked(ids, words, how, (epoch, number))
            on = target != how.pad_idx
            assert (target[on] == ids[on]).all()
            assert (source[~on] == ids[~on]).all()
            of_word = words.numbered(ids)
            picked = {int(word) for word in of_word[on]}
            assert -1 not in picked
            assert (np.isin(of_word, list(picked)) == on).all()
            for word in picked:
                fate = source[of_word == word] == how.mask_idx
                assert fate.all() or not fate.any()
            seen, predicted = seen + len(ids), predicted + on.sum()
            kept, hidden = kept + (source[on] == ids[on]).sum(), hidden + (source[on] == how.mask_idx).sum()
            chosen, total = chosen + len(picked), total + count
    assert chosen / total == pytest.approx(0.15, abs=0.01)
    assert predicted / seen == pytest.approx(0.15, abs=0.03)
    assert hidden / predicted == pytest.approx(0.8, abs=0.04)
    assert kept / predicted == pytest.approx(0.1, abs=0.03)


def test_rounding_keeps_the_mean_number_of_words() -> None:
    """Of ten words, 1.3 are chosen: one or two in a sample, and 1.3 in the mean."""
    words, how = Words([*SPECIALS, "▁a"], range(4), "sentencepiece"), masking(5, 5, mask_prob=0.13)
    chosen = [int((masked(np.full(10, 4), words, how, (0, number))[1] == 4).sum()) for number in range(4000)]
    assert set(chosen) == {1, 2}
    assert np.mean(chosen) == pytest.approx(1.3, abs=0.03)  # four standard errors


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=30), st.integers(0, 5), st.integers(0, 5))
def test_masks_depend_on_epoch_and_number_only(ids: list[int], epoch: int, number: int) -> None:
    words = Words([*SPECIALS, "▁a", "b", "▁c", "d", "▁e", "▁"], range(4), "sentencepiece")
    array, how = np.array(ids), masking(10, 10, mask_prob=0.5)
    first, other = (masked(array, words, how, (epoch, number)) for _ in range(2))
    assert all((x == y).all() for x, y in zip(first, other, strict=True))
    assert (first[1][array < 4] == 1).all()
    assert not np.isin(first[0][array >= 4], range(4)).any()


def test_another_epoch_has_other_masks() -> None:
    words, how = Words([*SPECIALS, "▁a"], range(4), "sentencepiece"), masking(5, 5)
    epochs = {masked(np.full(100, 4), words, how, (epoch, 0))[0].tobytes() for epoch in range(20)}
    assert len(epochs) == 20


@pytest.mark.parametrize("parts", [{"mask_prob": 0}, {"leave_unmasked_prob": 0.6, "random_token_prob": 0.6}])
def test_impossible_parts_are_refused(parts: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="-prob"):
        masking(5, 5, **parts)


def test_numbers_of_gpt2_become_pieces(tmp_path: Path) -> None:
    path = tmp_path / "encoder.json"
    path.write_text(json.dumps({"Ġa": 7, "b": 3}), "utf-8")
    assert gpt2_pieces(["3", "7", "madeupword0000"], path) == ["b", "Ġa", "madeupword0000"]
    with pytest.raises(ValueError, match="no piece with id 8"):
        gpt2_pieces(["8"], path)
