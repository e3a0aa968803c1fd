"""Learn vocabularies from a bounded, seeded sample of the training documents."""

from __future__ import annotations

import heapq
import json
from argparse import Namespace
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from io import BytesIO
from pathlib import Path

from shared import CorpusError, vocabulary_problem

from . import keys
from .documents import documents
from .files import Source, is_valid
from .lines import tidy
from .pieces import CONFIG
from .sentences import split

#: maximum number of characters of the sample, and how many times as many are read to draw it
SAMPLE, LOOKED_AT = 40_000_000, 10
#: maximum number of characters in WordPiece's alphabet, as in BERT's trainers
ALPHABET = 1000
BERT_SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
Numbered = list[tuple[int, Source]]  # files with their numbers in the list of all files


def learn(options: Namespace, sources: list[Source], folder: Path) -> None:
    """Learn a vocabulary and write it to an existing folder.

    Raises:
        CorpusError: There is no text, or too little for a vocabulary of this size.
    """
    files: dict[str, Numbered] = defaultdict(list)
    for number, source in enumerate(sources):
        if source.split == "train":
            files[source.language].append((number, source))
    sizes = {code: max(1, sum(source.path.stat().st_size for _, source in files[code])) for code in sorted(files)}
    factor = factors(sizes, options.smoothing)
    total = sum(size * factor[code] for code, size in sizes.items())
    shares = {code: size * factor[code] / total for code, size in sizes.items()}
    lines = [line for code in shares for line in _sample(options, files[code], int(SAMPLE * shares[code]))]
    if not lines:
        raise CorpusError(f"{sources[0].path}: no document of the training files has text. See --documents.")
    (_wordpiece if options.tokenizer == "wordpiece" else _sentencepiece)(options, lines, folder)


def factors(sizes: dict[str, int], smoothing: float) -> dict[str, float]:
    """Return how often the text of each language is repeated, so that its share is proportional to size ** smoothing.

    The factors follow the exponential smoothing of multilingual BERT (Devlin et al. 2018). Each document of the largest
    language is used once.
    """
    most = max(sizes.values())
    return {language: (most / size) ** (1 - smoothing) for language, size in sizes.items()}


def _sample(options: Namespace, files: Numbered, room: int) -> Iterator[str]:
    """Yield the sentences of documents that are drawn at random, about `room` characters in total.

    Each document has a random number, and those with the smallest numbers are kept. The files are read in random order,
    because reading may stop before the last file.
    """
    kept, size, left = list[tuple[int, int, str]](), 0, room * LOOKED_AT
    for key, text in _documents(options, files):
        heapq.heappush(kept, (-key, len(kept), text))
        size, left = size + len(text), left - len(text)
        while size > room and len(kept) > 1:
            size -= len(heapq.heappop(kept)[2])
        if left <= 0:
            break
    for _, _, text in sorted(kept, key=lambda entry: -entry[0]):
        yield from split(files[0][1].language, text.split("\n"))


def _documents(options: Namespace, files: Numbered) -> Iterator[tuple[int, str]]:
    seed, left = options.seed, options.limit or -1
    for file, source in sorted(files, key=lambda entry: int(keys.keys(seed, keys.FILES, entry[0])[0])):
        for index, document in enumerate(documents(source.path, source.documents)):
            if left == 0:
                return
            left -= 1
            text = "\n".join(filter(None, map(tidy, document.text)))
            if text and not is_valid(source, file, index, seed, options.valid_part):
                yield int(keys.keys(seed, keys.SAMPLE, file, index)[0]), text


def _sentencepiece(options: Namespace, lines: Iterable[str], folder: Path) -> None:
    """Learn a unigram model (Kudo 2018). With several languages, unknown characters become UTF-8 bytes."""
    from sentencepiece import SentencePieceTrainer

    model = BytesIO()  # written to a file, the model would contain the file's name
    try:
        SentencePieceTrainer.train(
            sentence_iterator=iter(lines),
            model_writer=model,
            model_type="unigram",
            vocab_size=options.vocabulary,
            character_coverage=0.9995,
            byte_fallback=options.languages,
            num_threads=16,  # the default; the model's pieces depend on it
            max_sentence_length=1 << 20,  # bytes; longer sentences would be dropped silently
            minloglevel=2,
        )
    except RuntimeError as error:  # raised if there is too little text, or too many different characters
        raise CorpusError(f"--vocabulary {options.vocabulary}: {vocabulary_problem(str(error))}") from None
    (folder / "sentencepiece.model").write_bytes(model.getvalue())


def _wordpiece(options: Namespace, lines: list[str], folder: Path) -> None:
    from tokenizers import BertWordPieceTokenizer

    tokenizer = BertWordPieceTokenizer(lowercase=not options.cased)
    words: Counter[str] = Counter()
    for line in lines:
        normal = tokenizer.normalizer.normalize_str(line)
        words.update(word for word, _ in tokenizer.pre_tokenizer.pre_tokenize_str(normal))
    counts: Counter[str] = Counter()
    for word, number in words.items():
        for character in word:
            counts[character] += number
    # Left to itself, the trainer would choose among equally frequent characters at random, and number the pieces that
    # continue a word at random, too, which then decides between equally frequent pieces.
    alphabet = sorted(counts, key=lambda character: (-counts[character], character))[:ALPHABET]
    inner = {character for word in words for character in word[1:]}
    tokenizer.train_from_iterator(
        iter(lines),
        vocab_size=options.vocabulary,
        special_tokens=[*BERT_SPECIALS, *(f"##{character}" for character in alphabet if character in inner)],
        initial_alphabet=alphabet,
        limit_alphabet=len(alphabet),
        show_progress=False,
    )
    if (size := tokenizer.get_vocab_size()) != options.vocabulary:
        cure = f"Give --vocabulary {size}, or add training text."
        raise CorpusError(f"--vocabulary {options.vocabulary}: the training text has only {size} pieces. {cure}")
    tokenizer.save_model(str(folder))
    (folder / CONFIG).write_text(json.dumps({"do_lower_case": not options.cased}) + "\n", "utf-8")
