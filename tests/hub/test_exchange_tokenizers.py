"""Test that exported tokenizers of Hugging Face give the ids of training."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fairseq")
pytest.importorskip("transformers")
pytest.importorskip("sentencepiece")

import transformers
from fairseq.data import Dictionary
from support_exchange import BERT_WORDS, WORDS, imported, random_model, saved
from support_tokenizers import FORMS, HARD, checkpoint, cutter, learned, lines, shuffled, through
from tokenizers import ByteLevelBPETokenizer

import fairseq_posenc
from fairseq_posenc.__main__ import main
from fairseq_posenc.generation.prompts import Text
from fairseq_posenc.hub import LanguageModel, ModelConfig, export_hf, tokenizer
from fairseq_posenc.hub.ids import SPECIALS, Pretrained

#: Without the piece 000, a unigram model likes `0 00` and `00 0` equally. sentencepiece and Hugging Face differ then.
THRICE = re.compile(r"(.)\1\1")
#: If a text begins with a user-defined symbol, tokenizer.json drops the piece that marks a space before it.
BEGINS = re.compile(r"\s*--pos-enc")
ROBERTA = ("<s>", "<pad>", "</s>", "<unk>")


@pytest.fixture(scope="module")
def tokenizers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("tokenizers")
    return {form: learned(form, folder / form) for form in FORMS}


def exported(path: Path, output: Path, *more: Any) -> Any:
    """Return the tokenizer of an exported model."""
    assert main(["export-hf", str(path), "--output", str(output), *map(str, more)]) == 0
    return transformers.AutoTokenizer.from_pretrained(output)


# -- export -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_ids_are_those_of_the_dictionary(form: str, tokenizers: dict[str, Path], tmp_path: Path) -> None:
    cut, pieces = cutter(form, tokenizers[form])
    path = checkpoint(shuffled(pieces), tmp_path / "model")
    theirs = exported(path, tmp_path / "out", "--tokenizer", tokenizers[form])
    ours = through(path.with_name("dict.txt"), cut)
    several = 0
    for line in (*lines(), *HARD):
        if (form == "unigram" and THRICE.search(line)) or (form in ("unigram", "bpe") and BEGINS.match(line)):
            continue
        assert theirs(line)["input_ids"] == [0, *ours(line), 2], line
        several += len(ours(line)) > len(line.split())
    assert several > 100
    assert len(theirs) == fairseq_posenc.load(tmp_path / "out").config.vocabulary


@pytest.mark.parametrize("form", FORMS)
def test_a_language_model_gets_its_tokenizer(form: str, tokenizers: dict[str, Path], tmp_path: Path) -> None:
    """The exported tokenizer and `generate-text` give the ids of training, and the text back."""
    cut, pieces = cutter(form, tokenizers[form])
    symbols, dictionary = shuffled(pieces), tmp_path / "dict.txt"
    dictionary.write_text("".join(f"{symbol} 1\n" for symbol in symbols), "utf-8")
    config = ModelConfig(1, 8, 8, 2, 32, len(symbols) + 4, causal=True)
    tensors, vocabulary = LanguageModel(config).state_dict(), [*SPECIALS, *symbols]
    model = Pretrained(config, tensors, vocabulary, dictionary=dictionary)
    contents, _ = export_hf._tokenizer(model, tokenizers[form])
    export_hf.export(model, tmp_path / "out", contents)
    theirs, ours = transformers.AutoTokenizer.from_pretrained(tmp_path / "out"), through(dictionary, cut)
    text = Text(Dictionary.load(str(dictionary)), tokenizers[form])
    for line in lines()[:20]:
        assert theirs(line)["input_ids"] == [2, *ours(line)]
        assert text.ids(f"{line}\n{line}") == [*ours(line), 2, *ours(line)]
        restored = text.text([*ours(line), 2, *ours(line)])
        # WordPiece does not keep the spaces around punctuation marks, and no tokenizer keeps a character that it lacks.
        if not form.startswith("wordpiece") and SPECIALS.index("<unk>") not in ours(line):
            plain = " ".join(line.split())  # sentencepiece joins spaces
            assert restored in (f"{line}\n{line}", f"{plain}\n{plain}")
    assert (theirs.bos_token, theirs.eos_token, theirs.padding_side) == ("</s>", "</s>", "left")
    assert theirs(["the", "the other one"], padding=True)["input_ids"][0][0] == 1


def test_special_symbols_pairs_and_masks(tokenizers: dict[str, Path], tmp_path: Path) -> None:
    cut, pieces = cutter("gpt2", tokenizers["gpt2"])
    path = checkpoint(pieces, tmp_path / "model")
    theirs, ours = (
        exported(path, tmp_path / "out", "--tokenizer", tokenizers["gpt2"]),
        through(path.with_name("dict.txt"), cut),
    )
    mask = len(pieces) + 4
    names = (theirs.bos_token, theirs.pad_token, theirs.eos_token, theirs.unk_token)
    assert (names, theirs.convert_tokens_to_ids(names)) == (ROBERTA, [0, 1, 2, 3])
    assert (theirs.cls_token, theirs.sep_token, theirs.mask_token_id) == ("<s>", "</s>", mask)
    assert (theirs.model_max_length, theirs.is_fast) == (32, True)
    assert theirs("a <mask> of it")["input_ids"] == [0, *ours("a"), mask, *ours(" of it"), 2]
    pair = theirs("the one", "the other")
    assert pair["input_ids"] == [0, *ours("the one"), 2, 2, *ours("the other"), 2]
    assert "token_type_ids" not in pair
    padded = theirs(["the", "the other one"], padding=True)
    assert padded["input_ids"][0][-1] == 1
    assert theirs.decode(theirs("the other one")["input_ids"], skip_special_tokens=True) == "the other one"


def test_second_texts_are_segment_1_if_the_encoding_has_segments(tokenizers: dict[str, Path], tmp_path: Path) -> None:
    _, pieces = cutter("wordpiece", tokenizers["wordpiece"])
    path = checkpoint(pieces, tmp_path / "model", pos_enc="m4+segments-input")
    pair = exported(path, tmp_path / "out", "--tokenizer", tokenizers["wordpiece"])("the one", "the other")
    second = pair["input_ids"].index(2) + 1
    assert pair["token_type_ids"] == [int(i >= second) for i in range(len(pair["input_ids"]))]


@pytest.mark.parametrize("depth", ["data", "data/shard00000"])
def test_a_tokenizer_beside_the_dictionary_is_found(
    depth: str, tokenizers: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """If there is no tokenizer, a note says what to do."""
    _, pieces = cutter("unigram", tokenizers["unigram"])
    path = checkpoint(pieces, tmp_path / depth)
    assert main(["export-hf", str(path), "--output", str(tmp_path / "without")]) == 0
    assert "note: no tokenizer was written. To add it, give --tokenizer FILE_OR_FOLDER" in capsys.readouterr().out
    assert not list((tmp_path / "without").glob("tokenizer*"))
    shutil.copytree(tokenizers["unigram"], tmp_path / "data" / "tokenizer")
    assert len(exported(path, tmp_path / "out")) == len(pieces) + 5
    assert "tokenizer/sentencepiece.model" in capsys.readouterr().out
    assert main(["export-hf", str(path), "--output", str(tmp_path / "none"), "--tokenizer", "none"]) == 0
    assert not list((tmp_path / "none").glob("tokenizer*"))


def test_a_few_rare_pieces_may_be_missing(
    tokenizers: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both may lack pieces: the dictionary those of no training text, the tokenizer those with unknown letters."""
    cut, pieces = cutter("unigram", tokenizers["unigram"])
    path = checkpoint([*pieces[:-2], "日本"], tmp_path / "model")
    theirs = exported(path, tmp_path / "out", "--tokenizer", tokenizers["unigram"] / "sentencepiece.model")
    assert "without 2 pieces that dict.txt lacks" in capsys.readouterr().out
    ours = through(path.with_name("dict.txt"), cut)
    for line in ("日本 text", "the 日本", *lines()[:50]):
        assert 3 in ours(line) or theirs(line)["input_ids"] == [0, *ours(line), 2]


# -- refusals -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("form", "other"), [("bpe", "unigram"), ("unigram", "wordpiece"), ("wordpiece", "gpt2"), ("gpt2 numbers", "bpe")]
)
def test_the_tokenizer_of_another_model_is_refused(
    form: str, other: str, tokenizers: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, pieces = cutter(form, tokenizers[form])
    path = checkpoint(pieces, tmp_path / "model")
    words = ["export-hf", str(path), "--output", str(tmp_path / "out"), "--tokenizer", str(tokenizers[other])]
    assert main(words) == 1
    message = capsys.readouterr().err
    assert "is not the tokenizer of this model" in message
    assert str(tokenizers[other]) in message
    assert "--tokenizer none" in message
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


@pytest.mark.parametrize(
    ("files", "name", "message"),
    [
        (
            {"encoder.json": "{}", "vocab.bpe": "#version: 0.2\na b c\n"},
            "encoder.json",
            "vocab.bpe:2: the line is not a pair",
        ),
        ({"encoder.json": "{}"}, "encoder.json", "vocab.bpe"),
        ({"sentencepiece.model": "a b c"}, "", "is not a tokenizer"),
        ({"vocab.txt": "a\nb\n"}, "", "a WordPiece vocabulary must have [UNK]"),
        ({"tokenizer.json": "[]"}, "", "is not a tokenizer"),
        ({}, "", "contains no tokenizer. Give one of: sentencepiece.model; vocab.txt"),
        ({}, "missing", "does not exist. Give a tokenizer"),
    ],
)
def test_invalid_tokenizers_are_named(
    files: dict[str, str], name: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = checkpoint(["a", "b"], tmp_path / "model")
    source = tmp_path / "given" / name
    (tmp_path / "given").mkdir()
    for file, text in files.items():
        (tmp_path / "given" / file).write_text(text)
    assert main(["export-hf", str(path), "--output", str(tmp_path / "out"), "--tokenizer", str(source)]) == 1
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


# -- import -------------------------------------------------------------------------------------------------


def small_bert(folder: Path) -> Path:
    """Write a small BERT with its own vocabulary, whose special symbols have the ids of BERT."""
    saved(random_model("bert"), folder)
    words = [*BERT_WORDS[:7], *"abcdefghij", *(f"##{letter}" for letter in "abcdefghij")]
    (folder / "vocab.txt").write_text("\n".join([*words, *(f"w{i}" for i in range(WORDS - len(words)))]), "utf-8")
    return folder


@pytest.mark.parametrize(
    ("settings", "fast"),
    [({}, False), ({}, True), ({"strip_accents": False}, False), ({"tokenize_chinese_chars": False}, False)],
)
def test_an_imported_model_keeps_its_tokenizer(settings: dict[str, bool], fast: bool, tmp_path: Path) -> None:
    """After import and export, the pieces are the same. prepare_corpus.py reads the settings next to vocab.txt."""
    source, settings = small_bert(tmp_path / "hf"), {"do_lower_case": True, **settings}
    before = transformers.BertTokenizerFast(vocab_file=str(source / "vocab.txt"), **settings)
    if fast:
        before.save_pretrained(source)
    else:
        (source / "tokenizer_config.json").write_text(json.dumps(settings), "utf-8")
    out = imported(source, tmp_path / "fairseq", "--pos-enc", "m4") / "tokenizer"
    assert (out / "vocab.txt").is_file()
    written = json.loads((out / "tokenizer_config.json").read_text("utf-8"))
    assert {name: written[name] for name in settings} == settings
    after = exported(out.parent / "checkpoint.pt", tmp_path / "back")
    renamed = {"[CLS]": "<s>", "[SEP]": "</s>", "[UNK]": "<unk>", "[MASK]": "<mask>"}
    for line in ("A bad cab", "abcdefghij j?", "CAFÉ", "a w3 b", "a漢b"):
        expected = [renamed.get(piece, piece) for piece in before.tokenize(line, add_special_tokens=True)]
        assert after.tokenize(line, add_special_tokens=True) == expected
        assert after(line)["input_ids"] == after.convert_tokens_to_ids(expected)


def test_an_imported_roberta_keeps_its_tokenizer(tokenizers: dict[str, Path], tmp_path: Path) -> None:
    numbers = json.loads((tokenizers["gpt2"] / "encoder.json").read_text("utf-8"))
    pieces = [*ROBERTA, *numbers, "<mask>"]
    model = transformers.RobertaForMaskedLM(
        transformers.RobertaConfig(len(pieces), 8, 1, 2, 8, max_position_embeddings=22, type_vocab_size=1)
    )
    source = saved(model, tmp_path / "hf")
    (source / "vocab.json").write_text(json.dumps({piece: i for i, piece in enumerate(pieces)}), "utf-8")
    shutil.copy(tokenizers["gpt2"] / "vocab.bpe", source / "merges.txt")
    before = transformers.RobertaTokenizerFast(str(source / "vocab.json"), str(source / "merges.txt"))
    out = imported(source, tmp_path / "fairseq", "--pos-enc", "m4")
    assert {path.name for path in (out / "tokenizer").iterdir()} > {"encoder.json", "vocab.bpe", "tokenizer.json"}
    after = exported(out / "checkpoint.pt", tmp_path / "back")
    for line in lines()[:100]:
        assert after(line)["input_ids"] == before(line)["input_ids"]


def fast_gpt2(folder: Path, files: Path, merges: type, **changed: Any) -> Path:
    """Write a small GPT-2 whose tokenizer is only a tokenizer.json, with merges as texts or as lists."""
    numbers = json.loads((files / "encoder.json").read_text("utf-8"))
    numbers["<|endoftext|>"] = end = len(numbers)
    config = transformers.GPT2Config(len(numbers), n_positions=32, n_embd=8, n_layer=1, n_head=2, eos_token_id=end)
    source = saved(transformers.GPT2LMHeadModel(config), folder)
    contents, _ = tokenizer.read(files)
    pairs = contents["model"]["merges"]
    contents["model"] |= {"vocab": numbers, "merges": pairs if merges is list else [" ".join(pair) for pair in pairs]}
    sides = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    contents["added_tokens"] = [{"content": "<|endoftext|>", "id": end, "special": True, **sides}]
    (source / "tokenizer.json").write_text(json.dumps({**contents, **changed}), "utf-8")
    return source


@pytest.mark.parametrize("merges", [str, list])
def test_the_files_that_split_training_text_are_written_from_tokenizer_json(
    merges: type, tokenizers: dict[str, Path], tmp_path: Path
) -> None:
    source = fast_gpt2(tmp_path / "hf", tokenizers["gpt2"], merges)
    folder = imported(source, tmp_path / "out", "--pos-enc", "rope") / "tokenizer"
    written = ByteLevelBPETokenizer.from_file(str(folder / "encoder.json"), str(folder / "vocab.bpe"))
    original = ByteLevelBPETokenizer.from_file(*(str(tokenizers["gpt2"] / n) for n in ("encoder.json", "vocab.bpe")))
    with_json = transformers.PreTrainedTokenizerFast(tokenizer_file=str(source / "tokenizer.json"))
    for line in (*lines(), *HARD):
        assert written.encode(line).tokens == original.encode(line).tokens == with_json.tokenize(line), line
    assert written.token_to_id("<|endoftext|>") == len(original.get_vocab())
    report = json.loads((folder.parent / "report.json").read_text("utf-8"))
    assert not [note for note in report["notes"] if "prepare_corpus.py" in note]


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"normalizer": {"type": "NFC"}}, "its normalizer is NFC"),
        ({"pre_tokenizer": {"type": "Whitespace"}}, "its pre_tokenizer is Whitespace"),
        ({"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True}}, "add_prefix_space"),
    ],
)
def test_an_import_says_which_tokenizer_cannot_split_training_text(
    changed: dict[str, Any],
    reason: str,
    tokenizers: dict[str, Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    source = fast_gpt2(tmp_path / "hf", tokenizers["gpt2"], list, **changed)
    folder = imported(source, tmp_path / "out", "--pos-enc", "rope") / "tokenizer"
    assert not (folder / "encoder.json").exists()
    printed = capsys.readouterr().out
    assert "prepare_corpus.py cannot use tokenizer/" in printed
    assert reason in printed


def test_an_import_without_tokenizer_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = imported(saved(random_model("roberta"), tmp_path / "hf"), tmp_path / "out", "--pos-enc", "m4")
    assert not (out / "tokenizer").exists()
    source = saved(random_model("bert"), tmp_path / "bert")
    (source / "tokenizer.json").write_text("{}", "utf-8")
    out = imported(source, tmp_path / "other", "--pos-enc", "m4")
    assert not (out / "tokenizer").exists()
    assert "note: tokenizer/ was not written: " in capsys.readouterr().out


def test_a_model_is_imported_without_transformers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source = small_bert(tmp_path / "hf")
    monkeypatch.setitem(sys.modules, "transformers", None)
    out = imported(source, tmp_path / "out", "--pos-enc", "m4")
    assert "note: tokenizer/ was not written: a tokenizer needs transformers" in capsys.readouterr().out
    assert {path.name for path in out.iterdir()} == {"checkpoint.pt", "dict.txt", "report.json"}
