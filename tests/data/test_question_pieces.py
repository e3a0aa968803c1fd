"""Test the conversion of questions to the pieces of a pretrained encoder, and from pieces back to text."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import pytest
import support_exchange as exchange
import support_tokenizers as tokenizers
from support_prepared import CITY, DATA, Prepared, asked, items, needs_data, squad
from transformers import BertConfig, RobertaConfig

from fairseq_posenc.data import question_pieces
from fairseq_posenc.hub import vocabulary

pytest_plugins = ["support_prepared"]


# --- pretrained tokenizers


def hugging_face(form: str, folder: Path) -> Path:
    """Save a random model with a tokenizer that was learned from this project's pages."""
    tokenizers.learned(form, folder)
    if form == "gpt2":
        pieces = json.loads((folder / "encoder.json").read_text("utf-8"))
        specials = {name: number for number, name in enumerate(("<s>", "<pad>", "</s>", "<unk>"))}
        known = specials | {piece: number + 4 for piece, number in pieces.items()}
        (folder / "vocab.json").write_text(json.dumps(known | {"<mask>": len(known)}), "utf-8")
        (folder / "encoder.json").unlink()
        (folder / "vocab.bpe").rename(folder / "merges.txt")
        config = RobertaConfig(
            len(known) + 1, max_position_embeddings=34, type_vocab_size=1, **exchange.MODELS["sizes"]["tiny"]
        )
    else:
        size = len((folder / "vocab.txt").read_text("utf-8").rstrip("\n").split("\n"))
        config = BertConfig(size, max_position_embeddings=34, **exchange.MODELS["sizes"]["tiny"])
    config.save_pretrained(folder)
    return folder


@pytest.mark.parametrize("form", ["wordpiece", "wordpiece cased", "gpt2"])
def test_pieces_of_an_encoder_have_its_ids(prepared: Prepared, form: str) -> None:
    folder = hugging_face(form, prepared.folder / "encoder")
    output = prepared.made(*prepared.both(), "--tokenizer", folder)
    symbols = vocabulary.dictionary(folder)
    lines = (output / "dict.src.txt").read_text("utf-8").splitlines()
    assert [line.rsplit(" ", 1)[0] for line in lines] == symbols[4:]
    assert symbols[-1] == "<mask>"
    cut = question_pieces.load(output)
    data = items(output)
    assert [token for token in data.source[0] if token not in ("<s>", "</s>")] == [
        piece.name if piece.name in symbols else f"{piece.name}*"
        for text in ("King Abel", CITY)
        for piece in cut.cut(text)
    ]
    if form == "gpt2":
        assert [cut.join(target[:-1]) for target in data.target] == [line["question"] for line in data.surface]
    assert prepared.record()["pieces"] == "tokenizer"
    assert prepared.record()["cased"] == (form != "wordpiece")
    assert prepared.record()["round_trip"] == 1.0


def test_unknown_letters_can_be_copied_and_special_symbols_are_text(prepared: Prepared) -> None:
    folder = hugging_face("wordpiece", prepared.folder / "encoder")
    context = "The word \u4dc0\u4dc1 and </s> mean nothing."
    questions = squad([(context, [asked("a", "What is \u4dc0\u4dc1 ?", ("mean", context.index("mean")))])])
    data = items(prepared.made(*prepared.both(questions, questions), "--tokenizer", folder))
    assert data.surface[0]["unknown"] == ["\u4dc0\u4dc1", "<"]
    assert "\u4dc0\u4dc1*" in data.target[0]
    assert data.source[0].count("</s>") == 2


def test_text_without_pieces_is_empty(prepared: Prepared) -> None:
    """A zero-width space is not white space, but the tokenizer drops it."""
    folder, context = hugging_face("wordpiece", prepared.folder / "encoder"), "The word \u200b ends."
    entries = [asked("a", "\u200b", ("word", 4)), asked("b", "Who?", ("\u200b", 9))]
    questions = squad([(context, entries), ("\u200b", [asked("c", "Who?", ("\u200b", 0))])])
    ended = prepared.run(*prepared.both(questions, questions), "--tokenizer", folder)
    assert ended.status != 0
    for what, name in (("question", "a"), ("answer", "b"), ("context", "c")):
        assert f"1 x empty {what}, refused: {name}" in ended.error


# --- surface


@pytest.mark.parametrize(
    "text",
    [
        'Who said "No way!" in the U.S. (and when)?',
        "What's the players' 3.5-inch, $1,000 prize at 22:15?",
        "Isn't it Tesla's 50% or 1881–82?",
        "in 1990, 12 U.S. cities",
    ],
)
def test_words_are_joined_as_they_were(text: str) -> None:
    words = question_pieces.Words("words", cased=True)
    assert words.join([piece.name for piece in words.cut(text)]) == text
    assert all(text[piece.start : piece.end] == piece.name for piece in words.cut(text))
    pieces = [
        piece for word in re.findall(r"\w+|[^\w\s]", text) for piece in (word[:4], *["##" + word[4:]][: len(word) > 4])
    ]
    assert question_pieces._wordpieces(pieces) == text


@pytest.mark.parametrize(
    "text",
    [
        "what was the u.s. population in 1,990.5 , and why did n't mr. abel 's well-known dog go ?",
        "who said `` no way '' -- the king -lrb- abel i. of zorn -rrb- ?",
    ],
)
def test_word_pieces_of_lines_are_joined_as_tokens(text: str) -> None:
    words = re.findall(r"\w+|\S", text)  # as BERT splits words
    assert question_pieces._tokens(question_pieces._wordpieces(words)) == text


def test_chinese_word_pieces_are_joined_without_spaces() -> None:
    pieces = "NBA 是 什 么 ， 在 1993 年 （ foot ##ball ） ？".split()
    assert question_pieces._wordpieces(pieces) == "NBA是什么，在1993年（football）？"
    assert question_pieces._wordpieces([]) == ""


def test_lines_are_compared_by_spaces_whatever_cuts_them(prepared: Prepared) -> None:
    folder = hugging_face("wordpiece", prepared.folder / "encoder")
    for split in ("train", "dev"):
        prepared.write(f"nqg/src-{split}.txt", "the king -lrb- abel -rrb- won .\n")
        prepared.write(f"nqg/tgt-{split}.txt", "who did n't win , and why ?\n")
    output = prepared.made("--corpus", prepared.folder / "nqg", "--tokenizer", folder)
    record = prepared.record()
    assert (record["pieces"], record["units"], record["round_trip"]) == ("tokenizer", "spaces", 1.0)
    assert question_pieces.load(output).join("who did n ' t win ?".split()) == "who did n't win ?"


@pytest.mark.parametrize("kind", question_pieces.JOINED)
@pytest.mark.parametrize("seed", range(20))
def test_what_was_joined_is_cut_into_the_same_pieces(kind: str, seed: int) -> None:
    rng = random.Random(seed)
    cut = question_pieces.Words(kind, cased=True)
    text = "".join(rng.choices("ab 1.,'\"()-$%?谁是日", k=30))
    pieces = [piece.name for piece in cut.cut(text)]
    joined = cut.join(pieces)
    assert joined.replace(" ", "") == text.replace(" ", "")


# --- real questions
@needs_data
@pytest.mark.parametrize(("name", "least"), [("squad-v1.1/du-test-v1.1", 0.98), ("cmrc2018/cmrc2018_dev", 0.99)])
def test_real_questions_come_back(prepared: Prepared, name: str, least: float) -> None:
    path = DATA / f"{name}.json.gz"
    prepared.made("--corpus", path, "--bad", "repair", "--limit", 3000)
    assert prepared.record()["round_trip"] >= least
