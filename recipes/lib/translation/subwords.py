"""Learn subwords on the training set, jointly for both languages or separately for each, and encode all splits.

fairseq's own tokenizers encode the text. fairseq-generate and fairseq-interactive use the same tokenizers, so training
and decoding agree.
"""

from __future__ import annotations

import argparse
import json
from argparse import Namespace
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from importlib.util import find_spec
from io import BytesIO
from itertools import chain, islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from recipes.lib.lines import read, write
from recipes.lib.package import NoSpaceError, vocabulary_problem, whole_folder, write_whole
from recipes.lib.translation.parallel import COUNTS, SHOWN, SPLITS, bad_pairs

Encode = Callable[[str], str]
LEAST_COVERAGE = 0.98  # smallest character coverage that SentencePiece accepts
CHUNK = 2000  # number of lines that a process encodes at a time


class SentencePiece:
    """Learn and apply a SentencePiece model (Kudo and Richardson 2018) of raw text in one or two languages."""

    def __init__(self, folder: Path, kind: str, language: str = "", coverage: float = 1.0) -> None:
        self.model, self.kind, self.coverage = folder / f"{_name('model', language)}.model", kind, coverage

    def learn(self, files: dict[str, Path], vocabulary: int) -> list[str]:
        import sentencepiece

        model = BytesIO()  # a model that SentencePiece writes to a file contains the name of that file
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=chain.from_iterable(map(read, files.values())),
            model_writer=model,
            model_type=self.kind,
            vocab_size=vocabulary,
            character_coverage=self.coverage,
            num_threads=16,  # the default; the pieces of a unigram model depend on it through the order of sums
            max_sentence_length=1 << 20,  # bytes; SentencePiece silently skips longer lines
            minloglevel=2,
        )
        self.model.write_bytes(model.getvalue())
        processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
        return [processor.id_to_piece(number) for number in range(processor.get_piece_size())]

    def encoder(self, language: str) -> Encode:
        from fairseq.data.encoders import build_bpe

        return _encode(build_bpe(Namespace(bpe="sentencepiece", sentencepiece_model=str(self.model))))


class FastBPE:
    """Learn BPE merges on Moses-tokenized words (Sennrich et al. 2016) with `tokenizers`; apply them with fastBPE."""

    def __init__(self, folder: Path, kind: str = "", language: str = "", coverage: float = 1.0) -> None:
        self.codes = folder / _name("codes", language)

    def learn(self, files: dict[str, Path], vocabulary: int) -> list[str]:
        from tokenizers import Tokenizer, models, pre_tokenizers, trainers
        from tqdm import tqdm

        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
        # As in subword-nmt, fastBPE and fairseq, the last symbol of a word contains the end of the word.
        trainer = trainers.BpeTrainer(vocab_size=vocabulary, end_of_word_suffix="</w>", show_progress=False)
        words = chain.from_iterable(map(self.words(language), read(path)) for language, path in files.items())
        tokenizer.train_from_iterator(tqdm(words, desc="words", unit=" lines", mininterval=5), trainer)
        write(self.codes, merges(tokenizer.to_str()))
        return [piece.removesuffix("</w>") for piece in tokenizer.get_vocab()]

    def words(self, language: str) -> Encode:
        from fairseq.data.encoders import build_tokenizer

        return _encode(build_tokenizer(Namespace(tokenizer="moses", source_lang=language, target_lang=language)))

    def encoder(self, language: str) -> Encode:
        from fairseq.data.encoders import build_bpe

        words, split = self.words(language), _encode(build_bpe(Namespace(bpe="fastbpe", bpe_codes=str(self.codes))))
        return lambda line: split(words(line))


KINDS: dict[str, type[SentencePiece] | type[FastBPE]] = {"sentencepiece": SentencePiece, "fastbpe": FastBPE}


def _name(stem: str, language: str) -> str:
    return f"{stem}.{language}" if language else stem


def _encode(tokenizer: Any) -> Encode:
    encode: Encode = tokenizer.encode
    return encode


def merges(tokenizer: str) -> Iterator[str]:
    """Yield the merges in fastBPE's format, `left right count`, best first. fastBPE ignores the counts."""
    pairs = json.loads(tokenizer)["model"]["merges"]
    for number, merge in enumerate(pairs):
        left, right = merge.split(" ") if isinstance(merge, str) else merge
        yield f"{left} {right} {len(pairs) - number}"


def learn(arguments: argparse.Namespace, output: Path) -> tuple[Callable[[str], Encode], dict[str, dict[str, int]]]:
    """Learn one model for both languages, or, with --separate, one model for each language.

    Returns:
        A function that returns the encoder of a language, and the number of pieces of each model. Pieces of one
            character are counted separately, because rare characters of crawled text can fill the vocabulary and leave
            less room for longer pieces.
    Raises:
        SystemExit: The text is too small for the vocabulary.
    """
    languages: list[str] = arguments.languages
    counts: dict[str, dict[str, int]] = {}
    models: dict[str, SentencePiece | FastBPE] = {}
    for group in [[language] for language in languages] if arguments.separate else [languages]:
        only = group[0] if arguments.separate else ""
        model = KINDS[arguments.kind](output, arguments.model_type, only, arguments.character_coverage)
        print(f"learning {arguments.vocabulary:,} subword types ...", flush=True)  # the screen shows this line
        try:
            files = {language: arguments.raw / f"train.{language}" for language in group}
            pieces = model.learn(files, arguments.vocabulary)
        except RuntimeError as error:  # SentencePiece raises it if the corpus is too small for the vocabulary
            path, problem = f"{arguments.raw}/train.{only or '*'}", vocabulary_problem(str(error))
            raise SystemExit(f"error: {path}: --vocabulary {arguments.vocabulary}: {problem}") from None
        models |= dict.fromkeys(group, model)
        single = sum(len(piece) == 1 for piece in pieces)
        counts["+".join(group)] = {"all": len(pieces), "of one character": single}
        print(f"{' and '.join(group)}: {len(pieces):,} pieces, of which {single:,} are single characters", flush=True)
    return (lambda language: models[language].encoder(language)), counts


# Each process of a pool has the encoder of one language.
_encoder: Encode


def _start(encoder: Encode) -> None:
    global _encoder
    _encoder = encoder


def _encode_all(lines: list[str]) -> list[str]:
    return [_encoder(line) for line in lines]


def chunks(lines: Iterable[str]) -> Iterator[list[str]]:
    lines = iter(lines)
    while chunk := list(islice(lines, CHUNK)):
        yield chunk


def encoded(encoder: Encode, path: Path, workers: int) -> Iterator[str]:
    """Yield the lines of a file in order, split into subwords.

    Forked processes have the encoder from the start; building it in each process would take seconds, because fairseq
    must be imported. A file with fewer than `CHUNK` lines is encoded without further processes.
    """
    parts = chunks(read(path))
    first = next(parts, [])
    if workers == 1 or len(first) < CHUNK:
        yield from map(encoder, chain(first, chain.from_iterable(parts)))
        return
    with ProcessPoolExecutor(workers, get_context("fork"), _start, (encoder,)) as pool:
        waiting: deque[Future[list[str]]] = deque()
        for chunk in chain([first], parts):
            waiting.append(pool.submit(_encode_all, chunk))
            if len(waiting) > 4 * workers:  # do not hold a large corpus in memory
                yield from waiting.popleft().result()
        for future in waiting:
            yield from future.result()


def fault(pair: tuple[str, str], longest: int) -> tuple[int, int] | None:
    """Return which side of a pair (0 or 1) is too long or empty, and its number of pieces; or None for a good pair."""
    lengths = [len(line.split()) for line in pair]
    return next(((side, length) for side, length in enumerate(lengths) if not 0 < length <= longest), None)


def encode_split(
    encoders: Mapping[str, Encode], split: str, arguments: argparse.Namespace, output: Path
) -> dict[str, int]:
    """Encode a split in both languages, write two files, and return how many pairs were written and left out.

    Raises:
        SystemExit: There are bad pairs. With --bad-lines drop, only validation and test sets can cause this error.
    """
    from tqdm import tqdm  # imported here, because --help and --list must work without it

    names = [f"{split}.{language}" for language in arguments.languages]
    sides = [
        encoded(encoders[language], arguments.raw / name, arguments.workers)
        for language, name in zip(arguments.languages, names, strict=True)
    ]
    longest = arguments.longest if split == "test" else arguments.longest_training or arguments.longest
    shortened = longest < arguments.longest  # the user wants short training pairs, so longer ones are not bad
    drop = split == "train" and arguments.bad_lines == "drop"
    errors: list[str] = []
    counts = {"pairs": 0, "left out": 0}
    with (
        (output / names[0]).open("w", encoding="utf-8") as first,
        (output / names[1]).open("w", encoding="utf-8") as other,
    ):
        for number, pair in enumerate(
            tqdm(zip(*sides, strict=True), desc=split, unit=" pairs", mininterval=5), start=1
        ):
            bad = fault(pair, longest)
            if bad is None:
                first.write(pair[0] + "\n")
                other.write(pair[1] + "\n")
                counts["pairs"] += 1
                continue
            side, length = bad
            counts["left out"] += 1
            if not drop and not (shortened and length) and len(errors) < SHOWN:
                errors.append(refusal(arguments.raw / names[side], number, length, longest))
    if errors:
        raise SystemExit("\n".join([*errors, f"error: {bad_pairs(split, counts['left out'])}"]))
    return counts


def refusal(path: Path, number: int, length: int, longest: int) -> str:
    if not length:
        return f"error: {path}:{number}: the line has no visible character. Remove the line from both files."
    return (
        f"error: {path}:{number}: the sentence has {length} pieces, but at most {longest} are allowed. Shorten "
        "the sentence, or raise --longest. For a value above 1023, also raise --train.max-source-positions and "
        "--train.max-target-positions."
    )


def coverage(text: str) -> float:
    """Return the character coverage as a number.

    Raises:
        argparse.ArgumentTypeError: SentencePiece does not accept the value.
    """
    share = float(text)
    if not LEAST_COVERAGE <= share <= 1:
        raise argparse.ArgumentTypeError(f"{text} is not between {LEAST_COVERAGE} and 1.")
    return share


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    option = parser.add_argument
    option("--raw", type=Path, required=True, metavar="DIR", help="Folder with the raw text of all splits.")
    option("--output", type=Path, required=True, metavar="DIR", help="Folder for the models and the encoded text.")
    option("--languages", nargs=2, required=True, metavar=("SOURCE", "TARGET"), help="Codes of the two languages.")
    option("--kind", choices=KINDS, default="sentencepiece", help="Method that learns and applies subwords.")
    option("--separate", action="store_true", help="Learn one model for each language, instead of one for both.")
    option("--model-type", choices=("unigram", "bpe"), default="unigram", help="Type of the SentencePiece model.")
    text = "Fraction of the characters in the training text that the subword pieces must cover (SentencePiece only)."
    option("--character-coverage", type=coverage, default=1.0, metavar="P", help=text)
    option("--vocabulary", type=int, required=True, metavar="N", help="Number of subword types in each subword model.")
    option("--longest", type=int, default=1023, metavar="N", help="Maximum number of pieces in a sentence.")
    text = "Leave out training and validation pairs with more than N pieces in a language (0: use --longest)."
    option("--longest-training", type=int, default=0, metavar="N", help=text)
    text = "What to do with bad training pairs: refuse stops with a list, drop leaves them out."
    option("--bad-lines", choices=("refuse", "drop"), default="refuse", help=text)
    option("--workers", type=int, default=1, metavar="N", help="Number of processes that encode the text.")
    arguments = parser.parse_args()
    if arguments.kind != "sentencepiece" and arguments.character_coverage != 1:
        parser.error("--character-coverage is only for --kind sentencepiece. Leave this option out.")
    if arguments.kind == "fastbpe" and find_spec("fastBPE") is None:
        raise SystemExit(
            "error: --subwords fastbpe needs the package fastBPE, which is not installed. Install a C++ compiler and "
            "run: pip install fastBPE. Or give --subwords sentencepiece."
        )
    try:
        with whole_folder(arguments.output) as partial:
            prepare(arguments, partial)
    except NoSpaceError as error:
        raise SystemExit(f"error: {error}") from error


def prepare(arguments: argparse.Namespace, folder: Path) -> None:
    """Write the models and the encoded text of all splits to a folder."""
    make, pieces = learn(arguments, folder)
    print("loading the tokenizers of fairseq ...", flush=True)
    encoders = {language: make(language) for language in arguments.languages}
    # The training set comes last, so that bad lines of the short sets are reported before the long work.
    counts = {split: encode_split(encoders, split, arguments, folder) for split in reversed(SPLITS)}
    write_whole(folder / COUNTS, json.dumps({**counts, "pieces": pieces}, indent=1))


if __name__ == "__main__":
    main()
