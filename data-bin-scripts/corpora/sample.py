"""Vocabularies, learned from a bounded, seeded sample of the documents of training."""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from io import BytesIO
from pathlib import Path

from . import keys, sentences
from .counts import factors
from .documents import documents
from .errors import CorpusError
from .files import Source
from .job import Job, Meter
from .tokenise import split_of

#: characters of the sample, and how many are looked at for one that is kept
SAMPLE, LOOKED_AT = 40_000_000, 10
#: characters that WordPiece keeps, as BERT's trainers do
ALPHABET = 1000
BERT_SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def learn(job: Job, task: int, meter: Meter) -> None:
    """Learn a vocabulary: tokenizer/.

    Raises:
        CorpusError: There is no text, or too little for the vocabulary.
    """
    languages = sorted(_by_language(job).items())
    sample = [text for language, files in languages for text in _sample(job, language, files, meter)]
    if not sample:
        raise CorpusError(f"{job.sources()[0].path}: no document with text, nor in the other files; see --documents")
    job.tokenizer.mkdir(parents=True, exist_ok=True)
    size, settings = job.settings.vocabulary, job.settings

    def lines() -> Iterator[str]:
        return (line for text in sample for line in text.split("\n"))

    if settings.tokenizer == "wordpiece":
        _wordpiece(lines, job.tokenizer, size, lowercase=not settings.cased)
    else:
        _sentencepiece(lines(), job.tokenizer, size, byte_fallback=settings.languages)


def _by_language(job: Job) -> dict[str, list[tuple[int, Source]]]:
    found: dict[str, list[tuple[int, Source]]] = defaultdict(list)
    for file, source in enumerate(job.sources()):
        if source.split == "train":
            found[source.language].append((file, source))
    return found


def shares(job: Job) -> dict[str, float]:
    """Return the part of the sample for each language: smoothed as the training is, by the bytes of the files."""
    sizes = {
        language: max(1, sum(source.path.stat().st_size for _, source in files))
        for language, files in _by_language(job).items()
    }
    factor = factors(sizes, job.settings.smoothing)
    drawn = {language: size * factor[language] for language, size in sizes.items()}
    return {language: size / sum(drawn.values()) for language, size in drawn.items()}


def _sample(job: Job, language: str, files: list[tuple[int, Source]], meter: Meter) -> Iterator[str]:
    """Yield documents as their sentences, a line each."""
    room = int(SAMPLE * shares(job)[language])
    sample, left = Sample(room), room * LOOKED_AT
    for key, text in _documents(job, files):
        sample.add(key, text)
        meter.add()
        left -= len(text)
        if left <= 0:
            break
    for text in sample:
        yield "\n".join(sentences.split(language, text.split("\n")))


def _documents(job: Job, files: list[tuple[int, Source]]) -> Iterator[tuple[int, str]]:
    """Yield the training documents with their keys; files in an order by draw, as not all may be looked at."""
    seed, left = job.settings.seed, job.settings.limit or -1
    for file, source in sorted(files, key=lambda one: int(keys.keys(seed, keys.FILES, one[0])[0])):
        for index, found in enumerate(documents(source.path, source.documents)):
            if left == 0:
                return
            left -= 1
            text = "\n".join(sentences.clean(found.text))
            if text and split_of(job, source, file, index) == "train":
                yield int(keys.keys(seed, keys.SAMPLE, file, index)[0]), text


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


def _sentencepiece(sentences: Iterable[str], folder: Path, vocabulary: int, *, byte_fallback: bool) -> None:
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


def _wordpiece(sentences: Callable[[], Iterable[str]], folder: Path, vocabulary: int, *, lowercase: bool) -> None:
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
