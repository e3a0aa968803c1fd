"""Test that exported tokenizers of Hugging Face give the ids of training."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("sentencepiece")

import transformers
from fairseq.data import Dictionary
from support_exchange import BERT_WORDS, MODELS, REFUSED, WORDS, imported, random_model, saved
from support_tokenizers import FORMS, HARD, checkpoint, cutter, learned, lines, shuffled, through
from tokenizers import ByteLevelBPETokenizer

import fairseq_posenc
from fairseq_posenc.__main__ import main
from fairseq_posenc.generation.prompts import Text
from fairseq_posenc.hub import tokenizer
from fairseq_posenc.hub.ids import SPECIALS

#: Without the piece 000, a unigram model likes `0 00` and `00 0` equally. sentencepiece and Hugging Face differ then.
THRICE = re.compile(r"(.)\1\1")
#: If a text begins with a user-defined symbol, tokenizer.json drops the piece that marks a space before it.
BEGINS = re.compile(r"\s*--pos-enc")


@pytest.fixture(scope="module")
def tokenizers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("tokenizers")
    return {form: learned(form, folder / form) for form in FORMS}


def exported(path: Path, output: Path, *more: Any) -> Any:
    """Return the tokenizer of an exported model."""
    assert main(["export-hf", str(path), "--output", str(output), *map(str, more)]) == 0
    return transformers.AutoTokenizer.from_pretrained(output)


# -- export -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_ids_are_those_of_the_dictionary(form: str, causal: bool, tokenizers: dict[str, Path], tmp_path: Path) -> None:
    """`generate-text` gives the same ids as the exported tokenizer of a language model, and the text back."""
    cut, pieces = cutter(form, tokenizers[form])
    path = checkpoint(shuffled(pieces), tmp_path / "model", causal=causal)
    theirs, dictionary = exported(path, tmp_path / "out", "--tokenizer", tokenizers[form]), path.with_name("dict.txt")
    ours, text = through(dictionary, cut), Text(Dictionary.load(str(dictionary)), tokenizers[form]) if causal else None
    several = 0
    for line in (*lines(), *HARD):
        if (form == "unigram" and THRICE.search(line)) or (form in ("unigram", "bpe") and BEGINS.match(line)):
            continue
        ids = ours(line)
        assert theirs(line)["input_ids"] == ([2, *ids] if causal else [0, *ids, 2]), line
        several += len(ids) > len(line.split())
        if text and line not in HARD:
            assert text.ids(f"{line}\n{line}") == [*ids, 2, *ids]
            # WordPiece does not keep the spaces around punctuation marks, and no tokenizer keeps a character that it
            # lacks. sentencepiece joins spaces.
            if not form.startswith("wordpiece") and SPECIALS.index("<unk>") not in ids:
                plain = " ".join(line.split())
                assert text.text([*ids, 2, *ids]) in (f"{line}\n{line}", f"{plain}\n{plain}")
    assert several > 100
    assert len(theirs) == fairseq_posenc.load(tmp_path / "out").config.vocabulary
    assert (theirs.bos_token, theirs.padding_side) == (("</s>", "left") if causal else ("<s>", "right"))


def test_special_symbols_pairs_and_masks(tokenizers: dict[str, Path], tmp_path: Path) -> None:
    """The second text of a pair is segment 1 if the encoding has segments."""
    cut, pieces = cutter("gpt2", tokenizers["gpt2"])
    path, mask = checkpoint(pieces, tmp_path / "model"), len(pieces) + 4
    theirs = exported(path, tmp_path / "out", "--tokenizer", tokenizers["gpt2"])
    ours = through(path.with_name("dict.txt"), cut)
    names = (theirs.bos_token, theirs.pad_token, theirs.eos_token, theirs.unk_token)
    assert (names, theirs.convert_tokens_to_ids(names)) == (SPECIALS, [0, 1, 2, 3])
    assert (theirs.cls_token, theirs.sep_token, theirs.mask_token_id) == ("<s>", "</s>", mask)
    assert (theirs.model_max_length, theirs.is_fast) == (32, True)
    assert theirs("a <mask> of it")["input_ids"] == [0, *ours("a"), mask, *ours(" of it"), 2]
    pair = theirs("the one", "the other")
    assert pair["input_ids"] == [0, *ours("the one"), 2, 2, *ours("the other"), 2]
    assert "token_type_ids" not in pair
    assert theirs(["the", "the other one"], padding=True)["input_ids"][0][-1] == 1
    assert theirs.decode(theirs("the other one")["input_ids"], skip_special_tokens=True) == "the other one"
    path = checkpoint(pieces, tmp_path / "segments", pos_enc="m4+segments-input")
    pair = exported(path, tmp_path / "pairs", "--tokenizer", tokenizers["gpt2"])("the one", "the other")
    second = pair["input_ids"].index(2) + 1
    assert pair["token_type_ids"] == [int(i >= second) for i in range(len(pair["input_ids"]))]


@pytest.mark.parametrize("depth", ["data", "data/shard00000"])
def test_a_tokenizer_beside_the_dictionary_is_found(
    depth: str, tokenizers: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """If there is none, a note says what to do. Dictionary and tokenizer may each lack a few pieces of the other."""
    cut, pieces = cutter("unigram", tokenizers["unigram"])
    path = checkpoint([*pieces[:-2], "日本"], tmp_path / depth)
    assert main(["export-hf", str(path), "--output", str(tmp_path / "without")]) == 0
    assert "note: no tokenizer was written. To add it, give --tokenizer FILE_OR_FOLDER" in capsys.readouterr().out
    shutil.copytree(tokenizers["unigram"], tmp_path / "data" / "tokenizer")
    theirs, ours = exported(path, tmp_path / "out"), through(path.with_name("dict.txt"), cut)
    assert "tokenizer/sentencepiece.model without 2 pieces that dict.txt lacks" in capsys.readouterr().out
    for line in ("日本 text", "the 日本", *lines()[:50]):
        assert 3 in ours(line) or theirs(line)["input_ids"] == [0, *ours(line), 2]
    assert main(["export-hf", str(path), "--output", str(tmp_path / "none"), "--tokenizer", "none"]) == 0
    assert not list((tmp_path / "none").glob("tokenizer*"))


# -- refusals -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("form", "given", "message"), REFUSED["tokenizers"])
def test_the_tokenizer_of_another_model_is_refused(
    form: str, given: str, message: str, tokenizers: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """tests/faults/test_parsers.py damages the files of tokenizers."""
    path = checkpoint(cutter(form, tokenizers[form])[1], tmp_path / "model")
    place = tokenizers.get(given, tokenizers["gpt2"].parent / given)
    assert main(["export-hf", str(path), "--output", str(tmp_path / "out"), "--tokenizer", str(place)]) == 1
    error = capsys.readouterr().err
    assert message in error
    assert str(place) in error
    assert ("--tokenizer none" in error) == (message == "is not the tokenizer of this model")
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


# -- import -------------------------------------------------------------------------------------------------


def small_bert(folder: Path) -> Path:
    """Write a small BERT with its own vocabulary, whose special symbols have the ids of BERT."""
    saved(random_model("bert"), folder)
    words = [*BERT_WORDS[:7], *"abcdefghij", *(f"##{letter}" for letter in "abcdefghij")]
    (folder / "vocab.txt").write_text("\n".join([*words, *(f"w{i}" for i in range(WORDS - len(words)))]), "utf-8")
    return folder


@pytest.mark.parametrize(("settings", "fast"), MODELS["tokenizers"])
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
    pieces = [*SPECIALS, *numbers, "<mask>"]
    source = saved(random_model("roberta", "tiny", vocab_size=len(pieces)), tmp_path / "hf")
    (source / "vocab.json").write_text(json.dumps({piece: i for i, piece in enumerate(pieces)}), "utf-8")
    shutil.copy(tokenizers["gpt2"] / "vocab.bpe", source / "merges.txt")
    before = transformers.RobertaTokenizerFast(str(source / "vocab.json"), str(source / "merges.txt"))
    out = imported(source, tmp_path / "fairseq", "--pos-enc", "m4")
    assert {path.name for path in (out / "tokenizer").iterdir()} > {"encoder.json", "vocab.bpe", "tokenizer.json"}
    after = exported(out / "checkpoint.pt", tmp_path / "back")
    for line in lines()[:100]:
        assert after(line)["input_ids"] == before(line)["input_ids"]


@pytest.mark.parametrize(("are_texts", "changed", "reason"), MODELS["gpt2_tokenizers"])
def test_the_files_that_split_training_text_are_written_from_tokenizer_json(
    are_texts: bool, changed: dict[str, Any], reason: str, tokenizers: dict[str, Path], tmp_path: Path, capsys: Any
) -> None:
    """They are written for a GPT-2 with only a tokenizer.json, unless they would split text in another way."""
    contents, _ = tokenizer.read(tokenizers["gpt2"])
    numbers = contents["model"]["vocab"]
    numbers["<|endoftext|>"] = end = len(numbers)
    if are_texts:
        contents["model"]["merges"] = [" ".join(pair) for pair in contents["model"]["merges"]]
    sides = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    contents["added_tokens"] = [{"content": "<|endoftext|>", "id": end, "special": True, **sides}]
    source = saved(random_model("gpt2", "tiny", vocab_size=end + 1, eos_token_id=end), tmp_path / "hf")
    (source / "tokenizer.json").write_text(json.dumps({**contents, **changed}), "utf-8")
    folder = imported(source, tmp_path / "out", "--pos-enc", "rope") / "tokenizer"
    notes = [line for line in capsys.readouterr().out.splitlines() if "prepare_corpus.py cannot use" in line]
    assert (folder / "encoder.json").exists() == (not reason)
    assert len(notes) == bool(reason)
    if reason:
        assert reason in notes[0]
        return
    written = ByteLevelBPETokenizer.from_file(str(folder / "encoder.json"), str(folder / "vocab.bpe"))
    with_json = transformers.PreTrainedTokenizerFast(tokenizer_file=str(source / "tokenizer.json"))
    for line in (*lines(), *HARD):
        assert written.encode(line).tokens == with_json.tokenize(line), line
    assert written.token_to_id("<|endoftext|>") == end


def test_an_import_without_tokenizer_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The source has a damaged tokenizer, or transformers is not installed."""
    source, note = saved(random_model("bert"), tmp_path / "hf"), "note: tokenizer/ was not written: "
    (source / "tokenizer.json").write_text("{}", "utf-8")
    imported(source, tmp_path / "damaged", "--pos-enc", "m4")
    assert f"{note}{source}/tokenizer.json is not a tokenizer" in capsys.readouterr().out
    monkeypatch.setitem(sys.modules, "transformers", None)
    imported(small_bert(tmp_path / "bert"), tmp_path / "without", "--pos-enc", "m4")
    assert f"{note}a tokenizer needs transformers" in capsys.readouterr().out
