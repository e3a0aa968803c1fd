"""Test which training pairs prepare_parallel.py leaves out, with counts by hand, and which input it refuses."""

from __future__ import annotations

import gzip
import json
import sys
import types

import pytest
from parallel import cleaning, parts
from support_parallel import Parallel, lines, sentences

pytest_plugins = ["support_parallel"]
#: The two sides, and the step that leaves the pair out, or None for a pair that is kept.
PAIRS: list[tuple[str | bytes, str | bytes, str | None]] = [
    ("A dog runs.", "Ein Hund rennt.", None),
    ("A d\xe9f".encode("latin-1"), "Ein Hund rennt.", "encoding"),
    ("A dog runs.", "Ein Hund rennt\ufffd.", "encoding"),
    ("", "Ein Hund rennt.", "empty"),
    ("A dog runs.", " \t\u00a0 ", "empty"),
    ("\u200b\x07", "Ein Hund rennt.", "empty"),
    ("a " * 11, "b " * 11, "long"),
    ("a " * 10, "b " * 10, None),
    ("a b c d.", "b c.", "ratio"),  # 5 words and marks to 3
    ("a b c", "d e", None),  # exactly 1.5
    ("Paris - London", "Paris - London", None),
    ("A dog runs.", "Ein Hund rennt.", "duplicate"),
    ("A  dog\u00a0runs.\r", "Ein Hund rennt.\x93", "duplicate"),  # the same after it is mended
    ("A dog runs.", "Ein Hund lief.", None),  # another translation
]
CURES = ("--longest-words", 10, "--ratio", 1.5)


def counted(pairs: list[tuple[str | bytes, str | bytes, str | None]]) -> dict[str, int]:
    steps = [step for _, _, step in pairs]
    return {step: steps.count(step) for step in ("encoding", "empty", "long", "ratio", "duplicate")}


def sides() -> tuple[list[str | bytes], list[str | bytes]]:
    return [source for source, _, _ in PAIRS], [target for _, target, _ in PAIRS]


def test_every_pair_is_counted_by_the_first_rule_that_it_breaks(parallel: Parallel) -> None:
    options = parallel.words(
        parallel.write("first", *sides()), parallel.write("second", ["new", "a b c"], ["neu", "d e"])
    )
    ended = parallel.run(*options, *CURES)
    assert ended.status == 0, ended.error
    counts = parallel.counts("first")
    kept = [(str(source).strip(), str(target).strip()) for source, target, step in PAIRS if step is None]
    assert counts["read"] == len(PAIRS)
    assert counts["kept"] == len(kept)
    assert {step: counts[step] for step in counted(PAIRS)} == counted(PAIRS)
    assert parallel.counts("second")["duplicate"] == 1  # of a pair in the first corpus
    assert lines(parallel.output / "train.en") == [*(source for source, _ in kept), "new"]
    assert lines(parallel.output / "train.de") == [*(target for _, target in kept), "neu"]
    assert parallel.record()["counts"] == {
        "train": {
            "pairs": len(kept) + 1,
            "read": len(PAIRS) + 2,
            "left out": {"encoding": 2, "empty": 3, "long": 1, "ratio": 1, "duplicate": 3},
            "words": {"en": 4 + 10 + 3 + 3 + 4 + 1, "de": 4 + 10 + 2 + 3 + 4 + 1},
        },
        "valid": {"pairs": 4},
        "test": {"pairs": 4},
    }


def test_the_report_names_the_first_lines_of_each_step(parallel: Parallel) -> None:
    ended = parallel.run(*parallel.words(parallel.write("first", *sides())), *CURES)
    rows = {
        row["step"]: row for row in json.loads((parallel.output / "report.json").read_text()) if "first lines" in row
    }
    assert rows["encoding"]["first lines"] == "2 3"
    assert rows["duplicate"]["first lines"] == "12 13"
    page = (parallel.output / "report.md").read_text()
    assert page in ended.out
    assert "| - empty | 3 |" in page
    assert "| kept | 5 (35.7%) |" in page
    assert "- ratio: first.en:9" in page
    assert "| valid | valid | 4 | 0 |" in page


def test_kept_text_is_composed_without_control_characters_and_counted_as_mended(parallel: Parallel) -> None:
    corpus = parallel.write("mine", ["a cafe\u0301 \x93x\x94", "plain"], ["ein\u2028Caf\u00e9\u00ad x", "schlicht"])
    assert parallel.run(*parallel.words(corpus)).status == 0
    assert lines(parallel.output / "train.en")[0] == "a caf\u00e9 x"
    assert lines(parallel.output / "train.de")[0] == "ein Caf\u00e9\u00ad x"  # a soft hyphen is text
    assert parallel.counts("mine")["mended"] == 1


@pytest.mark.parametrize(
    "separator", ["\t", "\r", "\x0b", "\x0c", "\x1c", "\x1f", "\x85", "\u2028", "\u2029", "\u200b"]
)
def test_a_separator_between_words_becomes_a_space_in_all_splits(separator: str, parallel: Parallel) -> None:
    text = [f"a{separator}b", "x"], [f"c{separator}d", "y"]
    assert_clean_in_all_splits(parallel, text, (["a b", "x"], ["c d", "y"]))


def test_all_splits_are_composed(parallel: Parallel) -> None:
    """Subwords are learned on composed training text, so a test set in NFD would be full of unknown pieces."""
    text = ["ein cafe\u0301", "x\x01y"], ["de\u0301ja\u0300", "z"]
    assert_clean_in_all_splits(parallel, text, (["ein caf\u00e9", "xy"], ["d\u00e9j\u00e0", "z"]))


def assert_clean_in_all_splits(
    parallel: Parallel, text: tuple[list[str], list[str]], clean: tuple[list[str], list[str]]
) -> None:
    """Prepare the same pairs as training, validation and test set, and compare both sides with the clean lines."""
    corpora = {split: parallel.write(split, *text) for split in ("train", "valid", "test")}
    options = [word for split, prefix in corpora.items() for word in (f"--{split}", prefix)]
    assert parallel.run("--pair", "en-de", *options).status == 0
    for split in corpora:
        assert (lines(parallel.output / f"{split}.en"), lines(parallel.output / f"{split}.de")) == clean


def test_a_nul_character_in_a_set_is_named_with_its_line(parallel: Parallel) -> None:
    options = parallel.words(parallel.write("mine", *sentences(3, 1)))
    ended = parallel.run(*options, "--test", parallel.write("nul", ["a", "b \0 c and so on"], ["d", "e"]))
    assert ended.status == 1
    assert "nul.en:2: the line contains a NUL character. Remove the NUL character." in ended.error
    assert not parallel.output.exists()


@pytest.mark.parametrize("split", ["train", "test"])
def test_utf_16_is_refused_with_the_command_that_converts_it(split: str, parallel: Parallel) -> None:
    corpus = parallel.write("wide", *sentences(3, 1))
    (parallel.folder / "wide.de").write_bytes("\n".join(sentences(3, 1)[1]).encode("utf-16"))
    words = parallel.words(parallel.write("mine", *sentences(3, 1)))
    ended = parallel.run(*words, f"--{split}", corpus)
    assert ended.status == 1
    assert "wide.de:1: the text is UTF-16, but must be UTF-8. Convert it with: iconv -f UTF-16 -t UTF-8" in ended.error
    assert not parallel.output.exists()


def test_rules_can_be_left_out_and_others_asked_for(parallel: Parallel) -> None:
    options = parallel.words(parallel.write("first", *sides()))
    off = ("--longest-words", 0, "--ratio", 0, "--duplicates", "keep")
    assert parallel.run(*options, *off, "--identical", "drop").status == 0
    counts = parallel.counts("first")
    assert counts["identical"] == 1
    assert not {"long", "ratio", "duplicate", "language"} & counts.keys()
    assert counts["kept"] == len(PAIRS) - 6


def test_the_limit_is_of_pairs_read_of_each_corpus(parallel: Parallel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "CHUNK", 3)
    options = parallel.words(parallel.write("a", *sentences(9, 1)), parallel.write("b", *sentences(4, 2)))
    assert parallel.run(*options, "--limit", 5).status == 0
    assert (parallel.counts("a")["read"], parallel.counts("b")["read"]) == (5, 4)
    assert parallel.record()["counts"]["valid"] == {"pairs": 4}


def test_packed_files_are_read_as_they_are(parallel: Parallel) -> None:
    corpus = parallel.write("mine", *sentences(9, 1))
    contents = {code: (parallel.folder / f"mine.{code}").read_bytes() for code in ("en", "de")}
    for code, content in contents.items():
        (parallel.folder / f"mine.{code}.gz").write_bytes(gzip.compress(content))
        (parallel.folder / f"mine.{code}").unlink()
    assert parallel.run(*parallel.words(corpus)).status == 0
    assert {code: (parallel.output / f"train.{code}").read_bytes() for code in contents} == contents


# --- languages


def test_other_languages_are_left_out_if_asked(parallel: Parallel, monkeypatch: pytest.MonkeyPatch) -> None:
    def classify(text: str) -> tuple[str, float]:
        return ("cs" if "\u011b" in text else "de" if "Hund" in text else "en"), -1.0

    module = types.ModuleType("py3langid")
    module.__spec__ = types.SimpleNamespace(name="py3langid")  # type: ignore[assignment]
    vars(module).update(classify=classify, rank=lambda text: [(code, 0.0) for code in ("en", "de", "cs")])
    monkeypatch.setitem(sys.modules, "py3langid", module)
    monkeypatch.setattr("parallel.pipeline.version", lambda name: "0")
    corpus = parallel.write(
        "mine", ["A dog.", "Ein Hund.", "A dog."], ["Ein Hund.", "Ein Hund!", "Pes b\u011b\u017eel."]
    )
    assert parallel.run(*parallel.words(corpus), "--language-id").status == 0
    assert parallel.counts("mine")["language"] == 2
    options = ["--pair", "en-nl", *parallel.words(corpus)[2:]]
    for name in ("mine", "valid", "test"):
        (parallel.folder / f"{name}.de").rename(parallel.folder / f"{name}.nl")
    ended = parallel.run(*options, "--language-id", output=parallel.folder / "nl")
    assert "--language-id: py3langid does not know 'nl'; it knows cs, de, en" in ended.error


@pytest.mark.skipif(cleaning.importlib.util.find_spec(cleaning.PACKAGE) is not None, reason="it is installed here")
def test_language_identification_says_what_to_install(parallel: Parallel) -> None:
    ended = parallel.run(*parallel.words(parallel.write("mine", *sentences(3, 1))), "--language-id")
    assert ended.status == 1
    assert "pip install py3langid" in ended.error
    assert not list(parallel.folder.glob("out*"))


# --- what is refused


def test_files_of_unequal_length_are_refused_with_the_line(parallel: Parallel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "CHUNK", 2)
    source, target = sentences(5, 1)
    ended = parallel.run(*parallel.words(parallel.write("mine", source, [*target, "mehr"])))
    assert ended.status == 1
    assert f"{parallel.folder}/mine.en ends after line 5, but {parallel.folder}/mine.de continues" in ended.error
    assert not parallel.output.exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--train", "nowhere/x"], "--train nowhere/x: x.en or x.de is missing"),
        (["--train", "nowhere/x"], "There is no folder nowhere."),
        (["--train", "{}/mine", "{}/mine"], "mine.en is given twice"),
        (["--train", "{}/empty"], "empty.de are both empty"),
        (["--train", "{}/bad"], "bad.en: the cleaning left out all training pairs (3 empty)"),
        (["--test", "{}/bad"], "bad.en:1: the line is empty"),
        (["--valid", "{}/bad"], "bad.en: the set has no pair"),
        (["--test", "newstest2018"], "--test newstest2018: "),
        (["--newstest", "{}", "--test", "newstest2018"], "newstest2018 (newstest2018-ende-src.en.sgm and"),
        (["--newstest", "sacrebleu"], "--newstest sacrebleu: neither --valid nor --test names a set"),
        (["--newstest", "sacrebleu", "--test", "newstest2099"], "no newstest2099 (wmt99) for en-de"),
        (["--pair", "de-de"], "'de-de' is not a pair"),
        (["--ratio", "0.5"], "argument --ratio: 0.5 is not allowed"),
        (["--longest-words", "-1"], "argument --longest-words: -1 is not allowed. Give at least 0."),
        (["--workers", "0"], "argument --workers: 0 is not allowed. Give at least 1."),
    ],
)
def test_what_is_wrong_is_said_and_nothing_is_left(parallel: Parallel, words: list[str], message: str) -> None:
    options = parallel.words(parallel.write("mine", *sentences(3, 1)))
    parallel.write("empty", [], [])
    parallel.write("bad", ["", " ", "\u00a0"], ["a", "b", "c"])
    ended = parallel.run(*options, *(word.format(parallel.folder) for word in words))
    assert ended.status != 0
    assert message in ended.error
    assert "Traceback" not in ended.error
    assert not parallel.output.exists()


def test_a_damaged_file_is_named(parallel: Parallel) -> None:
    parallel.write("mine", *sentences(50, 1))
    path = parallel.folder / "mine.en"
    (parallel.folder / "mine.en.gz").write_bytes(gzip.compress(path.read_bytes())[:-20])
    path.unlink()
    ended = parallel.run(*parallel.words(parallel.folder / "mine"))
    assert ended.status == 1
    assert "mine.en.gz:" in ended.error
    assert "the file is damaged or incomplete" in ended.error
