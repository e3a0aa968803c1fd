"""Check that the subwords for training are those of fairseq's own tokenizers, which also decode them."""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import support_warm
from support_subwords import KINDS

from recipes.lib.invented import sentences
from recipes.lib.lines import read
from recipes.lib.translation import subwords

pytest.importorskip("fairseq")
ROOT = Path(__file__).resolve().parents[3]
SENTENCES = [
    "The dog's owner didn't see 3.5 cats & \"two\" birds.",
    "Die Katze (schwarz-weiß) läuft über die Straße, z.B. heute!",
    "A <s> tag and &amp; an entity | a pipe @@ signs.",
]


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("text") / "raw"
    folder.mkdir()
    for split, pairs in sentences.generate({"train": 300, "valid": 10, "test": 10}, seed=1).items():
        for side, language in enumerate(("en", "de")):
            lines = [*SENTENCES, *(pair[side] for pair in pairs)]
            (folder / f"{split}.{language}").write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return folder


def run(raw: Path, output: Path, kind: str, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "recipes.lib.translation.subwords", "--raw", str(raw), "--output", str(output)]
    command += ["--languages", "en", "de", "--kind", kind, "--vocabulary", "120", *options]
    return support_warm.run(command, cwd=ROOT)


@pytest.fixture(scope="module", params=KINDS)
def learned(request: pytest.FixtureRequest, raw: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    output = tmp_path_factory.mktemp(request.param) / "sub words"
    process = run(raw, output, request.param)
    assert process.returncode == 0, process.stderr
    return request.param, output


def test_without_fastbpe_one_line_says_what_to_do(raw: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subwords, "find_spec", lambda name: None)
    words = f"subwords --raw {raw} --output {tmp_path / 'out'} --languages en de --kind fastbpe --vocabulary 120"
    monkeypatch.setattr(sys, "argv", words.split())
    with pytest.raises(SystemExit, match=r"^error: --subwords fastbpe needs the package fastBPE.*pip install fastBPE"):
        subwords.main()
    assert not (tmp_path / "out").exists()


def decode(kind: str, folder: Path, language: str, line: str) -> str:
    """Decode pieces as fairseq-generate does for its D- lines."""
    from fairseq.data.encoders import build_bpe, build_tokenizer

    if kind == "sentencepiece":
        model = str(folder / "model.model")
        return build_bpe(argparse.Namespace(bpe="sentencepiece", sentencepiece_model=model)).decode(line)
    words = build_bpe(argparse.Namespace(bpe="fastbpe", bpe_codes=str(folder / "codes"))).decode(line)
    return build_tokenizer(argparse.Namespace(tokenizer="moses", source_lang=language, target_lang=language)).decode(
        words
    )


def test_decoding_returns_the_text(learned: tuple[str, Path]) -> None:
    kind, folder = learned
    for language, number in (("en", 0), ("de", 1)):
        line = list(read(folder / f"test.{language}"))[number]
        assert len(line.split()) > len(SENTENCES[number].split())
        assert decode(kind, folder, language, line) == SENTENCES[number]


@pytest.mark.parametrize(
    ("size", "message"),
    [("9999", r"the text is too short. Give at most --vocabulary \d+\."), ("5", "Give at least --vocabulary")],
)
def test_a_vocabulary_that_does_not_fit_the_text_is_one_sentence(
    size: str, message: str, raw: Path, tmp_path: Path
) -> None:
    process = run(raw, tmp_path / "out", "sentencepiece", "--vocabulary", size)
    assert process.returncode == 1
    assert re.search(rf"train\.\*: --vocabulary {size}: .*{message}", process.stderr)
    assert "INTERNAL" not in process.stderr
    assert not (tmp_path / "out").exists()


def test_no_piece_is_a_symbol_of_the_dictionary(learned: tuple[str, Path]) -> None:
    _, folder = learned
    for split in ("train", "test"):
        assert not {"<s>", "</s>", "<pad>", "<unk>"} & {
            word for line in read(folder / f"{split}.en") for word in line.split()
        }


def test_the_vocabulary_is_as_large_as_asked(learned: tuple[str, Path]) -> None:
    _, folder = learned
    types = {word for language in ("en", "de") for line in read(folder / f"train.{language}") for word in line.split()}
    plain = {word.removesuffix("@@") for word in types}  # the dictionary has the pieces of fastBPE with and without @@
    assert 60 < len(plain) <= 120


def test_several_processes_write_the_same_files_as_a_single_process(
    learned: tuple[str, Path], raw: Path, tmp_path: Path, monkeypatch
) -> None:
    kind, folder = learned
    monkeypatch.setattr(subwords, "CHUNK", 7)
    encoder = subwords.KINDS[kind](folder, "unigram").encoder("de")
    assert list(subwords.encoded(encoder, raw / "train.de", workers=2)) == list(read(folder / "train.de"))


def test_a_small_file_needs_no_further_process(raw: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(subwords, "ProcessPoolExecutor")
    shouted = [line.upper() for line in read(raw / "train.de")]
    assert list(subwords.encoded(str.upper, raw / "train.de", workers=2)) == shouted
    monkeypatch.setattr(subwords, "CHUNK", 7)
    assert list(subwords.encoded(str.upper, raw / "train.de", workers=1)) == shouted
    with pytest.raises(NameError, match="ProcessPoolExecutor"):
        list(subwords.encoded(str.upper, raw / "train.de", workers=2))


def test_learning_again_gives_the_same(learned: tuple[str, Path], raw: Path, tmp_path: Path) -> None:
    kind, folder = learned
    assert run(raw, tmp_path / "again", kind, "--workers", "2").returncode == 0
    for path in folder.iterdir():
        assert (tmp_path / "again" / path.name).read_bytes() == path.read_bytes()


def test_an_over_long_sentence_is_refused_or_left_out(raw: Path, tmp_path: Path) -> None:
    process = run(raw, tmp_path / "out", "sentencepiece", "--longest", "40")
    assert process.returncode == 1
    assert (
        f"error: {raw}/test.en:1: the sentence has " in process.stderr
    )  # reported before the long work on the training set
    assert "number of bad pairs" in process.stderr.splitlines()[-1]
    assert not list(tmp_path.iterdir())
    dropped = run(raw, tmp_path / "out", "sentencepiece", "--longest", "40", "--bad-lines", "drop")
    assert dropped.returncode == 1  # a test set is never shortened


def test_over_long_pairs_are_left_out_of_both_sides(raw: Path, tmp_path: Path) -> None:
    short = tmp_path / "short"
    short.mkdir()
    for path in raw.iterdir():
        lines = list(read(path))[3:]
        if path.name == "train.en":
            lines[4], lines[9] = "dog " * 100, "\u200b"  # nothing remains of the second line
        (short / path.name).write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    process = run(short, tmp_path / "out", "sentencepiece", "--longest", "90", "--bad-lines", "drop")
    assert process.returncode == 0, process.stderr
    assert json.loads((tmp_path / "out" / "counts.json").read_text())["train"] == {"pairs": 298, "left out": 2}
    assert "en and de: 120 pieces, " in process.stdout
    assert {len(list(read(tmp_path / "out" / f"train.{language}"))) for language in ("en", "de")} == {298}


def test_pieces_of_one_character_are_counted_and_rare_ones_can_be_left_out(raw: Path, tmp_path: Path) -> None:
    asked = argparse.Namespace(raw=raw, languages=["en", "de"], kind="sentencepiece", model_type="unigram")
    asked.separate, asked.vocabulary = False, 120
    single = []
    for part in (1.0, 0.98):
        asked.character_coverage = part
        _, counts = subwords.learn(asked, tmp_path)
        assert counts["en+de"]["all"] == 120
        single.append(counts["en+de"]["of one character"])
    characters = {one for code in ("en", "de") for line in read(raw / f"train.{code}") for one in line}
    assert single[0] == len(characters - {*"<>"})  # only in <s>, which is not text
    assert single[1] < single[0]


def test_a_vocabulary_that_the_text_cannot_fill_is_refused(raw: Path, tmp_path: Path) -> None:
    process = run(raw, tmp_path / "out", "sentencepiece", "--vocabulary", "100000")
    assert process.returncode == 1
    assert "--vocabulary 100000" in process.stderr.splitlines()[-1]
