"""Learn vocabularies from a bounded, seeded sample of the training documents."""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from io import BytesIO
from pathlib import Path

from shared import vocabulary_problem

from . import keys, sentences
from .counts import factors
from .documents import documents
from .errors import CorpusError
from .files import Source
from .job import Job, Meter
from .tokenise import split_of

#: maximum number of characters of the sample, and how many times as many are read to draw it
SAMPLE, LOOKED_AT = 40_000_000, 10
#: maximum number of characters in WordPiece's alphabet, as in BERT's trainers
ALPHABET = 1000
BERT_SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def learn(job: Job, task: int, meter: Meter) -> None:
    """Learn a vocabulary and write it to tokenizer/.

    Raises:
        CorpusError: There is no text, or too little for a vocabulary of this size.
    """
    languages = sorted(_by_language(job).items())
    sample = [text for language, files in languages for text in _sample(job, language, files, meter)]
    if not sample:
        raise CorpusError(f"{job.sources()[0].path}: no document of the training files has text. See --documents.")
    job.tokenizer.mkdir(parents=True, exist_ok=True)
    size, settings = job.settings.vocabulary, job.settings

    def lines() -> Iterator[str]:
        return (line for text in sample for line in text.split("\n"))

    if settings.tokenizer == "wordpiece":
        _wordpiece(lines, job.tokenizer, size, lowercase=not settings.cased)
    else:
        _sentencepiece(lines(), job.tokenizer, size, byte_fallback=settings.languages)


def _by_language(job: Job) -> dict[str, list[tuple[int, Source]]]:
    files: dict[str, list[tuple[int, Source]]] = defaultdict(list)
    for file, source in enumerate(job.sources()):
        if source.split == "train":
            files[source.language].append((file, source))
    return files


def shares(job: Job) -> dict[str, float]:
    """Return each language's share of the sample, computed from the bytes of its files and smoothed as in training."""
    sizes = {
        language: max(1, sum(source.path.stat().st_size for _, source in files))
        for language, files in _by_language(job).items()
    }
    factor = factors(sizes, job.settings.smoothing)
    drawn = {language: size * factor[language] for language, size in sizes.items()}
    return {language: size / sum(drawn.values()) for language, size in drawn.items()}


def _sample(job: Job, language: str, files: list[tuple[int, Source]], meter: Meter) -> Iterator[str]:
    """Yield the sampled documents of a language, with one sentence per line."""
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
    """Yield each training document with a random key.

    The files are read in random order, because reading may stop before the last file.
    """
    seed, left = job.settings.seed, job.settings.limit or -1
    for file, source in sorted(files, key=lambda entry: int(keys.keys(seed, keys.FILES, entry[0])[0])):
        for index, document in enumerate(documents(source.path, source.documents)):
            if left == 0:
                return
            left -= 1
            text = "\n".join(sentences.clean(document.text))
            if text and split_of(job, source, file, index) == "train":
                yield int(keys.keys(seed, keys.SAMPLE, file, index)[0]), text


class Sample:
    """Keep the documents with the smallest random numbers, up to a total number of characters.

    The order in which the documents are added does not change the result.
    """

    def __init__(self, characters: int) -> None:
        self.room, self.size, self._kept = characters, 0, list[tuple[int, int, str]]()

    def add(self, key: int, text: str) -> None:
        """Add a document whose random number is `key`."""
        heapq.heappush(self._kept, (-key, len(self._kept), text))
        self.size += len(text)
        while self.size > self.room and len(self._kept) > 1:
            self.size -= len(heapq.heappop(self._kept)[2])

    def __iter__(self) -> Iterator[str]:
        return (text for _, _, text in sorted(self._kept, key=lambda entry: -entry[0]))


def _sentencepiece(sentences: Iterable[str], folder: Path, vocabulary: int, *, byte_fallback: bool) -> None:
    """Learn a unigram model (Kudo 2018) and write it to sentencepiece.model.

    Args:
        byte_fallback: Whether to replace characters outside the vocabulary by UTF-8 bytes, so that no text is unknown.
    Raises:
        CorpusError: The text is too short for a vocabulary of this size, or has too many different characters.
    """
    from sentencepiece import SentencePieceTrainer

    model = BytesIO()  # written to a file, the model would contain the file's name
    try:
        SentencePieceTrainer.train(
            sentence_iterator=iter(sentences),
            model_writer=model,
            model_type="unigram",
            vocab_size=vocabulary,
            character_coverage=0.9995,
            byte_fallback=byte_fallback,
            num_threads=16,  # the default; the model's pieces depend on it
            max_sentence_length=1 << 20,  # bytes; longer sentences would be dropped silently
            minloglevel=2,
        )
    except RuntimeError as error:  # raised if there is too little text, or too many different characters
        raise CorpusError(f"--vocabulary {vocabulary}: {vocabulary_problem(str(error))}") from None
    (folder / "sentencepiece.model").write_bytes(model.getvalue())


def _wordpiece(sentences: Callable[[], Iterable[str]], folder: Path, vocabulary: int, *, lowercase: bool) -> None:
    """Learn a WordPiece vocabulary with `tokenizers` and write it to vocab.txt.

    Args:
        sentences: Function that returns a new iterator over all sentences at each call.
    Raises:
        CorpusError: The text is too short for a vocabulary of this size.
    """
    from tokenizers import BertWordPieceTokenizer
    from tokenizers.normalizers import BertNormalizer

    normalizer = BertNormalizer(lowercase=lowercase)
    tokenizer = BertWordPieceTokenizer(lowercase=lowercase)
    counts: Counter[str] = Counter()
    for sentence in sentences():
        counts.update(normalizer.normalize_str(sentence).replace(" ", ""))
    # We pass the alphabet, because the trainer would choose among equally frequent characters at random.
    by_frequency = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
    alphabet = [character for character, _ in by_frequency[:ALPHABET]]
    tokenizer.train_from_iterator(
        sentences(),
        vocab_size=vocabulary,
        special_tokens=BERT_SPECIALS,
        initial_alphabet=alphabet,
        limit_alphabet=len(alphabet),
        show_progress=False,
    )
    if (size := tokenizer.get_vocab_size()) != vocabulary:
        raise CorpusError(
            f"--vocabulary {vocabulary}: the training text has only {size} pieces. Give --vocabulary {size}, or add "
            "training text."
        )
    tokenizer.save_model(str(folder))
