"""Test reading documents: every format and compression, and files that are refused."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import tarfile
from pathlib import Path

import pytest
from backports import zstd
from corpora import documents as reading
from corpora import dump, files, lines, sentences
from corpora.errors import CorpusError

TEXT = "First one.\nIts second line.\n\n\nSecond: gr\u00fcn, \u6f22\u5b57.\n"
WIKI = '<doc id="1" url="u" title="A">\nA\n\nText of A.\n</doc>\n<doc id="2" url="u" title="B">\nB\n</doc>\n'
WIKITEXT = " \n = One = \n \n Text . \n = = Part = = \n More . \n = Two = \n Else . \n"
JSONL = json.dumps({"text": "One.\nTwo."}) + "\n\n" + json.dumps({"text": "Three.", "url": "u"}) + "\n"
BOOK = "# Title: Emma\n\n## Chapter I\n\nEmma Woodhouse, handsome.\n"
DUMP = """<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" version="0.11" xml:lang="de">
 <siteinfo><namespaces><namespace key="0" /><namespace key="6">Datei</namespace>
  <namespace key="14">Kategorie</namespace></namespaces></siteinfo>
 <page><title>Weg</title><ns>0</ns><id>1</id><redirect title="X" /><revision><text>#R</text></revision></page>
 <page><title>X</title><ns>0</ns><id>3</id><revision><id>4</id><text bytes="9" xml:space="preserve">{{Box|a={{b}}}}
[[Datei:B.jpg|thumb|Eine [[Gasse]] hier]]
Eine '''Stra\u00dfe''' ({{IPA|x}}) ist ein [[Weg|Verkehrsweg]].&lt;ref name="a"&gt;Quelle&lt;/ref&gt; Sie ist lang.
== Arten ==
* Allee &amp;amp; Ring
{| class="wikitable"
| Zelle
{|
| innen
|}
|}
[[Kategorie:Verkehr]] [[en:Road]]</text></revision></page>
 <page><title>Diskussion:X</title><ns>1</ns><id>5</id><revision><text>Nein.</text></revision></page>
</mediawiki>
"""
PACKED = {
    "": lambda content: content,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstd.compress,
}


def read(path: Path, kind: str = "auto") -> list[list[str]]:
    return [sentences.clean(document.text) for document in reading.documents(path, kind)]


def tarred(*members: tuple[str, bytes]) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as tar:
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
        for name, text in members:
            info = tarfile.TarInfo(name)
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text))
    return content.getvalue()


KINDS = {
    "text": (TEXT.encode(), [["First one.", "Its second line."], ["Second: gr\u00fcn, \u6f22\u5b57."]]),
    "wiki": (WIKI.encode(), [["A", "Text of A."], ["B"]]),
    "wikitext": (WIKITEXT.encode(), [["= One =", "Text .", "= = Part = =", "More ."], ["= Two =", "Else ."]]),
    "jsonl": (JSONL.encode(), [["One.", "Two."], ["Three."]]),
    "file": (BOOK.encode(), [["# Title: Emma", "## Chapter I", "Emma Woodhouse, handsome."]]),
    "dump": (
        DUMP.encode(),
        [["Eine Stra\u00dfe ist ein Verkehrsweg. Sie ist lang.", "Arten", "Allee & Ring"]],
    ),
    "tar": (tarred(("a.txt", b"One.\n\nTwo."), ("b.txt", b"Three.")), [["One.", "Two."], ["Three."]]),
}


@pytest.mark.parametrize("ending", PACKED)
@pytest.mark.parametrize("kind", KINDS)
def test_each_form_is_read_from_each_compression_and_found_out(tmp_path, kind, ending):
    content, expected = KINDS[kind]
    path = tmp_path / f"name{ending}"
    path.write_bytes(PACKED[ending](content))
    assert read(path) == expected
    assert read(path, kind) == expected


def test_a_named_kind_is_not_guessed(tmp_path):
    path = tmp_path / "a"
    path.write_text("# no book\n\nbut two documents\n")
    assert len(read(path)) == 1
    assert len(read(path, "text")) == 2
    with pytest.raises(CorpusError, match="the file is not a tar file"):
        read(path, "tar")


def test_files_of_many_frames_are_read_to_their_end(tmp_path):
    for ending, pack in PACKED.items():
        path = tmp_path / f"name{ending}"
        path.write_bytes(pack(b"one\n\n") + pack(b"two\n\n") + pack(b"three\n"))
        assert read(path) == [["one"], ["two"], ["three"]], ending


@pytest.mark.parametrize("ending", [ending for ending in PACKED if ending])
def test_a_cut_file_is_refused(tmp_path, ending):
    path = tmp_path / f"name{ending}"
    path.write_bytes(PACKED[ending]("\n".join(map(str, range(100_000))).encode())[:-40])
    with pytest.raises(
        CorpusError, match=rf"name{ending}:\d+: the file is damaged or incomplete .*Fetch the file again"
    ):
        read(path)


def test_text_is_composed_and_without_control_characters():
    assert sentences.clean(["e\u0301  a\tb\u200b\x07 ", " \x0c ", "\ufeffc\x85d"]) == ["\u00e9 a b", "c d"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"good\nb\xe4d\n", ":2: this is not UTF-8 text. Convert the file, for example with iconv"),
        (b"good\n\n" + bytes(range(256)), ":4: the file holds binary data, not text. Leave the file out"),
        ("good\n".encode("utf-16"), ":1: the text is UTF-16, but must be UTF-8. Convert it with: iconv"),
        (b"ok\n" + b"\x01\x02\x03\x04 a" * 9 + b"\n", ":2: the file holds binary data"),
        (b'{"text": "a"}\n{"txt": "b"}\n', ':2: each line must be JSON with a field "text"'),
        (b'{"text": "a"}\nnot\n', ":2: each line must be JSON"),
        (b'{"text": 5}\n', ":1: each line must be JSON"),
        (b'<doc id="1" a>\na\n<doc id="2" b>\n', ":3: the document in line 1 has no </doc>"),
        (b'<doc id="1" a>\na\n', ":1: the file ends within this document"),
        (b'<doc id="1" a>\na\n</doc>\nstray\n', ":4: the line is outside"),
        (DUMP.replace("<ns>0</ns>", "").encode(), ": page 1 .Weg. has no element <ns>, which every page"),
        (DUMP.encode()[:-60], ":17: the dump is damaged or incomplete"),
    ],
)
def test_bad_files_are_refused_with_file_and_line(tmp_path, content, message):
    path = tmp_path / "bad.txt"
    path.write_bytes(content)
    with pytest.raises(CorpusError, match="bad.txt" + message):
        read(path)


def test_a_bad_member_of_an_archive_is_named(tmp_path):
    path = tmp_path / "some.tar"
    path.write_bytes(tarred(("a.txt", b"fine"), ("b.txt", b"fine\nb\xe4d")))
    with pytest.raises(CorpusError, match=r"some\.tar/b\.txt:2: the file is not UTF-8"):
        read(path)
    path.write_bytes(tarred(("a.txt", "fine".encode("utf-16"))))
    with pytest.raises(CorpusError, match=r"some\.tar/a\.txt:1: the text is UTF-16"):
        read(path)
    path.write_bytes(tarred(("a.txt", b"x" * 5000))[:3000])
    with pytest.raises(CorpusError, match="damaged or incomplete"):
        read(path)


def test_a_giant_line_is_refused_before_it_fills_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "LONGEST", 1000)
    path = tmp_path / "giant.txt"
    path.write_bytes(b"fine\n" + b"x " * 600 + b"\n")
    with pytest.raises(CorpusError, match=r"giant.txt:2: this line has more than 1,000 characters. Break it"):
        read(path)


@pytest.mark.parametrize(("kind", "begin"), [("text", ""), ("file", ""), ("wiki", '<doc id="1" x>\n')])
def test_a_giant_document_is_refused(tmp_path, monkeypatch, kind, begin):
    monkeypatch.setattr(reading, "LONGEST", 1000)
    path = tmp_path / "giant.txt"
    path.write_text(begin + "word word\n" * 200)
    with pytest.raises(CorpusError, match=r"giant.txt:1: this document has more than 1,000 characters"):
        read(path, kind)


def test_a_page_that_does_not_parse_is_no_document():
    assert dump.plain("{{" * 5000).strip("{") == ""
    assert dump.plain("a [[b]] c") == "a b c"


class TestFiles:
    def paths(self, *words: object, **more: object) -> list[str]:
        return [
            f"{source.language} {source.documents} {source.path.name}"
            for source in files.listed([*map(str, words)], [], "en", "auto", **{"languages": False, **more})
        ]

    def test_folders_are_read_below_and_in_order(self, tmp_path):
        for name in ("b/z", "b/a", "a", ".hidden", ".git/x"):
            (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "in" / name).write_text("x")
        (tmp_path / "link").symlink_to(tmp_path / "in" / "b")
        assert self.paths(tmp_path / "in", tmp_path / "link") == [f"en auto {name}" for name in "aazaz"]
        assert self.paths(f"file:{tmp_path}/in/a") == ["en file a"]
        assert self.paths(tmp_path / "in" / "b" / "[az]*") == ["en auto a", "en auto z"]

    def test_what_was_unpacked_counts_once(self, tmp_path, capsys):
        for name in ("x.txt", "x.txt.gz", "y.gz", "c.tar.xz", "c/d"):
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text("x")
        assert self.paths(tmp_path) == ["en auto d", "en auto x.txt", "en auto y.gz"]
        assert "x.txt.gz is skipped" in capsys.readouterr().out

    def test_what_is_given_with_what_was_unpacked_counts_once(self, tmp_path, capsys):
        for name in ("x.txt", "x.txt.gz", "c.tar.xz", "c/d"):
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text("x")
        assert self.paths(tmp_path / "x.txt.gz", tmp_path / "x.txt") == ["en auto x.txt"]
        assert capsys.readouterr().out.count("x.txt.gz is skipped") == 1
        assert self.paths(f"text:{tmp_path}/x.txt.gz", f"{tmp_path}/x.t*") == ["en auto x.txt"]
        assert self.paths(tmp_path / "c", tmp_path / "c.tar.xz") == ["en auto d"]
        # a compressed file without its plain file is read
        assert self.paths(tmp_path / "x.txt.gz", tmp_path / "c.tar.xz") == ["en auto x.txt.gz", "en auto c.tar.xz"]
        valid = files.listed([str(tmp_path / "x.txt")], [str(tmp_path / "x.txt.gz")], "en", "auto", languages=False)
        assert [source.path.name for source in valid] == ["x.txt", "x.txt.gz"]

    def test_languages_are_folders(self, tmp_path):
        for name in ("de/a", "en/deep/b"):
            (tmp_path / name).parent.mkdir(parents=True)
            (tmp_path / name).write_text("x")
        assert self.paths(tmp_path, languages=True) == ["de auto a", "en auto b"]
        (tmp_path / "stray").write_text("x")
        with pytest.raises(CorpusError, match="stray is not a folder"):
            self.paths(tmp_path, languages=True)

    def test_what_cannot_be_read_is_refused(self, tmp_path):
        (tmp_path / "empty").mkdir()
        (tmp_path / "loop").mkdir()
        (tmp_path / "loop" / "again").symlink_to(tmp_path / "loop")
        (tmp_path / "cut").mkdir()
        (tmp_path / "cut" / "a.gz.part").write_text("x")
        for name, message in {
            "none": "no such file or folder",
            "no*": "no file matches this pattern",
            "empty": "the folder has no files",
            "loop": "is a link to a folder above it",
            "cut": "is an unfinished download",
        }.items():
            with pytest.raises(CorpusError, match=message):
                self.paths(tmp_path / name)
