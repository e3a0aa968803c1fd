"""Vocabularies from a sample of the training text."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from io import BytesIO
from pathlib import Path

from .errors import CorpusError

#: characters of the sample, and how many are looked at for one that is kept
SAMPLE, LOOKED_AT = 40_000_000, 10
#: characters that WordPiece keeps, as BERT's trainers do
ALPHABET = 1000
BERT_SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


class Sample:
    """The documents with the least keys, up to so many characters: which ones does not depend on their order."""

    def __init__(self, characters: int) -> None:
        self.room, self.size, self._kept = characters, 0, list[tuple[int, int, str]]()

    def add(self, key: int, text: str) -> None:
        """`key`: a draw, of which no two are equal but by accident."""
        heapq.heappush(self._kept, (-key, len(self._kept), text))
        self.size += len(text)
        while self.size > self.room and len(self._kept) > 1:
            self.size -= len(heapq.heappop(self._kept)[2])

    def __iter__(self) -> Iterator[str]:
        return (text for _, _, text in sorted(self._kept, key=lambda kept: -kept[0]))


def sentencepiece(sentences: Iterable[str], folder: Path, vocabulary: int, *, byte_fallback: bool) -> None:
    """sentencepiece.model (unigram; Kudo 2018).

    Args:
        byte_fallback: characters that are left out become their UTF-8 bytes, of which no text is unknown.
    Raises:
        CorpusError: text for fewer pieces.
    """
    from sentencepiece import SentencePieceTrainer

    model = BytesIO()  # into a file, it would name the file in itself
    try:
        SentencePieceTrainer.train(
            sentence_iterator=iter(sentences),
            model_writer=model,
            model_type="unigram",
            vocab_size=vocabulary,
            character_coverage=0.9995,
            byte_fallback=byte_fallback,
            num_threads=16,  # its default, written out: unigram's sums, and with them its pieces, depend on it
            max_sentence_length=1 << 20,  # bytes; longer ones would be left out without a word
            minloglevel=2,
        )
    except RuntimeError as error:  # when there is too little text
        raise CorpusError(f"--vocabulary {vocabulary}: {' '.join(str(error).split())}") from None
    (folder / "sentencepiece.model").write_bytes(model.getvalue())


def wordpiece(sentences: Callable[[], Iterable[str]], folder: Path, vocabulary: int, *, lowercase: bool) -> None:
    """vocab.txt, by `tokenizers`.

    Args:
        sentences: gives them from the beginning each time.
    Raises:
        CorpusError: text for fewer pieces.
    """
    from tokenizers import BertWordPieceTokenizer
    from tokenizers.normalizers import BertNormalizer

    normalizer = BertNormalizer(lowercase=lowercase)
    made = BertWordPieceTokenizer(lowercase=lowercase)
    counts: Counter[str] = Counter()
    for sentence in sentences():
        counts.update(normalizer.normalize_str(sentence).replace(" ", ""))
    # Given here, as of characters that are equally frequent the trainer would leave out some by chance.
    alphabet = [character for character, _ in sorted(counts.items(), key=lambda one: (-one[1], one[0]))][:ALPHABET]
    made.train_from_iterator(
        sentences(),
        vocab_size=vocabulary,
        special_tokens=BERT_SPECIALS,
        initial_alphabet=alphabet,
        limit_alphabet=len(alphabet),
        show_progress=False,
    )
    if made.get_vocab_size() != vocabulary:
        raise CorpusError(
            f"--vocabulary {vocabulary}: the training text gives {made.get_vocab_size()} pieces; give that number, "
            "or more text"
        )
    made.save_model(str(folder))
