"""Test WMT's sets: sgm files of several documents, plain text, and sets that sacreBLEU downloads."""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path

import pytest
from corpora.errors import CorpusError
from parallel import sgm
from support_fetch import tar
from support_http import Site
from support_parallel import Parallel, lines, sentences, sgm_pair, sgm_text

pytest_plugins = ["support_fetch", "support_parallel"]
SOURCE = [["Fish & chips", 'He said: "no"'], ["<b> 5 > 3", "a &amp; b"], ["last"]]
REFERENCE = [["Fisch & Pommes", "Er sagte: „nein“"], ["<b> 5 > 3!", "a &amp; b!"], ["letzter"]]


def write(folder: Path, name: str, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


def test_entities_become_characters_once(tmp_path: Path) -> None:
    text = sgm_text(SOURCE)
    assert "Fish &amp; chips" in text
    assert "a &amp;amp; b" in text
    segments = sgm.read(write(tmp_path, "a.sgm", text))
    assert [segment.text for segment in segments] == [text for document in SOURCE for text in document]
    assert [segment.key for segment in segments][1:3] == [("paper.0", "2"), ("paper.1", "1")]


def test_what_is_not_quite_sgml_is_read(tmp_path: Path) -> None:
    """The text has bare ampersands, single quotes, capitals, a segment on two lines, a byte order mark and CR LF."""
    text = "\ufeff<DOC docid='x'>\r\n<seg id='1'> AT&T  and\r\n R&D </seg><SEG ID=\"2\">&#8364; 5</SEG>\r\n</DOC>"
    segments = sgm.read(write(tmp_path, "a.sgm", text))
    assert [(segment.line, segment.document, segment.id, segment.text) for segment in segments] == [
        (2, "x", "1", "AT&T and R&D"),
        (3, "x", "2", "\u20ac 5"),
    ]


def test_the_order_is_the_source_s_whatever_the_reference_s(tmp_path: Path) -> None:
    names = [f"paper.{number}" for number in range(len(SOURCE))]
    source = write(tmp_path, "a.sgm", sgm_text(SOURCE, names=names))
    reference = write(tmp_path, "b.sgm", sgm_text(REFERENCE[::-1], "refset", names[::-1]))
    assert [(first.text, second.text) for first, second in sgm.pairs(source, reference)] == [
        pair for first, second in zip(SOURCE, REFERENCE, strict=True) for pair in zip(first, second, strict=True)
    ]


def test_documents_named_by_language_are_put_together_by_their_order(tmp_path: Path) -> None:
    source = write(tmp_path, "a.sgm", sgm_text(SOURCE, names=("en/1", "en/2", "en/3")))
    reference = write(tmp_path, "b.sgm", sgm_text(REFERENCE, names=("de/1", "de/2", "de/3")))
    assert [second.text for _, second in sgm.pairs(source, reference)][2:] == ["<b> 5 > 3!", "a &amp; b!", "letzter"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (sgm_text(SOURCE).replace("chips</seg>", "chips"), "a.sgm:4: a segment has no </seg>"),
        (sgm_text(SOURCE)[:-26], "a.sgm:16: the file is truncated"),
        (sgm_text(SOURCE)[:-60], "a.sgm:14: the file is truncated"),
        (sgm_text(SOURCE)[:-12], "a.sgm:18: the file is truncated"),
        (sgm_text(SOURCE).replace('docid="paper.1"', ""), "a.sgm:8: the tag <doc"),
        (sgm_text(SOURCE).replace('id="2"', ""), "a.sgm:5: the tag <seg"),
        (sgm_text(SOURCE).replace("paper.1", "paper.0"), "a.sgm:10: segment 1 of document 'paper.0' occurs twice"),
        ("plain text\n", "a.sgm: the file has no <seg>"),
    ],
)
def test_a_damaged_sgm_file_is_refused_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(CorpusError, match=r"a\.sgm") as error:
        sgm.read(write(tmp_path, "a.sgm", text))
    assert message in str(error.value)


def test_a_segment_that_one_file_lacks_is_named(tmp_path: Path) -> None:
    source, reference = write(tmp_path, "a.sgm", sgm_text(SOURCE)), write(tmp_path, "b.sgm", sgm_text(REFERENCE[:2]))
    with pytest.raises(CorpusError, match=r"a\.sgm:16: segment 1 of document 'paper\.2' is not in .*b\.sgm"):
        sgm.pairs(source, reference)
    with pytest.raises(CorpusError, match=r"a\.sgm:16: segment 1 of document 'paper\.2' is not in .*b\.sgm"):
        sgm.pairs(reference, source)


def test_documents_that_overlap_in_part_are_not_put_together_by_their_order(tmp_path: Path) -> None:
    source = write(tmp_path, "a.sgm", sgm_text([["a"], ["b"], ["c"]], names="ABC"))
    reference = write(tmp_path, "b.sgm", sgm_text([["b"], ["c"], ["d"]], names="BCD"))
    with pytest.raises(CorpusError, match=r"a\.sgm:4: segment 1 of document 'A' is not in .*b\.sgm"):
        sgm.pairs(source, reference)


def test_text_that_is_not_utf_8_is_refused_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "a.sgm").write_bytes(sgm_text(SOURCE).encode().replace(b"Fish", b"F\xfcsh"))
    with pytest.raises(CorpusError, match=r"a\.sgm:4: the line is not UTF-8"):
        sgm.read(tmp_path / "a.sgm")


def test_utf_16_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.sgm").write_bytes(sgm_text(SOURCE).encode("utf-16"))
    with pytest.raises(CorpusError, match=r"a\.sgm:1: the text is UTF-16, but must be UTF-8"):
        sgm.read(tmp_path / "a.sgm")


# --- names


FORMS = {
    "sgm": "newstest2017-ende-src.en.sgm newstest2017-ende-ref.de.sgm",
    "2014": "dev/newstest2017-deen-src.en.sgm dev/newstest2017-deen-ref.de.sgm",
    "reverse": "test/newstest2017-deen-ref.en.sgm test/newstest2017-deen-src.de.sgm",
    "2013": "dev/newstest2017-src.en.sgm dev/newstest2017-src.de.sgm",
    "lines": "newstest2017.en newstest2017.de",
    "opus": "eng-deu/newstest2017.eng.gz eng-deu/newstest2017.deu.gz",
}


@pytest.mark.parametrize("form", FORMS)
def test_sets_are_found_under_the_names_they_are_published_by(parallel: Parallel, form: str) -> None:
    pairs = sentences(12, 7)
    texts = sgm_pair(pairs) if "sgm" in FORMS[form] else tuple("".join(f"{line}\n" for line in side) for side in pairs)
    for name, text in zip(FORMS[form].split(), texts, strict=True):
        path = parallel.folder / "sets" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(text.encode()) if name.endswith("gz") else text.encode())
    options = parallel.words(parallel.write("mine", *sentences(3, 1)))
    ended = parallel.run(*options, "--newstest", parallel.folder / "sets", "--test", "newstest2017")
    assert ended.status == 0, ended.error
    assert (lines(parallel.output / "test.en"), lines(parallel.output / "test.de")) == pairs


def test_sets_of_validation_lie_one_behind_the_other_and_lose_empty_pairs(parallel: Parallel) -> None:
    first = parallel.write("one", ["a", "", "c"], ["d", "e", "f"])
    options = parallel.words(parallel.write("mine", *sentences(3, 1)))
    assert parallel.run(*options, "--valid", first, parallel.write("two", ["x  y"], ["z"])).status == 0
    assert lines(parallel.output / "valid.en") == ["a", "c", "x y"]
    sources = [(source["split"], source["name"], source["pairs"]) for source in parallel.record()["sources"]]
    assert sources == [("train", "mine", 3), ("valid", "one", 2), ("valid", "two", 1), ("test", "test", 4)]


def test_what_the_recipe_refuses_in_a_set_does_not_come_to_it(parallel: Parallel) -> None:
    options = parallel.words(parallel.write("mine", ["a", "\u2060\u00ad", "c"], ["b", "x", "d"]))
    marked = parallel.write("marked", ["\ufeffa", "\u200b", "b\ufeff"], ["\ufeffc", "x", "d"])
    assert "marked.en:2: the line is empty" in parallel.run(*options, "--test", marked).error
    assert parallel.run(*options, "--valid", marked).status == 0
    assert lines(parallel.output / "valid.en") == ["a", "b"]
    assert lines(parallel.output / "valid.de") == ["c", "d"]
    assert lines(parallel.output / "train.en") == ["a", "c"]


def test_a_plain_set_of_unequal_length_is_refused(parallel: Parallel) -> None:
    options = parallel.words(parallel.write("mine", *sentences(3, 1)))
    ended = parallel.run(*options, "--test", parallel.write("odd", ["a", "b"], ["c"]))
    assert "odd.de ends after line 1" in ended.error


# --- sacreBLEU


@pytest.fixture
def newstest2017(tmp_path: Path, site: Site, monkeypatch: pytest.MonkeyPatch) -> tuple[list[str], list[str]]:
    """Let sacreBLEU download newstest2017 from the local server, and return its sentences."""
    from sacrebleu import dataset
    from sacrebleu.dataset import base, fake_sgml

    pairs = sentences(12, 7)
    names = ["test/newstest2017-ende-src.en.sgm", "test/newstest2017-ende-ref.de.sgm"]
    content = tar(*((name, text.encode()) for name, text in zip(names, sgm_pair(pairs), strict=True)))
    address = site.put("test.tgz", content)
    monkeypatch.setattr(base, "SACREBLEU_DIR", str(tmp_path / "sacrebleu"))
    md5 = [hashlib.md5(content).hexdigest()]
    local_set = fake_sgml.FakeSGMLDataset("wmt17", data=[address], md5=md5, langpairs={"en-de": names})
    monkeypatch.setitem(dataset.DATASETS, "wmt17", local_set)
    return pairs


def test_sacrebleu_fetches_the_sets(parallel: Parallel, newstest2017: tuple[list[str], list[str]], site: Site) -> None:
    options = [
        *parallel.words(parallel.write("mine", *sentences(3, 1))),
        "--newstest",
        "sacrebleu",
        "--test",
        "newstest2017",
    ]
    for output in ("out", "again"):
        assert parallel.run(*options, output=parallel.folder / output).status == 0
    assert (lines(parallel.output / "test.en"), lines(parallel.output / "test.de")) == newstest2017
    assert len(site.asked) == 1


@pytest.mark.usefixtures("newstest2017")
def test_a_dry_run_lists_the_files_and_fetches_nothing(parallel: Parallel, site: Site) -> None:
    options = parallel.words(parallel.write("mine", *sentences(3, 1)))
    ended = parallel.run(*options, "--newstest", "sacrebleu", "--test", "newstest2017", "--dry-run")
    assert ended.status == 0
    assert ended.out.splitlines()[0] == "\t".join(
        ["train", "mine", *(str(parallel.folder / f"mine.{code}") for code in ("en", "de"))]
    )
    assert "sacrebleu:wmt17/test/newstest2017-ende-ref.de.sgm" in ended.out
    assert not site.asked
    assert not parallel.output.exists()


@pytest.mark.usefixtures("newstest2017")
@pytest.mark.parametrize("fault", ["gone", "another"])
def test_what_sacrebleu_cannot_fetch_is_told(parallel: Parallel, site: Site, fault: str) -> None:
    site.put("test.tgz", b"another file", status=404 if fault == "gone" else 200)
    options = parallel.words(parallel.write("mine", *sentences(3, 1)))
    ended = parallel.run(*options, "--newstest", "sacrebleu", "--test", "newstest2017")
    assert ended.status == 1
    assert "--newstest sacrebleu: newstest2017 could not be fetched from http://127.0.0.1" in ended.error
    assert not parallel.output.exists()
