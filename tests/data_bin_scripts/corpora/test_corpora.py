"""Test the corpus pipeline from text to fairseq's files: pieces, items, shards and counts."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections import Counter
from collections.abc import Callable
from functools import cache
from itertools import chain
from pathlib import Path

import numpy as np
import prepare_corpus
import pytest
from corpora import binary, pieces, sentences
from corpora import documents as reading
from support_corpora import documents, gpt2, items, text, trained_on

pytest_plugins = ["support_corpora"]
#: Number of pieces that each kind of tokenizer learns.
SIZES = {"sentencepiece": 60, "wordpiece": 90}


@pytest.fixture(scope="module")
def prepared(tmp_path_factory) -> Callable[..., Path]:
    """Return a function that prepares two texts, once for each tokenizer and its options, and returns the output."""

    @cache
    def prepare(scheme: str, *more: object) -> Path:
        folder = tmp_path_factory.mktemp(scheme)
        (folder / "train.txt").write_text(text(documents(60)))
        (folder / "valid.txt").write_text(text(documents(5, seed=1)))
        words = ["--train", folder / "train.txt", "--valid", folder / "valid.txt", "--tokenizer", scheme, *more]
        words += ["--tokenizer-path", gpt2(folder / "gpt2")] if scheme == "gpt2" else ["--vocabulary", SIZES[scheme]]
        assert prepare_corpus.main([*map(str, words), "--output", str(folder / "out")]) == 0
        return folder / "out"

    return prepare


def decoded(scheme: str, folder: Path, item: list[str]) -> str:
    """Return the text of an item, decoded by the tokenizer's own library."""
    assert item[-1] == "</s>"
    if scheme == "wordpiece":
        return " ".join(item[:-1]).replace(" ##", "")
    if scheme == "sentencepiece":
        return "".join(item[:-1]).replace("\u2581", " ").strip()
    from tokenizers import ByteLevelBPETokenizer

    tokenizer = ByteLevelBPETokenizer(str(folder / "encoder.json"), str(folder / "vocab.bpe"))
    return tokenizer.decode([int(number) for number in item[:-1]])


@pytest.mark.parametrize("scheme", pieces.FILES)
def test_fairseq_reads_the_text_back_item_by_item(prepared, scheme):
    output = prepared(scheme)
    valid_items = items(output / "shard00000", "valid")
    expected = [line for document in documents(5, seed=1) for line in [*document, ""]]  # an empty line ends a document
    if scheme == "wordpiece":
        expected = [line.lower().replace(".", " .") for line in expected]
    assert [decoded(scheme, output / "tokenizer", item) for item in valid_items] == expected
    names = set(pieces.FILES[scheme]) - {"dict.txt"}
    assert sorted(path.name for path in (output / "tokenizer").iterdir()) == sorted(names)
    if scheme == "gpt2":  # the dictionary is the user's
        dictionary = output.parent / "gpt2" / "dict.txt"
        assert (output / "shard00000" / "dict.txt").read_bytes() == dictionary.read_bytes()


def test_each_document_stays_whole_and_is_in_one_shard(prepared):
    output, texts = prepared("sentencepiece", "--tasks", 3), []
    for shard in range(3):
        read = [decoded("sentencepiece", output, item) for item in items(output / f"shard{shard:05d}")]
        texts.append("\n".join(read).split("\n\n") if read[-1] else "\n".join(read[:-1]).split("\n\n"))
        assert (output / f"shard{shard:05d}" / "valid.bin").exists() == (shard == 0)
    together = [document for shard in texts for document in shard]
    expected = ["\n".join(lines) for lines in documents(60)]
    assert together != expected  # they are shuffled
    assert sorted(together) == sorted(expected)
    assert min(map(len, texts)) > 5


def test_dict_txt_counts_the_pieces_of_the_training_text(prepared):
    shards = [prepared("wordpiece", "--tasks", 2) / f"shard0000{number}" for number in range(2)]
    first, second = ((shard / "dict.txt").read_text() for shard in shards)
    assert first == second
    counted = {piece: int(number) for piece, number in (line.rsplit(" ", 1) for line in first.splitlines())}
    read = Counter(piece for shard in shards for item in items(shard) for piece in item if piece != "</s>")
    assert {piece: number for piece, number in counted.items() if number > 1} == {
        piece: number for piece, number in read.items() if number > 1
    }
    assert any(piece.startswith("##") for piece in counted)  # whole-word masking needs them


def test_corpus_json_says_what_there_is(prepared):
    output = prepared("sentencepiece")
    record = json.loads((output / "corpus.json").read_text())
    train = record["counts"]["train"]
    assert (train["files"], train["documents"], train["sentences"], train["items"]) == (1, 60, 180, 240)
    assert train["characters"] == sum(len(line) for document in documents(60) for line in document)
    read = [piece for item in items(output / "shard00000") for piece in item if piece != "</s>"]
    assert (train["pieces"], train["unknown_pieces"]) == (len(read), read.count("<unk>"))
    model = (output / "tokenizer" / "sentencepiece.model").read_bytes()
    assert record["tokenizer"]["sentencepiece.model"] == hashlib.sha256(model).hexdigest()
    assert record["options"]["vocabulary"] == 60


@pytest.mark.parametrize("scheme", ["wordpiece", "sentencepiece"])
def test_a_tokenizer_that_was_learned_can_be_given(corpora, prepared, scheme):
    first = prepared(scheme)
    tokenizer = first / "tokenizer" / pieces.FILES[scheme][0]
    words = [*corpora.both(), "--tokenizer", scheme, "--tokenizer-path", tokenizer]
    assert corpora.run(*words).status == 0
    assert trained_on(first) == trained_on(corpora.output)


@pytest.mark.parametrize("cased", [False, True])
def test_the_tokenizer_says_whether_it_keeps_capitals(prepared, tmp_path, cased):
    """export-hf reads this setting to tokenise text as training did."""
    output = prepared("wordpiece", *(["--cased"] if cased else []))
    folder = shutil.copytree(output / "tokenizer", tmp_path / "tokenizer")
    settings = (folder / "tokenizer_config.json").read_bytes()
    assert json.loads(settings) == {"do_lower_case": not cased}
    record = json.loads((output / "corpus.json").read_text())
    assert record["tokenizer"]["tokenizer_config.json"] == hashlib.sha256(settings).hexdigest()
    from fairseq_posenc.hub.tokenizer.sources import read

    for _ in range(2):
        tokenizer, _ = read(folder)
        assert tokenizer["normalizer"]["lowercase"] != cased
        (folder / "tokenizer_config.json").unlink(missing_ok=True)  # then the capitals in the vocabulary decide


class TestCase:
    """Test --cased with a vocab.txt of the user."""

    def prepare(self, corpora, capitals, *more):
        letters = "abcdefghijklmnopqrstuvwxyz"
        vocab = ["[UNK]", "[CLS]", "[SEP]", "[unused1]", "<S>", ".", *letters, *(f"##{letter}" for letter in letters)]
        path = corpora.write("given/vocab.txt", "\n".join([*vocab, *capitals]) + "\n")
        words = [*corpora.both(), "--tokenizer", "wordpiece", "--tokenizer-path", path]
        return corpora.run(*words, *more)

    def test_capitals_want_cased(self, corpora):
        ended = self.prepare(corpora, ["K", "##L"])
        assert ended.status == 1
        assert "vocab.txt: it has capitals ('K'), but the text would be lowercased. Give --cased." in ended.error
        assert self.prepare(corpora, [*"DKLMNOPRSV"], "--cased").status == 0
        read = [piece for item in items(corpora.output / "shard00000") for piece in item]
        assert "K" in read

    def test_without_capitals_cased_is_refused(self, corpora):
        ended = self.prepare(corpora, [], "--cased")
        assert ended.status == 1
        assert "vocab.txt: it has no capitals, so words with capitals would be unknown" in ended.error
        assert "Leave out --cased" in ended.error
        assert self.prepare(corpora, []).status == 0

    def test_settings_beside_it_say_it(self, corpora):
        """tokenizer_config.json decides, for example in a script without capitals."""
        corpora.write("given/tokenizer_config.json", '{"do_lower_case": false}')
        ended = self.prepare(corpora, [])
        assert "tokenizer_config.json in its folder sets do_lower_case to false" in ended.error
        assert "Give --cased" in ended.error
        corpora.write("given/tokenizer_config.json", "{}")
        assert "it has no capitals" in self.prepare(corpora, [], "--cased").error

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            ("{", "tokenizer_config.json is not valid JSON"),
            ("[]", "tokenizer_config.json is not a JSON object with settings"),
            ('{"strip_accents": "no"}', "strip_accents is 'no', but must be true or false"),
        ],
    )
    def test_settings_that_cannot_be_read_are_refused(self, corpora, content, message):
        corpora.write("given/tokenizer_config.json", content)
        ended = self.prepare(corpora, [])
        assert ended.status == 1
        assert message in ended.error

    @pytest.mark.parametrize(
        ("settings", "expected"),
        [
            ({}, ["u", "##b", "a", "漢", "字", "b"]),
            ({"strip_accents": False}, ["ü", "##b", "a", "漢", "字", "b"]),
            ({"tokenize_chinese_chars": False}, ["u", "##b", "a", "##漢", "##字", "##b"]),
            ({"do_lower_case": False}, ["<unk>", "a", "漢", "字", "b"]),
        ],
    )
    def test_all_settings_beside_a_vocabulary_are_those_of_import_hf(self, corpora, settings, expected):
        """German and Polish uncased models keep their accents (strip_accents), and others do not split Chinese."""
        from fairseq_posenc.hub import tokenizer as hub

        vocab = ["[UNK]", "[CLS]", "[SEP]", "u", "ü", "##b", "a", "b", "漢", "字", "##漢", "##字"]
        path = corpora.write("given/vocab.txt", "\n".join(vocab) + "\n")
        corpora.write("given/tokenizer_config.json", json.dumps(settings))
        train = corpora.write("train.txt", "Üb a漢字b\n")
        words = ["--tokenizer", "wordpiece", "--tokenizer-path", path]
        words += ["--cased"] if settings.get("do_lower_case") is False else []
        assert corpora.run("--train", train, "--valid", train, *words).status == 0
        read = [piece for item in items(corpora.output / "shard00000") for piece in item if piece != "</s>"]
        assert read == expected
        for folder in (path.parent, corpora.output / "tokenizer"):  # export-hf reads the second one
            built = hub.built(hub.read(folder)[0])
            assert [token.replace("[UNK]", "<unk>") for token in built.encode("Üb a漢字b").tokens] == expected


def test_a_part_is_held_out_by_draw(corpora):
    train, _ = corpora.two()
    assert corpora.learn("--train", train, "--valid-part", 0.3).status == 0
    counts = corpora.record()["counts"]
    assert counts["train"]["documents"] + counts["valid"]["documents"] == 60
    assert 8 < counts["valid"]["documents"] < 30
    assert not {tuple(item) for item in items(corpora.output / "shard00000", "valid") if len(item) > 1} & {
        tuple(item) for item in items(corpora.output / "shard00000") if len(item) > 1
    }


def test_a_limit_takes_so_many_documents(corpora):
    assert corpora.learn(*corpora.both(), "--limit", 11, "--tasks", 3).status == 0
    assert corpora.record()["counts"]["train"]["documents"] == 11
    assert corpora.record()["counts"]["valid"]["documents"] == 5


def test_documents_without_text_are_dropped_and_counted(corpora):
    _, valid = corpora.two()
    rows = [{"text": "\n".join(lines)} for lines in documents(30)] + [{"text": " \n\u200b"}, {"text": ""}]
    train = corpora.write("train.jsonl", "\n".join(map(json.dumps, rows)))
    assert corpora.learn("--train", train, "--valid", valid).status == 0
    counts = corpora.record()["counts"]["train"]
    assert (counts["documents"], counts["without_text"]) == (30, 2)


def test_a_complete_output_is_not_written_again(corpora):
    words = corpora.both()
    assert corpora.learn(*words).status == 0
    assert "is already complete" in corpora.learn(*words, "--workers", 2).out
    refused = corpora.learn(*words, "--seed", 2)
    assert refused.status == 1
    assert "out exists, but was made from other text or options" in refused.error
    assert not (corpora.folder / "out.partial").exists()


class TestItems:
    #: ids from 10 begin a word
    BEGINS = np.arange(20) >= 10

    def cut(self, *parts: list[int], longest: int = 4) -> list[list[int]]:
        lengths = np.array([len(part) for part in parts], np.int64)
        ids, sizes = sentences.items(np.array([*chain(*parts)], np.int64), lengths, self.BEGINS, longest)
        return [part.tolist() for part in np.split(ids, sizes.cumsum()[:-1])]

    def test_sentences_end_and_the_document_ends(self):
        assert self.cut([10, 4], [], [11]) == [[10, 4, 2], [11, 2], [2]]

    def test_a_long_sentence_is_cut_before_a_word(self):
        assert self.cut([10, 4, 5, 11, 4, 12]) == [[10, 4, 5, 2], [11, 4, 12, 2], [2]]
        assert self.cut([10, 4, 5, 6, 11, 4]) == [[10, 4, 5, 6, 2], [11, 4, 2], [2]]  # cut at the last possible place

    def test_a_long_word_is_cut_where_it_must(self):
        assert self.cut([10, 4, 4, 4, 4, 4, 12, 4]) == [[10, 4, 4, 4, 2], [4, 4, 12, 4, 2], [2]]

    def test_no_item_is_longer(self):
        drawn = np.random.default_rng(0)
        parts = [drawn.integers(4, 20, drawn.integers(0, 30)).tolist() for _ in range(50)]
        cut = self.cut(*parts, longest=7)
        assert max(map(len, cut)) == 8
        assert [number for item in cut for number in item[:-1]] == [*chain(*parts)]


def test_long_sentences_are_cut_in_shards(corpora):
    assert corpora.learn(*corpora.both(), "--longest", 12).status == 0
    shard = items(corpora.output / "shard00000")
    assert max(map(len, shard)) == 13
    cut = [item for item, before in zip(shard[1:], shard, strict=False) if len(item) > 1 and len(before) > 10]
    assert sum(item[0].startswith("\u2581") for item in cut) > 0.8 * len(cut)
    assert corpora.record()["counts"]["train"]["items"] > 240


def test_sentences_are_split_by_language():
    paragraph = "Am 3. Mai z. B. kam er. Dann ging er."
    assert sentences.split("de", [paragraph]) == ["Am 3. Mai z. B. kam er.", "Dann ging er."]
    assert sentences.split("en", ["Dr. Smith came. He left!"]) == ["Dr. Smith came.", "He left!"]
    giant = "word " * 50_000
    assert " ".join(sentences.split("en", [giant])) == giant.strip()


def test_the_binary_files_are_those_of_fairseqs_builder(tmp_path):
    import torch
    from fairseq.data.indexed_dataset import MMapIndexedDatasetBuilder

    for symbols in (300, 70_000):
        dtype = binary.dtype_for(symbols)
        examples = [np.random.default_rng(size).integers(0, symbols, size) for size in (3, 1, 127, 40)]
        theirs = MMapIndexedDatasetBuilder(str(tmp_path / "theirs.bin"), dtype=dtype.type)
        for ids in examples:
            theirs.add_item(torch.tensor(ids))
        theirs.finalize(str(tmp_path / "theirs.idx"))
        with binary.shard(tmp_path / "ours", dtype) as ours:
            for ids in examples:
                ours.put(ids.tolist())
        for end in ("bin", "idx"):
            assert (tmp_path / f"ours.{end}").read_bytes() == (tmp_path / f"theirs.{end}").read_bytes()


def test_pieces_begin_words_as_whole_word_masking_has_it():
    from fairseq_posenc.data.words import SCHEMES as MARKS

    for scheme, begins in pieces.BEGINS.items():
        for piece in ("\u2581a", "a", "##a", "\u0120a", "\u010a", "\u0109b", "\u2581", "."):
            assert begins(piece) == MARKS[scheme].begins(piece), (scheme, piece)


def test_a_dictionary_is_read_by_line_feeds(tmp_path):
    (tmp_path / "dict.txt").write_text("a 3\nb\u2028c 2\nd\x85 1\n", encoding="utf-8")
    assert pieces._listed(tmp_path / "dict.txt") == ["a", "b\u2028c", "d\x85"]


class TestRefused:
    @pytest.mark.parametrize(
        ("content", "message"),
        [
            ("", "train.txt: no document has text"),
            ("  \n\n\u200b\n", "train.txt: no document has text"),
            ("fine text here.\n\nb\0d\n", "train.txt:3: the line contains a NUL character. Remove the NUL character"),
            ("fine text here.\n\n" + "word " * 4_100_000, "train.txt:3: this line has more than 10,000,000 characters"),
        ],
    )
    def test_bad_text_is_one_line_and_nothing_is_there(self, corpora, content, message):
        _, valid = corpora.two()
        words = ["--tokenizer", "gpt2", "--tokenizer-path", gpt2(corpora.folder / "gpt2")]
        train = corpora.write("train.txt", content)
        ended = corpora.run("--train", train, "--valid", valid, *words, "--tasks", 2, "--workers", 2)
        assert ended.status == 1
        assert ended.error.startswith("error: ")
        assert message in ended.error
        assert ended.error.count("\n") == 1
        assert not corpora.output.exists()

    def test_too_little_text_for_the_vocabulary(self, corpora):
        for scheme in ("sentencepiece", "wordpiece"):
            words = [*corpora.both(), "--tokenizer", scheme, "--vocabulary", 20_000]
            ended = corpora.run(*words)
            assert (ended.status, ended.error.count("\n")) == (1, 1)
            assert "--vocabulary 20000" in ended.error

    def test_a_tokenizer_of_another_script(self, corpora, prepared):
        train = corpora.write("other.txt", "\u0430\u0431\u0432 \u0433\u0434\u0435. " * 500 + "\n")
        model = prepared("sentencepiece") / "tokenizer" / "sentencepiece.model"
        words = ["--train", train, "--valid", train, "--tokenizer", "sentencepiece", "--tokenizer-path", model]
        ended = corpora.run(*words)
        assert ended.status == 1
        assert "pieces are unknown, so the tokenizer is for another language or script" in ended.error

    def test_a_tokenizer_that_does_not_fit_its_dictionary(self, corpora):
        folder = gpt2(corpora.folder / "gpt2")
        (folder / "dict.txt").write_text("".join(f"{number} 1\n" for number in range(200)))
        words = [*corpora.both(), "--tokenizer", "gpt2", "--tokenizer-path", folder]
        ended = corpora.run(*words)
        assert ended.status == 1
        assert "dict.txt lacks " in ended.error
        assert "(the first is 200), so the files belong to different tokenizers" in ended.error
        (folder / "dict.txt").write_bytes(b"0 1\n\xff 1\n")
        assert "dict.txt:2: the line is not UTF-8, because it contains the byte 0xff" in corpora.run(*words).error
        (folder / "dict.txt").unlink()
        assert "dict.txt is not a file. --tokenizer gpt2 needs a folder with" in corpora.run(*words).error

    @pytest.mark.parametrize(
        ("scheme", "content", "message"),
        [
            ("sentencepiece", "junk", "is not a SentencePiece model"),
            ("wordpiece", "a\nb\n", "is not a WordPiece vocabulary"),
            ("wordpiece", "[UNK]\n[CLS]\n##a\n", "the vocabulary lacks the piece [SEP]"),
            ("wordpiece", "[UNK]\n##a\nb\nb\n", "vocab.txt:4: the piece 'b' occurs twice"),
            ("wordpiece", "[UNK]\n##a\nb c\n", "vocab.txt:3: the piece 'b c' is empty or contains a space"),
        ],
    )
    def test_a_tokenizer_that_is_none(self, corpora, scheme, content, message):
        path = corpora.write("given", content)
        ended = corpora.run(*corpora.both(), "--tokenizer", scheme, "--tokenizer-path", path)
        assert ended.status == 1
        assert message in ended.error

    def test_a_vocabulary_that_is_not_text(self, corpora):
        path = corpora.write("vocab.txt", "")
        path.write_bytes(b"[UNK]\n[CLS]\n[SEP]\n##\xe9\n")
        ended = corpora.run(*corpora.both(), "--tokenizer", "wordpiece", "--tokenizer-path", path)
        assert (ended.status, ended.error.count("\n")) == (1, 1)
        assert "vocab.txt:4: the line is not UTF-8, because it contains the byte 0xe9" in ended.error

    def test_more_shards_than_documents(self, corpora):
        train = corpora.write("train.txt", text(documents(2)))
        words = ["--tokenizer", "gpt2", "--tokenizer-path", gpt2(corpora.folder / "gpt2"), "--tasks", 3]
        ended = corpora.run("--train", train, "--valid", train, *words)
        assert ended.status == 1
        assert "has no document, because the text has too few documents. Give a smaller --tasks" in ended.error

    @pytest.mark.parametrize("part", [0.0001, 0.9999])
    def test_a_part_that_leaves_a_split_empty(self, corpora, part):
        train, _ = corpora.two()
        words = ["--tokenizer", "gpt2", "--tokenizer-path", gpt2(corpora.folder / "gpt2"), "--valid-part", part]
        ended = corpora.run("--train", train, *words)
        assert ended.status == 1
        assert f"--valid-part {part}: " in ended.error

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (["--tokenizer", "gpt2"], "needs --tokenizer-path DIR"),
            (["--tokenizer", "sentencepiece", "--tokenizer-path", "x", "--vocabulary", "9"], "Leave out --vocabulary"),
            (["--tokenizer", "sentencepiece", "--cased"], "--cased is only for wordpiece"),
            (["--tokenizer", "wordpiece", "--slurm-partition", "p"], "need --executor slurm"),
            (["--tokenizer", "wordpiece", "--tasks", "0"], "at least 1"),
            (["--tokenizer", "wordpiece", "--smoothing", "2"], "0 \\(equal shares\\) to 1"),
            (["--tokenizer", "wordpiece", "--valid-part", "0.5"], "not allowed with argument --valid"),
        ],
    )
    def test_options_that_contradict_each_other(self, corpora, words, message):
        ended = corpora.run(*corpora.both(), *words)
        assert ended.status == 2
        assert re.search(message, ended.error)

    def test_what_is_in_the_way(self, corpora):
        corpora.write("out/mine", "x")
        assert "out exists, and this program did not" in corpora.learn(*corpora.both()).error
        corpora.write("other.partial/mine", "x")
        ended = corpora.learn(*corpora.both(), output=corpora.folder / "other")
        assert "other.partial exists, and this program did not write it" in ended.error


def test_a_dry_run_lists_the_files_and_writes_nothing(corpora):
    train, valid = corpora.two()
    ended = corpora.learn("--train", f"file:{train}", "--valid", valid, "--dry-run")
    assert ended.out == f"train\ten\tfile\t{train}\nvalid\ten\tauto\t{valid}\n"
    assert sorted(path.name for path in corpora.folder.iterdir()) == ["train.txt", "valid.txt"]


def test_the_help_names_every_kind(corpora):
    ended = corpora.run("--help")
    assert ended.status == 0
    assert all(kind in ended.out for kind in reading.KINDS)
