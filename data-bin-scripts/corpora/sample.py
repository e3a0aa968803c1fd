"""The text that a vocabulary is learned from: a bounded, seeded sample of the documents of training."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from . import keys, sentences
from . import learn as learning
from .counts import factors
from .documents import documents
from .errors import CorpusError
from .files import Source
from .job import Job, Meter
from .tokenise import split_of


def learn(job: Job) -> None:
    """Raises:
    CorpusError: no text, or too little for the vocabulary.
    """
    sample = [text for language, files in sorted(_by_language(job).items()) for text in _sample(job, language, files)]
    if not sample:
        raise CorpusError(f"{job.sources()[0].path}: no document with text, nor in the other files; see --documents")
    job.tokenizer.mkdir(parents=True, exist_ok=True)
    size, settings = job.settings.vocabulary, job.settings

    def lines() -> Iterator[str]:
        return (line for text in sample for line in text.split("\n"))

    if settings.tokenizer == "wordpiece":
        learning.wordpiece(lines, job.tokenizer, size, lowercase=not settings.cased)
    else:
        learning.sentencepiece(lines(), job.tokenizer, size, byte_fallback=settings.languages)


def _by_language(job: Job) -> dict[str, list[tuple[int, Source]]]:
    found: dict[str, list[tuple[int, Source]]] = defaultdict(list)
    for file, source in enumerate(job.sources()):
        if source.split == "train":
            found[source.language].append((file, source))
    return found


def shares(job: Job) -> dict[str, float]:
    """The part of the sample that each language has: smoothed as the training is, by the bytes of the files."""
    sizes = {
        language: max(1, sum(source.path.stat().st_size for _, source in files))
        for language, files in _by_language(job).items()
    }
    factor = factors(sizes, job.settings.smoothing)
    drawn = {language: size * factor[language] for language, size in sizes.items()}
    return {language: size / sum(drawn.values()) for language, size in drawn.items()}


def _sample(job: Job, language: str, files: list[tuple[int, Source]]) -> Iterator[str]:
    """Documents as their sentences, a line each."""
    room = int(learning.SAMPLE * shares(job)[language])
    sample, left = learning.Sample(room), room * learning.LOOKED_AT
    meter = Meter(job, "learn", 0)
    for key, text in _documents(job, files):
        sample.add(key, text)
        meter.add()
        left -= len(text)
        if left <= 0:
            break
    meter.tell()
    for text in sample:
        yield "\n".join(sentences.split(language, text.split("\n")))


def _documents(job: Job, files: list[tuple[int, Source]]) -> Iterator[tuple[int, str]]:
    """Those of training with their keys; files in an order by draw, as not all may be looked at."""
    seed, left = job.settings.seed, job.settings.limit or -1
    for file, source in sorted(files, key=lambda one: int(keys.keys(seed, keys.FILES, one[0])[0])):
        for index, found in enumerate(documents(source.path, source.documents)):
            if left == 0:
                return
            left -= 1
            text = "\n".join(sentences.clean(found.text))
            if text and split_of(job, source, file, index) == "train":
                yield int(keys.keys(seed, keys.SAMPLE, file, index)[0]), text
