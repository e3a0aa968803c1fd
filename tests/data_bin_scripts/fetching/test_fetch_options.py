"""Test the downloader's options, and the list of sources that the project ships."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import fetch
import pytest
import support_http
from fetching import record, sources, unpack
from support_fetch import HASH, TEXT
from support_readonly import read_only
from support_scripts import SCRIPTS

pytest_plugins = ["support_fetch"]  # the fixtures `site` and `lab`


# --- options


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gz"])
@pytest.mark.parametrize("folder", ["text", "."])
def test_a_folder_of_ones_own_replaces_the_download(lab, site, tmp_path, packed, folder):
    lab.row("a.txt", site.put("a.txt", TEXT), HASH)
    own = tmp_path / "own"
    (own / folder).mkdir(parents=True)
    (own / folder / ("a.txt.gz" if packed else "a.txt")).write_bytes(gzip.compress(TEXT) if packed else TEXT)
    assert lab.run("text", "--from", own).status == 0
    assert (lab.output / "text/a.txt").read_bytes() == TEXT
    assert site.asked == []


def test_any_path_can_be_recorded(lab, tmp_path):
    lab.row("a.txt", "http://127.0.0.1/a.txt")
    own = tmp_path / 'my "own"\tfolder\n'
    own.mkdir()
    (own / "a.txt").write_bytes(TEXT)
    for _ in range(2):
        assert lab.run("text", "--from", own).status == 0


def test_a_folder_of_ones_own_is_checked_too(lab, site, tmp_path):
    lab.row("a.txt", site.put("a.txt", TEXT), HASH)
    lab.row("b.txt", site.put("b.txt", TEXT), "", 7)
    (tmp_path / "b.txt").write_bytes(b"seven or more")
    assert "the published size is 7" in lab.run("text/b.txt", "--from", tmp_path).error
    (tmp_path / "a.txt").write_bytes(b"other")
    ended = lab.run("text/a.txt", "--from", tmp_path)
    assert (ended.status, lab.files(), site.asked) == (1, set(), [])
    assert HASH in ended.error
    (tmp_path / "a.txt").unlink()
    assert "no such folder" in lab.run("text", "--from", tmp_path / "a.txt").error
    assert "neither text/a.txt nor a.txt" in lab.run("text/a.txt", "--from", tmp_path).error


def test_a_file_laid_in_place_by_hand_is_taken_and_recorded(lab, site):
    lab.row("a.txt", site.put("a.txt", TEXT))
    (lab.output / "text").mkdir(parents=True)
    (lab.output / "text/a.txt").write_bytes(TEXT)
    assert "the file exists already" in lab.run().out
    assert site.asked == []


@pytest.mark.parametrize(
    ("limit", "names"),
    [("1", {"a"}), ("2", {"a", "b"}), ("150B", {"a"}), ("160B", {"a", "c"}), ("1K", {"a", "b", "c"})],
)
@pytest.mark.parametrize("published", [True, False], ids=["published", "told-by-server"])
def test_a_limit_lets_whole_files_through(lab, site, limit, names, published):
    for name, size in (("a", 100), ("b", 90), ("c", 60)):
        lab.row(name, site.put(name, b"x" * size), "", size if published else None)
    for _ in range(2):
        assert lab.run("text", "--limit", limit).status == 0
        assert lab.files() == {f"text/{name}" for name in names}


def test_a_limit_that_lets_nothing_through_is_an_error(lab, site):
    lab.row("a", site.put("a", TEXT, length=False))
    assert "--limit: " in lab.run("text", "--limit", "1K").error
    assert lab.files() == set()


@pytest.mark.parametrize("limit", ["0", "-1", "many", "1.5G"])
def test_a_limit_that_is_no_number_is_refused(lab, limit):
    assert lab.run("text", f"--limit={limit}").status == 2


def test_the_dry_run_touches_nothing(lab, site):
    lab.row("a.tgz", site.put("a.tgz", TEXT))
    ended = lab.run("text", "--dry-run")
    assert ended.status == 0
    assert f"{lab.output}/text/a.tgz  <-  {site.address}/a.tgz" in ended.out
    assert site.asked == []
    assert not lab.output.exists()


def test_an_unknown_corpus_is_refused_with_the_nearest(lab, site):
    lab.row("a", site.put("a"), corpus="wikitext-103")
    ended = lab.run("wikitext103")
    assert ended.status == 1
    assert "did you mean wikitext-103?" in ended.error
    assert "did you mean a?" in lab.run("wikitext-103/A").error
    assert not lab.output.exists()


def test_some_files_of_a_corpus_can_be_named(lab, site):
    for name in ("a.en", "a.de", "b.en"):
        lab.row(name, site.put(name, b"1"))
    assert lab.run("text/*.en", "text/b.en").status == 0
    assert lab.files() == {"text/a.en", "text/b.en"}


@pytest.mark.parametrize("url", ["ftp://127.0.0.1/a", "file:///etc/hostname", "https://127.0.0.1/..%2f", "http://x/"])
def test_an_address_without_a_plain_name_or_of_another_kind_is_refused(lab, url):
    assert lab.run(url).status == 1


@pytest.mark.parametrize("name", ["../a", "a/b", ".a", "", "-a"])
def test_a_source_cannot_lie_elsewhere(lab, name):
    lab.row(name, "http://127.0.0.1/a")
    assert "sources.tsv:2: " in lab.run().error


@pytest.mark.parametrize("damage", [b"file\n", b"\tx", b"a\n", b"\xff"], ids=["header", "fields", "few", "bytes"])
def test_a_damaged_record_is_not_guessed_at(lab, site, damage):
    lab.row("a.txt", site.put("a.txt", TEXT))
    lab.run()
    path = lab.output / "fetched.tsv"
    path.write_bytes(damage if damage == b"file\n" else path.read_bytes().rstrip(b"\n") + damage * 9)
    ended = lab.run()
    assert ended.status == 1
    assert "fetched.tsv: the file is damaged" in ended.error


def test_a_second_run_in_one_folder_waits(lab, site):
    lab.row("a.txt", site.put("a.txt", TEXT))
    with record.only_one(lab.output):
        thread = threading.Thread(target=lab.run)
        thread.start()
        thread.join(timeout=0.3)
        assert thread.is_alive()
        assert site.asked == []
    thread.join()
    assert lab.files() == {"text/a.txt"}


def test_two_runs_at_once_download_once(lab, site):
    lab.row("a.txt", site.put("a.txt", TEXT))
    threads = [threading.Thread(target=lab.run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert lab.files() == {"text/a.txt"}
    assert len(site.asked) == 1


def test_two_runs_in_processes_of_their_own_download_once(lab, site, monkeypatch):
    second_waits = threading.Event()
    monkeypatch.setattr(support_http, "time", SimpleNamespace(sleep=second_waits.wait))
    lab.row("a.txt", site.put("a.txt", TEXT, stall=70_000, delay=20))
    command = [sys.executable, SCRIPTS / "fetch.py", "text", "--output", lab.output, "--sources", lab.list]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as first:
        while not site.asked and first.poll() is None:
            time.sleep(0.01)
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as second:
            assert second.stdout.readline() == f"waiting for another run that writes to {lab.output}\n"
            second_waits.set()
            for process in (first, second):
                assert f"1 of 1 files are in {lab.output}\n" in process.communicate(timeout=20)[0]
    assert (first.returncode, second.returncode, len(site.asked)) == (0, 0, 1)
    assert (lab.output / "text/a.txt").read_bytes() == TEXT
    assert lab.files() == {"text/a.txt"}


@pytest.mark.parametrize("page", [{}, {"cuts": [70_000]}, {"length": False}], ids=["whole", "cut", "no-length"])
def test_a_folder_that_disappears_during_a_download_is_named(lab, site, monkeypatch, page):
    folder = lab.output / "text"

    def remove(_: float) -> None:
        while not (folder / "a.txt.part").exists():
            time.sleep(0.01)
        shutil.rmtree(lab.output)

    monkeypatch.setattr(support_http, "time", SimpleNamespace(sleep=remove))
    lab.row("a.txt", site.put("a.txt", TEXT, stall=70_000, **page))
    lab.row("b.txt", site.put("b.txt", TEXT))
    ended = lab.run()
    assert ended.status == 1
    assert ended.error.startswith(f"error: {folder}: the folder has disappeared during the download. ")
    assert len(ended.error.splitlines()) == len(site.asked) == 1
    assert not lab.output.exists()
    monkeypatch.undo()
    assert lab.run().status == 0


def test_a_read_only_folder_is_named(lab, site):
    lab.row("a.txt", site.put("a.txt", TEXT))
    lab.output.mkdir(exist_ok=True)
    with read_only(lab.output):
        ended = lab.run()
    assert ended.status == 1
    assert ended.error.startswith("error: ")
    assert str(lab.output) in ended.error
    assert lab.run().status == 0


# --- the list that the project ships


def test_every_shipped_source_is_well_formed_and_listed_once(capsys):
    assert fetch.main(["--list", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert len({(row["corpus"], row["file"]) for row in rows}) == len(rows)
    assert all(row["urls"] and row["licence"] for row in rows)
    corpora = (
        "wmt18 wikitext-103 gpt2-bpe bert-vocab squad cmrc2018 glue xnli xquad mlqa tydiqa multi30k openwebtext c4"
    )
    assert set(f"{corpora} wikipedia imdb snli glove".split()) <= {row["corpus"] for row in rows}


def test_what_files_unpack_to_is_in_nobodys_way():
    known = sources.read(SCRIPTS / "sources.tsv")
    targets = [source.path.with_name(unpack.target_of(source.name) or source.name) for source in known]
    assert len(set(targets)) == len(known)


def test_shards_are_counted_out():
    known = [source for source in sources.read(SCRIPTS / "sources.tsv") if source.corpus == "c4"]
    assert known[1].name == "c4-train.00001-of-01024.json.gz"
    assert known[1].urls[0].endswith(known[1].name)
    assert len(known) == 1024 + 8


def test_it_runs_from_anywhere_and_explains_itself(tmp_path):
    script = str(SCRIPTS / "fetch.py")
    helped = subprocess.run(
        [sys.executable, script, "--help"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert "examples:" in helped.stdout
    failed = subprocess.run([sys.executable, script, "glu"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert failed.returncode == 1
    assert failed.stderr.startswith("error: unknown corpus 'glu'")
    assert "did you mean glue?" in failed.stderr
    assert failed.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
