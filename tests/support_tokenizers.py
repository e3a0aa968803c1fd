"""Provide small tokenizers of each published form, learned from this project's pages, and models for them."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import sentencepiece
import torch
from fairseq.data import Dictionary
from fairseq.data.encoders.gpt2_bpe_utils import get_encoder
from integration import support
from tokenizers import BertWordPieceTokenizer, ByteLevelBPETokenizer

from fairseq_posenc.data.words import MASK
from fairseq_posenc.hub import LanguageModel, ModelConfig
from fairseq_posenc.hub.checkpoint import save
from fairseq_posenc.hub.convert import Report
from fairseq_posenc.hub.ids import SPECIALS, Pretrained

#: Texts as ids, split by this project's own tools.
Cut = Callable[[str], list[int]]
FORMS = ("unigram", "bpe", "wordpiece", "wordpiece cased", "gpt2", "gpt2 numbers")
#: Forms that write unknown letters as one piece per byte.
BYTES = ("unigram bytes", "bpe bytes")
SIZE = 700
#: Texts besides the pages: combined and separate accents, unknown letters, all kinds of spaces, an empty text.
HARD = """The Café, the cafe\u0301 and THE CAFÉ|Größe naïve|日本語 text|語|mixed日本and語|👍🏽 fine""".split("|")
HARD += """two  spaces and   three| lead and trail |x||"quoted", (braces) and don't -- 3.14159""".split("|")
HARD += """1,000,000|fi ligature: ﬁne, ½, ①|it's WE'LL|a\tb|two\nlines""".split("|")


@functools.cache
def lines() -> list[str]:
    """Return text with commas, quotes and code, but without special symbols."""
    pages = sorted((support.ROOT / "docs").glob("*.md"))
    text = [line.strip() for page in pages for line in page.read_text("utf-8").splitlines()]
    return [line for line in text if line.count(" ") > 3 and not {"<", "["} & set(line)][:300]


def learned(form: str, folder: Path) -> Path:
    """Write the files of a tokenizer."""
    folder.mkdir()
    kind, _, how = form.partition(" ")
    if kind == "wordpiece":
        tokenizer = BertWordPieceTokenizer(lowercase=how != "cased", strip_accents=False if how == "cased" else None)
        tokenizer.train_from_iterator(lines(), vocab_size=SIZE, show_progress=False)
        tokenizer.save_model(str(folder))
        with (folder / "vocab.txt").open("a", encoding="utf-8") as file:
            file.writelines(f"[unused{i}]\n" for i in range(30))  # only in BERT's vocabulary
    elif kind == "gpt2":
        tokenizer = ByteLevelBPETokenizer()
        tokenizer.train_from_iterator(lines(), vocab_size=SIZE, show_progress=False)
        tokenizer.save_model(str(folder))
        (folder / "vocab.json").rename(folder / "encoder.json")
        (folder / "merges.txt").rename(folder / "vocab.bpe")
    else:
        prefix = str(folder / "sentencepiece")
        options = {"model_type": kind, "vocab_size": SIZE, "user_defined_symbols": ["--pos-enc"]}
        options |= {"byte_fallback": True, "vocab_size": SIZE + 256} if how == "bytes" else {}
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines()), model_prefix=prefix, minloglevel=2, **options
        )
        Path(f"{prefix}.vocab").unlink()
    return folder


def cutter(form: str, folder: Path) -> tuple[Callable[[str], list[str]], list[str]]:
    """Return a function from text to symbols of the dictionary, and all symbols."""
    kind, _, how = form.partition(" ")
    if kind == "wordpiece":
        tokenizer = BertWordPieceTokenizer(str(folder / "vocab.txt"), lowercase=how != "cased")
        pieces = [piece for piece in tokenizer.get_vocab() if not piece.startswith("[") or len(piece) == 1]
        return lambda text: tokenizer.encode(text, add_special_tokens=False).tokens, sorted(pieces)
    if kind == "gpt2":
        bpe = get_encoder(str(folder / "encoder.json"), str(folder / "vocab.bpe"))
        name = str if how else bpe.decoder.__getitem__
        return lambda text: [name(number) for number in bpe.encode(text)], sorted(map(name, bpe.decoder))
    model = sentencepiece.SentencePieceProcessor(model_file=str(folder / "sentencepiece.model"))
    ids = [i for i in range(model.vocab_size()) if not model.is_control(i) and not model.is_unknown(i)]
    return lambda text: model.encode(text, out_type=str), [model.id_to_piece(i) for i in ids]


def checkpoint(pieces: list[str], folder: Path, *, causal: bool = False, **more: Any) -> Path:
    """Write the checkpoint of a random model for these pieces, next to dict.txt."""
    vocabulary = [*SPECIALS, *pieces, *([] if causal else [MASK])]
    more |= {"layernorm_embedding": False} if causal else {"mask": len(vocabulary) - 1}
    config = ModelConfig(1, 8, 8, 2, 32, len(vocabulary), causal=causal, **more)
    return random_checkpoint(config, vocabulary, folder)


def random_checkpoint(config: ModelConfig, vocabulary: list[str], folder: Path) -> Path:
    torch.manual_seed(1)
    tensors = {name: tensor for name, tensor in LanguageModel(config).state_dict().items() if name != "lm_head.weight"}
    save(Pretrained(config, tensors, vocabulary), Report(), folder, folder)
    return folder / "checkpoint.pt"


def shuffled(pieces: list[str]) -> list[str]:
    """Shuffle the symbols, like a dictionary sorted by frequency, and add the symbols that fairseq fills it with."""
    symbols = [*pieces, "madeupword0000"]
    random.Random(3).shuffle(symbols)
    return symbols


def through(dictionary: Path, cut: Callable[[str], list[str]]) -> Cut:
    """Convert text to ids as fairseq-preprocess does."""
    symbols = Dictionary.load(str(dictionary))
    return lambda text: [symbols.index(symbol) for symbol in cut(text)]
