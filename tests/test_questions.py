"""data-bin-scripts/prepare_questions.py: questions to pieces, what is wrong with them, and what fairseq reads."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import support_exchange as exchange
import support_tokenizers as tokenizers
from support_corpora import SCRIPTS
from transformers import BertConfig, RobertaConfig

from fairseq_posenc.data import question_pieces
from fairseq_posenc.hub import pretrained, vocabulary

import prepare_questions  # isort: skip  (a script's folder, which support_corpora puts on the path)
from questions.checks import nearest  # isort: skip
from questions.items import Cutter, Shape  # isort: skip
from questions.reading import Answer, Question  # isort: skip
from questions.sentences import around, language_of  # isort: skip

DATA = Path(os.environ.get("POSENC_DATA") or "not given")
needs_data = pytest.mark.skipif(not (DATA / "squad-v1.1").is_dir(), reason="POSENC_DATA names no folder with SQuAD")

CITY = "The old city of Zorn is on a hill. King Abel (of Zorn) built it in 1200. He had 3.5 towers."
LAKE = "Lake Ember is deep. Nobody swims in it."


def asked(name: str, text: str, *answers: tuple[str, int], **more: Any) -> dict[str, Any]:
    return {"id": name, "question": text, "answers": [{"text": a, "answer_start": s} for a, s in answers], **more}


def squad(*articles: list[tuple[str, list[dict[str, Any]]]]) -> dict[str, Any]:
    data = [
        {"title": f"T{n}", "paragraphs": [{"context": context, "qas": qas} for context, qas in article]}
        for n, article in enumerate(articles)
    ]
    return {"version": "1.1", "data": data}


def good() -> dict[str, Any]:
    city = [
        asked("a", "Who built Zorn?", ("King Abel", CITY.index("King"))),
        asked("b", "Who was the builder?", ("King Abel", CITY.index("King"))),
        asked("c", "When was it built?", ("1200", CITY.index("1200"))),
    ]
    return squad([(CITY, city)], [(LAKE, [asked("d", "Which lake is deep?", ("Lake Ember", 0))])])


class Ended(NamedTuple):
    status: int
    out: str
    error: str


class Prepared:
    """Runs of prepare_questions.py in a folder."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self._capsys, self.output = folder, capsys, folder / "out"

    def write(self, name: str, content: Any) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
        path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
        return path

    def both(self, train: Any = None, valid: Any = None) -> list[object]:
        files = (self.write("train.json", train or good()), self.write("valid.json", valid or good()))
        return ["--train", files[0], "--valid", files[1]]

    def run(self, *words: object, output: Path | None = None) -> Ended:
        arguments = [*map(str, words), "--output", str(output or self.output)]
        try:
            status = prepare_questions.main(arguments)
        except SystemExit as error:
            status = int(str(error.code))
        told = self._capsys.readouterr()
        return Ended(status, told.out, told.err)

    def made(self, *words: object, output: Path | None = None) -> Path:
        ended = self.run(*words, output=output)
        assert ended.status == 0, ended.error
        return output or self.output

    def record(self) -> dict[str, Any]:
        return json.loads((self.output / "questions.json").read_text("utf-8"))


@pytest.fixture
def prepared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Prepared:
    return Prepared(tmp_path, capsys)


class Items(NamedTuple):
    """As fairseq reads them; what the dictionary lacks by its word with a star."""

    source: list[list[str]]
    target: list[list[str]]
    segments: list[list[int]] | None
    surface: list[dict[str, Any]]


def items(folder: Path, split: str = "train") -> Items:
    from fairseq.data import Dictionary, data_utils

    dictionary = Dictionary.load(str(folder / "dict.src.txt"))
    assert (folder / "dict.src.txt").read_bytes() == (folder / "dict.tgt.txt").read_bytes()
    lines = [json.loads(line) for line in (folder / f"{split}.surface.jsonl").read_text("utf-8").split("\n")[:-1]]

    def read(name: str) -> list[list[int]]:
        found = data_utils.load_indexed_dataset(str(folder / f"{split}.{name}"), dictionary, "mmap")
        assert len(found) == len(lines)
        return [found[number].tolist() for number in range(len(found))]

    def named(ids: Iterable[int], unknown: list[str]) -> list[str]:
        size = len(dictionary)
        return [dictionary[number] if number < size else f"{unknown[number - size]}*" for number in ids]

    sides = [
        [named(ids, line["unknown"]) for ids, line in zip(read(f"src-tgt.{side}"), lines, strict=True)]
        for side in ("src", "tgt")
    ]
    segments = read("segments") if (folder / f"{split}.segments.idx").exists() else None
    return Items(sides[0], sides[1], segments, lines)


def problems(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


# --- items


def test_questions_become_answer_context_and_question(prepared: Prepared) -> None:
    found = items(prepared.made(*prepared.both()))
    assert " ".join(found.source[0]) == (
        "<s> king abel </s> the old city of zorn is on a hill . king abel ( of zorn ) built it in 1200 . "
        "he had 3.5 towers . </s>"
    )
    assert found.target[0] == "who built zorn ? </s>".split()
    assert found.segments is not None
    assert found.segments[0] == [0] * 4 + [1] * (len(found.source[0]) - 4)
    assert [line["id"] for line in found.surface] == ["a", "b", "c", "d"]
    assert found.surface[0] == {
        "id": "a",
        "source": 0,
        "question": "Who built Zorn?",
        "references": ["Who built Zorn?", "Who was the builder?"],
        "answer": "King Abel",
        "sentence": "King Abel (of Zorn) built it in 1200.",
        "unknown": [],
    }
    assert [line["source"] for line in found.surface] == [0, 0, 1, 2]
    record = prepared.record()
    assert (record["pieces"], record["units"], record["answers"], record["round_trip"]) == ("words", "words", True, 1.0)
    assert (
        record["splits"]["train"] | {"items": 4, "sources": 3, "given": 4, "windowed": 0} == record["splits"]["train"]
    )


def test_words_outside_the_dictionary_are_numbered_and_copied(prepared: Prepared) -> None:
    valid = squad([("Queen Mara of Lund met Tove and Mara.", [asked("v", "Who met Tove in Oslo?", ("Queen Mara", 0))])])
    folder = prepared.made(*prepared.both(valid=valid), "--cased")
    found = items(folder, "valid")
    assert " ".join(found.source[0]) == "<s> Queen* Mara* </s> Queen* Mara* of Lund* met* Tove* and* Mara* . </s>"
    assert found.target[0] == "Who met* Tove* in <unk> ? </s>".split()
    assert found.surface[0]["unknown"] == ["Queen", "Mara", "Lund", "met", "Tove", "and"]
    facts = prepared.record()["splits"]["valid"]
    assert (facts["source unknown"], facts["target copied"], facts["target unknown"]) == (9, 2, 1)


def test_the_dictionary_has_the_most_frequent_words(prepared: Prepared) -> None:
    folder = prepared.made(*prepared.both(), "--vocabulary", 8)
    assert [line.split()[0] for line in (folder / "dict.src.txt").read_text().splitlines()] == [
        ".",
        "zorn",
        "of",
        "abel",
    ]
    assert "the*" in items(folder).source[0]


def test_chinese_is_cut_by_characters_with_latin_words_whole(prepared: Prepared) -> None:
    context = "魂斗罗 Force是1993年发行的游戏。它很难。"
    given = squad([(context, [asked("a", "魂斗罗 Force是哪一年的？", ("1993年", context.index("1993")))])])
    found = items(prepared.made(*prepared.both(given, given)))
    assert found.source[0][:4] == ["<s>", "1993", "年", "</s>"]
    assert found.source[0][4:10] == ["魂", "斗", "罗", "Force".lower(), "是", "1993"]
    assert found.surface[0]["sentence"] == "魂斗罗 Force是1993年发行的游戏。"
    record = prepared.record()
    assert (record["language"], record["pieces"], record["units"]) == ("zh", "chars", "characters")


def test_the_sentence_of_the_answer_alone(prepared: Prepared) -> None:
    found = items(prepared.made(*prepared.both(), "--context", "sentence"))
    assert " ".join(found.source[2]) == "<s> 1200 </s> king abel ( of zorn ) built it in 1200 . </s>"
    assert around(CITY, 30, 40, "en") == (0, CITY.index(" He"))  # from one sentence into the next
    assert around("no end", 3, 6, "en") == (0, 6)
    assert language_of(["什么是NBA？"]) == "zh"


@pytest.mark.parametrize("seed", range(30))
def test_a_window_holds_the_answer_and_as_much_as_there_is_room_for(seed: int) -> None:
    rng = random.Random(seed)
    words = [f"w{number}" for number in range(rng.randint(1, 60))]
    context, first = " ".join(words), rng.randrange(len(words))
    text = " ".join(words[first : first + rng.randint(1, 8)])
    question = Question("a", "x", 0, "", context, "what?", (Answer(text, context.index(text)),))
    longest = rng.randint(14, 70)
    cutter = Cutter(question_pieces.Words("words", cased=True), Shape(longest, 8, 50, "paragraph", "en", "refuse"))
    cut, told = cutter.cut("train", question)
    assert cut is not None
    assert not told
    size = len(cut.context) + len(text.split()) + 3
    assert size == min(longest, len(words) + len(text.split()) + 3)
    assert cut.windowed == (len(cut.context) < len(words))
    if len(text.split()) <= len(cut.context):
        assert text in " ".join(cut.context)
    assert " ".join(cut.context) in context


# --- sentences and questions


def test_lines_of_sentences_and_questions(prepared: Prepared) -> None:
    for split in ("train", "dev"):
        prepared.write(f"nqg/src-{split}.txt.gz", "the king -lrb- abel -rrb- won .\nthe king -lrb- abel -rrb- won .\n")
        prepared.write(f"nqg/tgt-{split}.txt.gz", "who won ?\nwhat did he do ?\n")
    folder = prepared.made("--text", prepared.folder / "nqg")
    found = items(folder, "valid")
    assert found.source == ["<s> the king -lrb- abel -rrb- won . </s>".split()] * 2
    assert found.segments is None
    assert found.target[1] == "what did he do ? </s>".split()
    assert [line["references"] for line in found.surface] == [["who won ?", "what did he do ?"]] * 2
    assert [line["id"] for line in found.surface] == ["dev:1", "dev:2"]
    assert (prepared.record()["units"], prepared.record()["round_trip"]) == ("spaces", 1.0)


@pytest.mark.parametrize(
    ("write", "words", "message"),
    [
        ({"src-train.txt": "a\nb\n", "tgt-train.txt": "c\n"}, [], "src-train.txt has 2 lines, "),
        ({"src-train.txt": "a\n"}, [], "tgt-train.txt: no such file; src-NAME.txt and tgt-NAME.txt go together"),
        ({"train.json": "{"}, [], "train.json: no JSON"),
        ({"train.json": "{}"}, [], "train.json: the file has no list 'data'"),
        ({"train.json": {"data": [{"title": "x"}]}}, [], "train.json: article 1 has no list 'paragraphs'"),
        ({"train.json": squad([("a", [{"id": "q", "question": 3}])])}, [], "paragraph 1 (T0), question q has no text"),
        ({"train.json": squad([("a", [asked("q", "b?", ("a", "0"))])])}, [], "question q: 'answer_start' is '0'"),  # type: ignore[arg-type]
        ({"train.json": {"data": []}}, [], "train.json: no questions in it"),
        ({"train.json": good(), "src-train.txt": ""}, [], "has both train.json and src-train.txt for train"),
        (
            {"notes.txt": "x"},
            [],
            "no file of train (train.json, src-train.txt, plain or .gz); there is: dev.json, notes.t",
        ),
        ({"train.json": good()}, ["--text", "no-such"], "no-such: no such file or folder"),
        ({"train.json": good()}, ["--tokenizer-path", "no-such"], "--tokenizer-path no-such: no-such is no folder"),
    ],
)
def test_files_that_cannot_be_read_are_refused_with_the_place(
    prepared: Prepared, write: dict[str, Any], words: list[str], message: str
) -> None:
    for name, content in {"dev.json": good(), **write}.items():
        prepared.write(f"text/{name}", content)
    if "src-train.txt" in write and "train.json" not in write:
        (prepared.folder / "text" / "dev.json").unlink()
        prepared.write("text/src-dev.txt", "a\n")
        prepared.write("text/tgt-dev.txt", "a\n")
    ended = prepared.run("--text", prepared.folder / "text", *words)
    assert ended.status == 1
    assert message in ended.error
    assert sorted(path.name for path in prepared.folder.iterdir()) == ["text"]


def test_damaged_files_are_named(prepared: Prepared) -> None:
    path = prepared.write("train.json.gz", good())
    path.write_bytes(path.read_bytes()[:-20])
    ended = prepared.run("--train", path, "--valid", path)
    assert ended.status == 1
    assert "train.json.gz: cannot be read" in ended.error


# --- a lone file


def test_a_lone_file_is_split_by_article(prepared: Prepared) -> None:
    articles = [
        [(LAKE, [asked(f"{n}.{m}", f"Is it lake {n}?", ("Lake Ember", 0)) for m in range(3)])] for n in range(20)
    ]
    path = prepared.write("mine.json", squad(*articles))
    ended = prepared.run("--text", path)
    assert ended.status == 0, ended.error
    found = {
        split: [line["id"] for line in items(prepared.output, split).surface] for split in ("train", "valid", "test")
    }
    assert {split: len(ids) for split, ids in found.items()} == {"train": 48, "valid": 6, "test": 6}
    parts = [{name.split(".")[0] for name in ids} for ids in found.values()]
    assert sum(map(len, parts)) == 20
    drawn = prepared.record()["articles"]
    assert f"test, drawn with seed 1: 2 articles: {', '.join(drawn['test'])}" in ended.out
    assert drawn["test"] == [f"T{number}" for number in sorted(map(int, parts[2]))]
    prepared.made("--text", path, "--seed", 2, output=prepared.folder / "two")
    assert {line["id"] for line in items(prepared.folder / "two", "test").surface} != set(found["test"])


def test_two_articles_cannot_be_split(prepared: Prepared) -> None:
    ended = prepared.run("--text", prepared.write("mine.json", good()))
    assert ended.status == 1
    assert "questions on 2 articles; 3 or more can be split" in ended.error


# --- what is wrong


def bad() -> dict[str, Any]:
    return squad(
        [
            (
                CITY,
                [
                    asked("fine", "Who?", ("King Abel", CITY.index("King"))),
                    asked("moved", "Where?", ("Zorn", CITY.rindex("Zorn") - 4)),  # the second is nearer
                    asked("second", "When?", ("1201", CITY.index("1200")), ("1200", CITY.index("1200"))),
                    asked("nowhere", "Why?", ("Berlin", 3)),
                    asked("negative", "How?", ("towers", -7)),
                    asked("none", "What?"),
                    asked("empty", " ", ("1200", CITY.index("1200"))),
                    asked("no answer text", "Who is it?", (" ", 3)),
                    asked("long", "Who " * 60, ("King Abel", CITY.index("King"))),
                    asked("impossible", "Who knows?", is_impossible=True),
                ],
            ),
            (" ", [asked("no context", "Who?", ("a", 0))]),
        ]
    )


KINDS = {
    "moved": ["misplaced answer"],
    "second": ["misplaced answer"],
    "nowhere": ["misplaced answer", "no answer"],
    "negative": ["misplaced answer"],
    "none": ["no answer"],
    "empty": ["empty question"],
    "no answer text": ["empty answer", "no answer"],
    "long": ["long question"],
    "impossible": ["unanswerable"],
    "no context": ["empty context"],
}


def kinds(found: list[dict[str, Any]]) -> dict[str, list[str]]:
    by_id: dict[str, list[str]] = {}
    for one in found:
        by_id.setdefault(one["id"], []).append(one["kind"])
    return by_id


def test_what_is_wrong_is_counted_named_and_refused(prepared: Prepared) -> None:
    ended = prepared.run(*prepared.both(bad()))
    assert ended.status == 1
    assert "train: 4 x misplaced answer, refused: moved, second, nowhere, negative" in ended.error
    assert "train: 1 x unanswerable, left out: impossible" in ended.error
    assert "--bad skip leaves them out, --bad repair" in ended.error
    found = problems(prepared.folder / "out.problems.jsonl")
    assert {name: [one for one in some if one != "no answer"] for name, some in kinds(found).items()} == {
        name: [one for one in some if one != "no answer"] for name, some in KINDS.items()
    }
    assert not prepared.output.exists()
    assert not (prepared.folder / "out.partial").exists()
    moved = next(one for one in found if one["id"] == "moved")
    assert moved["where"] == "train.json"
    assert moved["what"].startswith("'Zorn' at ")


def test_what_is_wrong_is_left_out_or_repaired_and_told(prepared: Prepared) -> None:
    words = prepared.both(bad())
    prepared.run(*words)
    ended = prepared.run(*words, "--bad", "skip")
    assert ended.status == 0, ended.error
    assert [line["id"] for line in items(prepared.output).surface] == ["fine", "second"]
    assert "train: 1 x long question, left out: long" in ended.out
    assert not (prepared.folder / "out.problems.jsonl").exists()  # of the run that refused
    repaired = prepared.made(*words, "--bad", "repair", output=prepared.folder / "two")
    found = items(repaired)
    assert [line["id"] for line in found.surface] == ["fine", "moved", "second", "negative", "long"]
    assert kinds(problems(repaired / "problems.jsonl")) == KINDS | {"negative": ["misplaced answer"]}
    assert found.surface[1]["sentence"].startswith("King Abel (of Zorn)")  # the nearest
    assert len(found.target[4]) == 51
    assert found.surface[4]["question"] == "Who " * 60
    record = json.loads((repaired / "questions.json").read_text())
    assert record["problems"]["misplaced answer"] == {"left out": 2, "repaired": 2}


def test_long_answers(prepared: Prepared) -> None:
    answer = CITY[:33]
    given = squad([(CITY, [asked("a", "What?", (answer, 0)), asked("b", "When?", ("1200", CITY.index("1200")))])])
    words = [*prepared.both(given, given), "--longest-answer", 5]
    assert "train: 1 x long answer, refused: a" in prepared.run(*words).error
    found = items(prepared.made(*words, "--bad", "repair"))
    assert found.source[0][:8] == "<s> the old city of zorn </s> the".split()


@pytest.mark.parametrize(
    ("text", "start", "place"), [("ab", 4, 3), ("ab", 1, 0), ("ab", 99, 8), ("x", 1, None), ("aa", 0, None)]
)
def test_the_nearest_occurrence(text: str, start: int, place: int | None) -> None:
    assert nearest("ab.ab...ab", text, start) == place


def test_a_split_without_any_question_left_is_refused(prepared: Prepared) -> None:
    only = squad([(CITY, [asked("x", "Who?", is_impossible=True)])])
    ended = prepared.run(*prepared.both(valid=only))
    assert ended.status == 1
    assert "valid: no question is left of 1" in ended.error


# --- options


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--text", "x.json", "--train", "y.json"], "--text, or --train and --valid, is wanted"),
        (["--train", "y.json"], "--train and --valid go together"),
        (["--train", "a.json", "--valid", "b.json", "--seed", "3"], "--seed is for the split of a lone file"),
        (["--train", "src-a.txt", "--valid", "src-b.txt", "--context", "sentence"], "src-*.txt have no answers"),
        (["--train", "a.json", "--valid", "b.json", "--tokenizer-path", "d", "--cased"], "not with --tokenizer-path"),
        (["--train", "a.json", "--valid", "b.json", "--longest", "100"], "leaves no room for a context"),
        (["--train", "a.json", "--valid", "b.json", "--limit", "0"], "0: at least 1 is wanted"),
    ],
)
def test_options_without_effect_are_refused(prepared: Prepared, words: list[str], message: str) -> None:
    ended = prepared.run(*words)
    assert ended.status == 2
    assert message in ended.error


def test_limits_take_the_first_questions(prepared: Prepared) -> None:
    folder = prepared.made(*prepared.both(), "--limit", 3, "--limit-valid", 1)
    assert [len(items(folder, split).surface) for split in ("train", "valid")] == [3, 1]


def test_what_is_there_is_not_touched(prepared: Prepared) -> None:
    prepared.made(*prepared.both())
    ended = prepared.run(*prepared.both())
    assert (ended.status, ended.error) == (
        1,
        f"error: {prepared.output} is there: move it, or choose another --output\n",
    )


def hashes(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


def test_neither_workers_nor_places_change_a_byte(prepared: Prepared, monkeypatch: pytest.MonkeyPatch) -> None:
    from questions import workers

    monkeypatch.setattr(workers, "CHUNK", 2)
    words = [*prepared.both(bad()), "--bad", "repair"]
    one = hashes(prepared.made(*words))
    moved = [prepared.folder / "else" / f"{split}.json" for split in ("train", "valid")]
    moved[0].parent.mkdir()
    for path in moved:
        shutil.copy(prepared.folder / path.name, path)
    two = prepared.folder / "two"
    assert (
        hashes(prepared.made("--train", moved[0], "--valid", moved[1], *words[4:], "--workers", 2, output=two)) == one
    )


# --- pretrained tokenizers


def hugging_face(form: str, folder: Path) -> Path:
    """A random model with a tokenizer that was learned from this project's pages."""
    tokenizers.learned(form, folder)
    if form == "gpt2":
        pieces = json.loads((folder / "encoder.json").read_text("utf-8"))
        specials = {name: number for number, name in enumerate(("<s>", "<pad>", "</s>", "<unk>"))}
        known = specials | {piece: number + 4 for piece, number in pieces.items()}
        (folder / "vocab.json").write_text(json.dumps(known | {"<mask>": len(known)}), "utf-8")
        (folder / "encoder.json").unlink()
        (folder / "vocab.bpe").rename(folder / "merges.txt")
        config = RobertaConfig(len(known) + 1, max_position_embeddings=34, type_vocab_size=1, **exchange.SIZES["tiny"])
    else:
        size = len((folder / "vocab.txt").read_text("utf-8").rstrip("\n").split("\n"))
        config = BertConfig(size, max_position_embeddings=34, **exchange.SIZES["tiny"])
    config.save_pretrained(folder)
    return folder


@pytest.mark.parametrize("form", ["wordpiece", "wordpiece cased", "gpt2"])
def test_pieces_of_an_encoder_have_its_ids(prepared: Prepared, form: str) -> None:
    folder = hugging_face(form, prepared.folder / "encoder")
    made = prepared.made(*prepared.both(), "--tokenizer-path", folder)
    symbols = vocabulary.dictionary(folder)
    lines = (made / "dict.src.txt").read_text("utf-8").splitlines()
    assert [line.rsplit(" ", 1)[0] for line in lines] == symbols[4:]
    assert symbols[-1] == "<mask>"
    cut = question_pieces.load(made)
    found = items(made)
    assert [token for token in found.source[0] if token not in ("<s>", "</s>")] == [
        piece.name if piece.name in symbols else f"{piece.name}*"
        for text in ("King Abel", CITY)
        for piece in cut.cut(text)
    ]
    if form == "gpt2":
        assert [cut.join(target[:-1]) for target in found.target] == [line["question"] for line in found.surface]
    assert prepared.record()["pieces"] == "tokenizer"
    assert prepared.record()["cased"] == (form != "wordpiece")
    assert prepared.record()["round_trip"] == 1.0


@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_the_dictionary_is_that_of_the_imported_model(tmp_path: Path, kind: str) -> None:
    folder = exchange.saved(exchange.made(kind, "tiny"), tmp_path / "hf")
    if kind == "roberta":
        named = ["<s>", "<pad>", "</s>", "<unk>", *(f"w{number}" for number in range(exchange.WORDS - 6)), "<mask>"]
        (folder / "vocab.json").write_text(json.dumps({piece: number for number, piece in enumerate(named)}))
    wanted = pretrained.reordered(pretrained.read(folder)).vocabulary
    assert vocabulary.dictionary(folder) == wanted
    assert wanted is not None
    assert len(wanted) == exchange.WORDS


def test_unknown_letters_can_be_copied_and_special_symbols_are_text(prepared: Prepared) -> None:
    folder = hugging_face("wordpiece", prepared.folder / "encoder")
    context = "The word \u4dc0\u4dc1 and </s> mean nothing."
    given = squad([(context, [asked("a", "What is \u4dc0\u4dc1 ?", ("mean", context.index("mean")))])])
    found = items(prepared.made(*prepared.both(given, given), "--tokenizer-path", folder))
    assert found.surface[0]["unknown"] == ["\u4dc0\u4dc1", "<"]
    assert "\u4dc0\u4dc1*" in found.target[0]
    assert found.source[0].count("</s>") == 2


def test_a_tokenizer_of_another_model_is_refused(prepared: Prepared) -> None:
    folder = hugging_face("wordpiece", prepared.folder / "encoder")
    pieces = (folder / "vocab.txt").read_text("utf-8").splitlines()
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"vocab_size": len(pieces) - 9}))
    ended = prepared.run(*prepared.both(), "--tokenizer-path", folder)
    assert ended.status == 1
    assert f"vocab_size {len(pieces) - 9}, but {len(pieces)} pieces beside it" in ended.error


# --- surface


@pytest.mark.parametrize(
    "text",
    [
        'Who said "No way!" in the U.S. (and when)?',
        "What's the players' 3.5-inch, $1,000 prize at 22:15?",
        "Isn't it Tesla's 50% or 1881–82?",
    ],
)
def test_words_are_joined_as_they_were(text: str) -> None:
    words = question_pieces.Words("words", cased=True)
    assert words.join([piece.name for piece in words.cut(text)]) == text
    assert all(text[piece.start : piece.end] == piece.name for piece in words.cut(text))


@pytest.mark.parametrize("kind", question_pieces.JOINED)
@pytest.mark.parametrize("seed", range(20))
def test_what_was_joined_is_cut_into_the_same_pieces(kind: str, seed: int) -> None:
    rng = random.Random(seed)
    cut = question_pieces.Words(kind, cased=True)
    text = "".join(rng.choices("ab 1.,'\"()-$%?谁是日", k=30))
    pieces = [piece.name for piece in cut.cut(text)]
    joined = cut.join(pieces)
    assert joined.replace(" ", "") == text.replace(" ", "")


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Exception, match=r"was not made by prepare_questions\.py"):
        question_pieces.load(tmp_path)


# --- the scripts


def script(name: str, *words: object) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "VIRTUAL_ENV": sys.prefix}
    command = map(str, [SCRIPTS / f"prepare_{name}.sh", *words])
    return subprocess.run([*command], env=environment, capture_output=True, text=True, check=False)


def test_scripts_fetch_and_prepare() -> None:
    told = script("squad", "--dry-run", "--version", "2.0", "--bad", "skip")
    assert told.returncode == 0, told.stderr
    fetch, prepare = told.stdout.splitlines()
    assert "squad/train-v2.0.json squad/dev-v2.0.json --output data/raw" in fetch
    assert "--valid data/raw/squad/dev-v2.0.json --output data-bin/squad --bad skip" in prepare
    fetch, prepare = script("cmrc", "--dry-run", "--raw", "r").stdout.splitlines()
    assert fetch.count("cmrc2018/cmrc2018_") == 3
    assert "--valid r/cmrc2018/cmrc2018_dev.json --test r/cmrc2018/cmrc2018_trial.json" in prepare
    assert prepare.endswith("--tokenizer chars --language zh ")
    (own,) = script("cmrc", "--dry-run", "--text", "mine.json", "--tokenizer-path", "d").stdout.splitlines()
    assert "--text mine.json --output data-bin/cmrc2018 --tokenizer-path d --language zh" in own


@pytest.mark.parametrize(
    ("name", "words", "message"),
    [
        ("squad", ["--version", "3"], "--version is 3: 1.1 or 2.0 is wanted"),
        ("squad", ["--version", "2.0", "--text", "x"], "--version is of what is fetched"),
        ("squad", ["--train", "x"], "--train: give your own files to prepare_questions.py"),
        ("cmrc", ["--fetch-limit", "1"], "--fetch-limit: files are fetched whole"),
    ],
)
def test_scripts_refuse(name: str, words: list[str], message: str) -> None:
    told = script(name, *words, "--dry-run")
    assert told.returncode == 1
    assert message in told.stderr


# --- real questions


@needs_data
def test_cmrcs_misplaced_answers_are_counted(prepared: Prepared) -> None:
    files = [DATA / "cmrc2018" / f"cmrc2018_{name}.json.gz" for name in ("dev", "trial")]
    ended = prepared.run("--train", files[0], "--valid", files[1])
    assert ended.status == 1
    found = [one for one in problems(prepared.folder / "out.problems.jsonl") if one["kind"] == "misplaced answer"]
    assert [sum(one["split"] == split for one in found) for split in ("train", "valid")] == [200, 5]
    assert len({one["id"] for one in found if one["split"] == "train"}) == 176


@needs_data
@pytest.mark.parametrize(("name", "least"), [("squad-v1.1/du-test-v1.1", 0.98), ("cmrc2018/cmrc2018_dev", 0.99)])
def test_real_questions_come_back(prepared: Prepared, name: str, least: float) -> None:
    path = DATA / f"{name}.json.gz"
    prepared.made("--text", path, "--bad", "repair", "--limit", 3000)
    assert prepared.record()["round_trip"] >= least
