"""Learn the subwords of both languages on the training set, together or each its own, and write all splits in them.

Text is put into subwords by fairseq's own tokenizers, those that fairseq-generate and fairseq-interactive undo and
apply: what is trained on is what is decoded.
"""

from __future__ import annotations

import argparse
import json
from argparse import Namespace
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from io import BytesIO
from itertools import chain, islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from tqdm import tqdm

from recipes.lib.lines import read, write
from recipes.lib.package import whole_folder, write_whole
from recipes.lib.translation.parallel import COUNTS, SHOWN, SPLITS

Encode = Callable[[str], str]
LEAST_COVERAGE = 0.98  # of characters, that SentencePiece takes
CHUNK = 2000  # lines that a process encodes at a time


class SentencePiece:
    """A model over raw text, of both languages or of one (Kudo and Richardson 2018)."""

    def __init__(self, folder: Path, kind: str, language: str = "", coverage: float = 1.0) -> None:
        self.model, self.kind, self.coverage = folder / f"{_name('model', language)}.model", kind, coverage

    def learn(self, files: dict[str, Path], vocabulary: int) -> list[str]:
        import sentencepiece

        model = BytesIO()  # into a file, it would name the file in itself
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=chain.from_iterable(map(read, files.values())),
            model_writer=model,
            model_type=self.kind,
            vocab_size=vocabulary,
            character_coverage=self.coverage,
            num_threads=16,  # its default, written out: unigram's sums, and with them its pieces, depend on it
            max_sentence_length=1 << 20,  # bytes; longer lines would be left out without a word
            minloglevel=2,
        )
        self.model.write_bytes(model.getvalue())
        made = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
        return [made.id_to_piece(number) for number in range(made.get_piece_size())]

    def encoder(self, language: str) -> Encode:
        from fairseq.data.encoders import build_bpe

        pieces = build_bpe(Namespace(bpe="sentencepiece", sentencepiece_model=str(self.model)))
        return _encode(pieces)


class FastBPE:
    """Moses' words, split by merges that are learned by `tokenizers` and applied by fastBPE (Sennrich et al. 2016)."""

    def __init__(self, folder: Path, kind: str = "", language: str = "", coverage: float = 1.0) -> None:
        self.codes = folder / _name("codes", language)

    def learn(self, files: dict[str, Path], vocabulary: int) -> list[str]:
        from tokenizers import Tokenizer, models, pre_tokenizers, trainers

        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
        # The end of a word is part of its last symbol: the convention of subword-nmt, fastBPE and fairseq.
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
    found: Encode = tokenizer.encode
    return found


def merges(tokenizer: str) -> Iterator[str]:
    """The codes that fastBPE reads: `left right count`, best first; it uses their order, not the counts."""
    found = json.loads(tokenizer)["model"]["merges"]
    for number, merge in enumerate(found):
        left, right = merge.split(" ") if isinstance(merge, str) else merge
        yield f"{left} {right} {len(found) - number}"


def learned(asked: argparse.Namespace, output: Path) -> tuple[Callable[[str], Encode], dict[str, dict[str, int]]]:
    """The models, of both languages or a language each.

    Returns:
        the encoder of a language; pieces, and those of one character, by the languages of a model: of a crawl's rare
        characters each takes the place of a longer piece.
    Raises:
        SystemExit: a vocabulary that the text has not.
    """
    languages: list[str] = asked.languages
    counts: dict[str, dict[str, int]] = {}
    kinds: dict[str, SentencePiece | FastBPE] = {}
    for some in [[one] for one in languages] if asked.separate else [languages]:
        only = some[0] if asked.separate else ""
        kind = KINDS[asked.kind](output, asked.model_type, only, asked.character_coverage)
        try:
            pieces = kind.learn({language: asked.raw / f"train.{language}" for language in some}, asked.vocabulary)
        except RuntimeError as error:  # SentencePiece's, when the corpus is too small for the vocabulary
            name = some[0] if asked.separate else "*"
            raise SystemExit(f"error: {asked.raw}/train.{name}: --vocabulary {asked.vocabulary}: {error}") from None
        kinds |= dict.fromkeys(some, kind)
        single = sum(len(piece) == 1 for piece in pieces)
        counts["+".join(some)] = {"all": len(pieces), "of one character": single}
        print(f"{' and '.join(some)}: {len(pieces):,} pieces, {single:,} of one character", flush=True)
    return (lambda language: kinds[language].encoder(language)), counts


# One encoder a process, made once.
_encoder: Encode


def _start(make: Callable[[str], Encode], language: str) -> None:
    global _encoder
    _encoder = make(language)


def _encode_all(lines: list[str]) -> list[str]:
    return [_encoder(line) for line in lines]


def chunks(lines: Iterable[str]) -> Iterator[list[str]]:
    lines = iter(lines)
    while chunk := list(islice(lines, CHUNK)):
        yield chunk


def encoded(make: Callable[[str], Encode], language: str, path: Path, workers: int) -> Iterator[str]:
    """The lines of a file in subwords, in their order."""
    if workers == 1:
        yield from map(make(language), read(path))
        return
    with ProcessPoolExecutor(workers, get_context("fork"), _start, (make, language)) as pool:
        waiting: deque[Future[list[str]]] = deque()
        for chunk in chunks(read(path)):
            waiting.append(pool.submit(_encode_all, chunk))
            if len(waiting) > 4 * workers:  # a large corpus does not lie in memory
                yield from waiting.popleft().result()
        for future in waiting:
            yield from future.result()


def fault(pair: tuple[str, str], longest: int) -> tuple[int, int] | None:
    """Which side (0 or 1) is over-long or has no piece at all, and its number of pieces."""
    lengths = [len(line.split()) for line in pair]
    return next(((side, length) for side, length in enumerate(lengths) if not 0 < length <= longest), None)


def encode_split(make: Callable[[str], Encode], split: str, asked: argparse.Namespace, output: Path) -> dict[str, int]:
    """Both sides of a split; a pair with a fault is refused, or left out of the training set."""
    names = [f"{split}.{language}" for language in asked.languages]
    sides = [
        encoded(make, language, asked.raw / name, asked.workers)
        for language, name in zip(asked.languages, names, strict=True)
    ]
    longest = asked.longest if split == "test" else asked.longest_training or asked.longest
    shortened = longest < asked.longest  # on purpose: what models have no room for is no bad line
    drop = split == "train" and asked.bad_lines == "drop"
    told: list[str] = []
    counts = {"pairs": 0, "left out": 0}
    with (
        (output / names[0]).open("w", encoding="utf-8") as first,
        (output / names[1]).open("w", encoding="utf-8") as other,
    ):
        for number, pair in enumerate(
            tqdm(zip(*sides, strict=True), desc=split, unit=" pairs", mininterval=5), start=1
        ):
            found = fault(pair, longest)
            if found is None:
                first.write(pair[0] + "\n")
                other.write(pair[1] + "\n")
                counts["pairs"] += 1
                continue
            counts["left out"] += 1
            if not drop and not (shortened and found[1]) and len(told) < SHOWN:
                told.append(refusal(asked.raw / names[found[0]], number, found[1], longest))
    if told:
        cure = ", or --bad-lines drop" if split == "train" else ""
        raise SystemExit("\n".join([*told, f"error: {split}: {counts['left out']} bad pairs: mend them{cure}"]))
    return counts


def refusal(path: Path, number: int, length: int, longest: int) -> str:
    if not length:
        return f"error: {path}: line {number}: nothing that can be seen: remove the line from both files"
    return (
        f"error: {path}: line {number}: over-long: {length} pieces, {longest} are allowed: shorten it, or raise "
        f"--longest (from 1,024 on with --train.max-source-positions and --train.max-target-positions)"
    )


def coverage(text: str) -> float:
    """Raises:
    argparse.ArgumentTypeError: what SentencePiece does not take.
    """
    found = float(text)
    if not LEAST_COVERAGE <= found <= 1:
        raise argparse.ArgumentTypeError(f"{text} is no part from {LEAST_COVERAGE} to 1")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--raw", type=Path, required=True, help="folder with train.LANGUAGE, valid.*, test.*")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--languages", nargs=2, required=True, metavar=("SOURCE", "TARGET"))
    parser.add_argument("--kind", choices=KINDS, default="sentencepiece")
    parser.add_argument("--separate", action="store_true", help="a model a language: model.LANGUAGE.model, codes.*")
    parser.add_argument("--model-type", choices=("unigram", "bpe"), default="unigram", help="of SentencePiece")
    parser.add_argument(
        "--character-coverage", type=coverage, default=1.0, help="part of the text's characters that get a piece (1)"
    )
    parser.add_argument("--vocabulary", type=int, required=True, help="subword types of a model")
    parser.add_argument("--longest", type=int, default=1023, help="pieces of a sentence")
    parser.add_argument(
        "--longest-training", type=int, default=0, help="in training and validation: longer pairs are left out"
    )
    parser.add_argument("--bad-lines", choices=("refuse", "drop"), default="refuse", help="over-long ones, in training")
    parser.add_argument("--workers", type=int, default=1)
    asked = parser.parse_args()
    if asked.kind != "sentencepiece" and asked.character_coverage != 1:
        parser.error("--character-coverage is of SentencePiece")
    with whole_folder(asked.output) as partial:
        make, pieces = learned(asked, partial)
        # The training set last: a bad line of the others is told before the long work.
        counts = {split: encode_split(make, split, asked, partial) for split in reversed(SPLITS)}
        write_whole(partial / COUNTS, json.dumps({**counts, "pieces": pieces}, indent=1))


if __name__ == "__main__":
    main()
