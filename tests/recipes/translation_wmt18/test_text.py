"""Test the text of the translation recipe: bad lines are refused with file and line, and subwords are fairseq's own."""

from __future__ import annotations

import gzip
import tomllib
from argparse import Namespace
from pathlib import Path
from types import ModuleType

import pytest
from support_recipes import called
from support_subwords import KINDS

from recipes.lib.invented import sentences
from recipes.lib.lines import read
from recipes.lib.translation import parallel, subwords

LINES = {"en": [f"A dog runs {n}." for n in range(20)], "de": [f"Ein Hund läuft {n}." for n in range(20)]}
BAD = tomllib.loads(Path(__file__).with_name("bad_lines.toml").read_text("utf-8"))["line"]
HARD = ["The dog's owner didn't see 3.5 cats & \"two\" birds.", "A <s> tag and &amp; an entity | a pipe @@ signs."]


def message_of(program: ModuleType, *words: object) -> str | None:
    """Run a program, and return the problems that it reports."""
    try:
        called(program, *words)
    except SystemExit as error:
        return str(error.code)
    return None


# --- the raw text


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    corpus = tmp_path / "my corpus"
    corpus.mkdir()
    for name in ("train", "val", "test"):
        for language, lines in LINES.items():
            (corpus / f"{name}.{language}").write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return corpus


def check(folder: Path, *options: object) -> str | None:
    words = ["--folder", folder, "--output", folder.parent / "raw", "--languages", "en", "de", *options]
    message = message_of(parallel, *words)
    assert message is None or not list(folder.parent.glob("raw*"))  # nothing that looks finished is left
    return message


def edit(path: Path, number: int, line: bytes) -> None:
    lines = path.read_bytes().split(b"\n")
    lines[number - 1] = line
    path.write_bytes(b"\n".join(lines))


def written(folder: Path, name: str) -> list[str]:
    return list(read(folder.parent / "raw" / name))


def test_sound_text_is_copied_byte_for_byte_plain_or_gzipped(folder: Path) -> None:
    (folder / "train.en.gz").write_bytes(gzip.compress((folder / "train.en").read_bytes()))
    (folder / "train.en").unlink()
    (folder / "test.de").write_bytes((folder / "test.de").read_bytes().rstrip(b"\n"))
    edit(folder / "val.de", 3, "Ein\u2028Hund\x85läuft.".encode())  # str.splitlines splits at these
    assert check(folder) is None
    assert written(folder, "train.en") == LINES["en"]
    assert written(folder, "test.de") == LINES["de"]
    assert (folder.parent / "raw" / "valid.de").read_bytes() == (folder / "val.de").read_bytes()


@pytest.mark.parametrize("case", BAD, ids=lambda case: case["message"])
def test_a_bad_line_is_refused_with_file_line_and_cure(case: dict[str, str], folder: Path) -> None:
    line = case["text"].encode(case.get("encoding", "utf-8"))
    for number in range(7, 17):
        edit(folder / "train.de", number, line)
    error = str(check(folder))
    assert f"error: {folder / 'train.de'}:7: {case['message']}" in error
    assert error.count("train.de:") == parallel.SHOWN
    assert "train: number of bad pairs: 10. Correct the files, or leave bad pairs out with --bad-lines drop" in error


@pytest.mark.parametrize(("encoding", "problem"), [("utf-16", "UTF-16"), ("utf-8-sig", "byte order mark")])
def test_a_file_in_another_encoding_is_refused(encoding: str, problem: str, folder: Path) -> None:
    (folder / "val.en").write_text("".join(line + "\n" for line in LINES["en"]), encoding=encoding)
    error = str(check(folder))
    assert problem in error.splitlines()[0]
    assert f"{folder / 'val.en'}:1: " in error


def test_bad_pairs_of_training_are_left_out_if_asked_and_those_of_a_test_set_never(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edit(folder / "train.en", 2, b"")
    edit(folder / "train.de", 4, b"\xff")
    assert check(folder, "--bad-lines", "drop") is None
    assert written(folder, "train.de") == [line for n, line in enumerate(LINES["de"], start=1) if n not in (2, 4)]
    shown = capsys.readouterr().out
    assert f"left out: {folder / 'train.de'}:4: the line is not UTF-8" in shown
    assert "train: 18 pairs are written, 2 bad pairs and 0 long pairs are left out" in shown
    edit(folder / "test.en", 2, b"")
    assert "test.en:2: the line is empty" in str(
        message_of(
            parallel, "--folder", folder, "--output", folder / "out", "--languages", "en", "de", "--bad-lines", "drop"
        )
    )


def test_files_that_are_cut_or_of_unequal_length_are_named(folder: Path) -> None:
    with (folder / "train.de").open("a", encoding="utf-8") as file:
        file.write("Noch einer.\n")
    short = f"{folder / 'train.en'}: the file ends after line 20, but {folder / 'train.de'} continues"
    assert short in str(check(folder, "--limit", 3))
    (folder / "train.en.gz").write_bytes(gzip.compress((folder / "train.en").read_bytes())[:-6])
    (folder / "train.en").unlink()
    assert "the gzip file is damaged" in str(check(folder))


def test_limits_apply_to_training_and_validation_only(folder: Path) -> None:
    edit(folder / "train.en", 3, b"A dog that barks runs.")
    edit(folder / "test.en", 3, b"A dog that barks runs.")
    assert check(folder, "--limit", 5, "--longest", 4) is None
    sizes = {path.name: len(list(read(path))) for path in (folder.parent / "raw").iterdir()}
    assert sizes == {f"{split}.{code}": n for split, n in (("train", 4), ("valid", 20), ("test", 20)) for code in LINES}


# --- subwords


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("text")
    for split, pairs in sentences.generate({"train": 300, "valid": 10, "test": 10}, seed=1).items():
        for side, language in enumerate(("en", "de")):
            lines = [*HARD, *(pair[side] for pair in pairs)]
            (folder / f"{split}.{language}").write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return folder


def learn(raw: Path, output: Path, *options: object) -> str | None:
    pytest.importorskip("fairseq")
    words = ["--raw", raw, "--output", output, "--languages", "en", "de", "--vocabulary", 120, *options]
    return message_of(subwords, *words)


@pytest.mark.parametrize("tokenizer", KINDS)
def test_fairseq_decodes_the_subwords_and_any_number_of_processes_gives_the_same(
    tokenizer: str, raw: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert learn(raw, tmp_path / "one", "--tokenizer", tokenizer) is None
    from fairseq.data.encoders import build_bpe, build_tokenizer

    bpe = tokenizer.removesuffix("-bpe")
    model = str(tmp_path / "one" / ("codes" if bpe == "fastbpe" else "model.model"))
    decode = build_bpe(Namespace(bpe=bpe, sentencepiece_model=model, bpe_codes=model)).decode
    moses = build_tokenizer(Namespace(tokenizer="moses", source_lang="en", target_lang="en"))
    for line, text in zip(read(tmp_path / "one" / "test.en"), HARD[: 1 if bpe == "fastbpe" else 2], strict=False):
        assert (moses.decode(decode(line)) if bpe == "fastbpe" else decode(line)) == text
        assert not {"<s>", "</s>", "<pad>", "<unk>"} & set(line.split())
    pieces = {
        piece for code in ("en", "de") for line in read(tmp_path / "one" / f"train.{code}") for piece in line.split()
    }
    assert 60 < len({piece.removesuffix("@@") for piece in pieces}) <= 120
    monkeypatch.setattr(subwords, "CHUNK", 7)
    assert learn(raw, tmp_path / "two", "--tokenizer", tokenizer, "--workers", 2) is None
    for path in (tmp_path / "one").iterdir():
        assert (tmp_path / "two" / path.name).read_bytes() == path.read_bytes()


def test_long_sentences_are_bad_unless_training_shall_be_short(raw: Path, tmp_path: Path) -> None:
    error = str(learn(raw, tmp_path / "out", "--longest", 40, "--bad-lines", "drop"))
    assert error.startswith(f"error: {raw}/test.en:1: the sentence has ")
    assert not list(tmp_path.iterdir())
    assert learn(raw, tmp_path / "out", "--longest-training", 30) is None
    assert max(len(line.split()) for line in read(tmp_path / "out" / "train.en")) <= 30
    assert len(list(read(tmp_path / "out" / "test.en"))) == 12


@pytest.mark.parametrize(("size", "advice"), [(9999, "the text is too short"), (5, "Give at least --vocabulary")])
def test_a_vocabulary_that_does_not_fit_is_one_sentence(size: int, advice: str, raw: Path, tmp_path: Path) -> None:
    error = str(learn(raw, tmp_path / "out", "--vocabulary", size))
    assert error.startswith(f"error: {raw}/train.*: --vocabulary {size}: ")
    assert advice in error


def test_without_fastbpe_one_line_says_what_to_do(raw: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subwords, "find_spec", lambda name: None)
    error = str(learn(raw, tmp_path / "out", "--tokenizer", "fastbpe"))
    assert error.startswith("error: --tokenizer fastbpe needs the package fastBPE")
