"""Learn subwords on the training set, jointly for both languages or separately for each, and encode all splits.

fairseq's own tokenizers encode the text. fairseq-generate and fairseq-interactive use the same tokenizers, so training
and decoding agree.
"""

import argparse
import json
from argparse import Namespace
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from io import BytesIO
from itertools import chain, islice
from multiprocessing import get_context
from pathlib import Path

from fairseq_posenc.core.words import vocabulary_problem
from fairseq_posenc.core.writing import whole_folder
from recipes.lib.lines import read, write
from recipes.lib.translation.parallel import SPLITS, Pair, write_good

Encode = Callable[[str], str]
TOKENIZERS = ("sentencepiece", "sentencepiece-bpe", "fastbpe")
CHUNK = 2000  # number of lines that a process encodes at a time


def learn_sentencepiece(files: dict[str, Path], model: Path, options: Namespace) -> None:
    """Learn a SentencePiece model (Kudo and Richardson 2018) of raw text in one or two languages."""
    import sentencepiece

    learned = BytesIO()  # a model that SentencePiece writes to a file contains the name of that file
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=chain.from_iterable(map(read, files.values())),
        model_writer=learned,
        model_type="bpe" if options.tokenizer == "sentencepiece-bpe" else "unigram",
        vocab_size=options.vocabulary,
        character_coverage=options.character_coverage,
        num_threads=16,  # the default; the pieces of a unigram model depend on it through the order of sums
        max_sentence_length=1 << 20,  # bytes; SentencePiece silently skips longer lines
        minloglevel=2,
    )
    model.write_bytes(learned.getvalue())


def learn_fastbpe(files: dict[str, Path], codes: Path, options: Namespace) -> None:
    """Learn BPE merges of Moses-tokenized words (Sennrich et al. 2016) with `tokenizers`, for fastBPE."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    # As in subword-nmt, fastBPE and fairseq, the last symbol of a word contains the end of the word.
    trainer = trainers.BpeTrainer(vocab_size=options.vocabulary, end_of_word_suffix="</w>", show_progress=False)
    words = chain.from_iterable(map(moses(language), read(path)) for language, path in files.items())
    tokenizer.train_from_iterator(words, trainer)
    pairs = json.loads(tokenizer.to_str())["model"]["merges"]
    merges = (pair.split(" ") if isinstance(pair, str) else pair for pair in pairs)
    # fastBPE's format is `left right count`, best first; it ignores the counts
    write(codes, (f"{left} {right} {len(pairs) - number}" for number, (left, right) in enumerate(merges)))


def moses(language: str) -> Encode:
    from fairseq.data.encoders import build_tokenizer

    words: Encode = build_tokenizer(Namespace(tokenizer="moses", source_lang=language, target_lang=language)).encode
    return words


def encoder(bpe: str, model: Path, language: str) -> Encode:
    """Return the function that splits a line of raw text into subwords."""
    from fairseq.data.encoders import build_bpe

    split: Encode = build_bpe(Namespace(bpe=bpe, sentencepiece_model=str(model), bpe_codes=str(model))).encode
    words = moses(language) if bpe == "fastbpe" else str
    return lambda line: split(words(line))


def learn(options: Namespace, output: Path) -> dict[str, Encode]:
    """Learn one model for both languages or one for each, and return each language's encoder.

    Raises:
        SystemExit: The text is too small for the vocabulary.
    """
    encoders: dict[str, Encode] = {}
    separate, bpe = options.dictionary == "separate", options.tokenizer.removesuffix("-bpe")
    for group in [[language] for language in options.languages] if separate else [options.languages]:
        only = f".{group[0]}" if separate else ""
        files = {language: options.raw / f"train.{language}" for language in group}
        model = output / (f"codes{only}" if bpe == "fastbpe" else f"model{only}.model")
        try:
            (learn_fastbpe if bpe == "fastbpe" else learn_sentencepiece)(files, model, options)
        except RuntimeError as error:  # SentencePiece raises it if the corpus is too small for the vocabulary
            problem = f"--vocabulary {options.vocabulary}: {vocabulary_problem(str(error))}"
            raise SystemExit(f"error: {options.raw}/train{only or '.*'}: {problem}") from None
        encoders |= {language: encoder(bpe, model, language) for language in group}
    return encoders


_encoder: Encode  # of the language that a pool encodes; its processes are forks, which have it from the start


def _encode_all(lines: list[str]) -> list[str]:
    return [_encoder(line) for line in lines]


def encoded(encode: Encode, path: Path, workers: int) -> Iterator[str]:
    """Yield the lines of a file in order, split into subwords by several processes."""
    global _encoder
    if workers == 1:
        yield from map(encode, read(path))
        return
    _encoder, lines = encode, read(path)
    parts = iter(lambda: list(islice(lines, CHUNK)), [])
    with get_context("fork").Pool(workers) as pool:
        while some := list(islice(parts, 4 * workers)):  # do not hold a large corpus in memory
            yield from chain.from_iterable(pool.map(_encode_all, some, chunksize=1))


def encode_pairs(encoders: dict[str, Encode], paths: list[Path], options: Namespace) -> Iterator[Pair]:
    """Yield the encoded pairs of a split, with lengths in pieces."""
    sides = [encoded(encoders[path.suffix[1:]], path, options.workers) for path in paths]
    for number, lines in enumerate(zip(*sides, strict=True), start=1):
        lengths = [len(line.split()) for line in lines]
        bad = next((side for side, length in enumerate(lengths) if not 0 < length <= options.longest), None)
        problem = None if bad is None else f"{paths[bad]}:{number}: {fault(lengths[bad], options.longest)}"
        yield Pair(lines, problem, max(lengths))


def fault(length: int, longest: int) -> str:
    if not length:
        return "the line has no visible character. Remove the line from both files."
    return f"the sentence has {length} pieces, but at most {longest} are allowed. Shorten it, or raise --length."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    option = parser.add_argument
    option("--raw", type=Path, required=True, metavar="DIR", help="Folder with the raw text of all splits.")
    option("--output", type=Path, required=True, metavar="DIR", help="Folder for the models and the encoded text.")
    option("--languages", nargs=2, required=True, metavar="NAME", help="Codes of the two languages.")
    option("--tokenizer", choices=TOKENIZERS, default="sentencepiece", help="Method that learns and applies subwords.")
    text = "Whether to learn one model for both languages, or one for each."
    option("--dictionary", choices=("joint", "separate"), default="joint", help=text)
    text = "Fraction of the characters in the training text that SentencePiece's pieces must cover, from 0.98 to 1."
    option("--character-coverage", type=float, default=1.0, metavar="P", help=text)
    option("--vocabulary", type=int, required=True, metavar="N", help="Number of subword types in each subword model.")
    option("--longest", type=int, default=1023, metavar="N", help="Maximum number of pieces in a sentence.")
    text = "Leave out training and validation pairs with more than N pieces in a language (0: use --longest)."
    option("--longest-training", type=int, default=0, metavar="N", help=text)
    text = "Whether bad training pairs are refused or left out."
    option("--bad-lines", choices=("refuse", "drop"), default="refuse", help=text)
    option("--workers", type=int, default=1, metavar="N", help="Number of processes that encode the text.")
    options = parser.parse_args()
    if options.tokenizer == "fastbpe" and find_spec("fastBPE") is None:
        install = "Install a C++ compiler and run: pip install fastBPE. Or give --tokenizer sentencepiece."
        raise SystemExit(f"error: --tokenizer fastbpe needs the package fastBPE, which is not installed. {install}")
    with whole_folder(options.output) as partial:
        encoders = learn(options, partial)
        for split in reversed(SPLITS):  # bad lines of the short sets are reported before the long work
            names = [f"{split}.{language}" for language in options.languages]
            pairs = encode_pairs(encoders, [options.raw / name for name in names], options)
            paths = [partial / name for name in names]
            write_good(pairs, paths, options.bad_lines == "drop", 0 if split == "test" else options.longest_training)


if __name__ == "__main__":
    main()
