"""Test which pieces begin a word, and masks of whole words, on real text with the tokenizers that users have."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("fairseq")
pytest.importorskip("tokenizers")

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from fairseq_posenc.data.whole_words import Masking, masked
from fairseq_posenc.data.words import SCHEMES, Words, gpt2_pieces

ROOT = Path(__file__).resolve().parents[2]
SPECIALS = ["<s>", "<pad>", "</s>", "<unk>"]


@functools.cache
def lines() -> list[str]:
    """Return real text with commas, quotes and code: this project's pages without tables and special symbols."""
    pages = sorted((ROOT / "docs").glob("*.md"))
    text = [line.strip() for page in pages for line in page.read_text("utf-8").splitlines()]
    return [" ".join(line.split()) for line in text if line.count(" ") > 3 and not {"|", "<"} & set(line)][:400]


@functools.cache
def tokenizer(scheme: str) -> Tokenizer:
    """Return a small tokenizer of each kind, learned from the text."""
    size = {"vocab_size": 700, "show_progress": False, "special_tokens": SPECIALS}
    if scheme == "wordpiece":
        model, trainer = Tokenizer(models.WordPiece(unk_token="<unk>")), trainers.WordPieceTrainer(**size)
        model.normalizer, model.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
        model.decoder = decoders.WordPiece()
    elif scheme == "gpt2":
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        model, trainer = Tokenizer(models.BPE()), trainers.BpeTrainer(initial_alphabet=alphabet, **size)
        model.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    else:
        model, trainer = Tokenizer(models.Unigram()), trainers.UnigramTrainer(unk_token="<unk>", **size)
        model.pre_tokenizer = pre_tokenizers.Metaspace()
    model.train_from_iterator(lines(), trainer)
    return model


@functools.cache
def vocabulary(scheme: str) -> list[str]:
    if scheme == "fastbpe":
        return SPECIALS + sorted({piece for line in lines() for piece in fastbpe(line)})
    model = tokenizer(scheme)
    return [model.id_to_token(i) for i in range(model.get_vocab_size())]


def fastbpe(line: str) -> list[str]:
    """Split words after three letters, with fastBPE's mark, which is what the tests are about."""
    cut = ([word[i : i + 3] for i in range(0, len(word), 3)] for word in line.split())
    return [piece + "@@" * (i < len(pieces) - 1) for pieces in cut for i, piece in enumerate(pieces)]


def ids_of(scheme: str, line: str) -> list[int]:
    if scheme == "fastbpe":
        index = {piece: i for i, piece in enumerate(vocabulary(scheme))}
        return [index[piece] for piece in fastbpe(line)]
    return tokenizer(scheme).encode(line).ids


def words_of(scheme: str, line: str) -> list[str]:
    """Return the words of the text itself, split at spaces, or for WordPiece by BERT's own rules."""
    if scheme != "wordpiece":
        return line.split()
    model = tokenizer(scheme)
    return [word for word, _ in model.pre_tokenizer.pre_tokenize_str(model.normalizer.normalize_str(line))]


def samples(scheme: str) -> Iterator[tuple[np.ndarray, int]]:
    """Return samples of <s> and lines that end with </s>, and their numbers of words."""
    for start in range(0, len(lines()), 4):
        part = lines()[start : start + 4]
        ids = [0, *(i for line in part for i in [*ids_of(scheme, line), 2])]
        yield np.array(ids), sum(len(words_of(scheme, line)) for line in part)


def masking(mask_idx: int, size: int, **more: float) -> Masking:
    parts = {"mask_prob": 0.15, "leave_unmasked_prob": 0.1, "random_token_prob": 0.1, **more}
    weights = np.ones(size)
    weights[: len(SPECIALS)] = 0
    return Masking(**parts, mask_idx=mask_idx, pad_idx=1, weights=weights / weights.sum(), seed=5)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_words_are_those_of_the_text(scheme: str) -> None:
    words = Words(vocabulary(scheme), range(len(SPECIALS)), scheme)
    for ids, count in samples(scheme):
        numbers = words.numbered(ids)
        assert numbers.max() + 1 == count
        assert ((ids < len(SPECIALS)) == (numbers == -1)).all() or 3 in ids


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


@pytest.mark.parametrize("scheme", SCHEMES)
def test_whole_words_are_masked_as_often_as_asked(scheme: str) -> None:
    """All pieces of a word are masked, or none: a seventh of the text, a tenth of it kept and a tenth replaced."""
    pieces = vocabulary(scheme)
    words, how = Words(pieces, range(len(SPECIALS)), scheme), masking(len(pieces), len(pieces))
    seen = predicted = kept = hidden = chosen = total = 0
    for number, (ids, count) in enumerate(samples(scheme)):
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


def test_most_words_of_the_small_vocabularies_have_several_pieces() -> None:
    """Otherwise the tests above would prove nothing."""
    for scheme in SCHEMES:
        assert sum(len(ids) for ids, _ in samples(scheme)) > 1.3 * sum(count for _, count in samples(scheme))


@settings(max_examples=200, deadline=None)
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
