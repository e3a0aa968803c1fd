"""Test prepare_wmt18.sh, which downloads the published archives from a local server and prepares the recipe's folder.

The tests include bad lines, bad files, killed runs, and several processes.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path

import prepare_parallel
import pytest
from fetching import sources
from parallel import parts
from support_fetch import tar
from support_http import Site
from support_parallel import Lines, Parallel, lines, sentences, sgm_pair
from support_scripts import hashes, script
from support_subwords import NEEDS_FASTBPE

from recipes.lib.translation import parallel as recipe

pytest_plugins = ["support_fetch", "support_parallel"]
PAIRS = (("en", "de"), ("en", "cs"))
YEARS = range(2013, 2018)
FAULTY = (["", "A dog " * 200, "Same again."], ["leer", "Ein Hund " * 200, "Wieder gleich."])


def corpus(number: int, pair: tuple[str, str]) -> Lines:
    """Return forty pairs: 37 good ones, bad ones, and a duplicate of an earlier corpus."""
    one, other = sentences(37, number + 10 * len(pair[1]), pair)
    return [*one, *FAULTY[0]], [*other, *FAULTY[1]]


def text(side: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in side).encode()


def published() -> dict[str, bytes]:
    """Write the archives, with the file names that statmt.org has."""
    trees = {
        "training-parallel-europarl-v7": "training/europarl-v7.{}-en",
        "training-parallel-commoncrawl": "commoncrawl.{}-en",
        "training-parallel-nc-v13": "training-parallel-nc-v13/news-commentary-v13.{}-en",
    }
    found = {}
    for number, (archive, name) in enumerate(trees.items()):
        inside = [
            (f"{name.format(pair[1])}.{code}", text(side))
            for pair in PAIRS
            for code, side in zip(pair, corpus(number, pair), strict=True)
        ]
        more = [("commoncrawl.de-en.annotation", b"http://example.org\n")] if "crawl" in name else []
        found[f"{archive}.tgz"] = tar(*inside, *more)
    dev = [(f"dev/{name}", content) for year in YEARS for name, content in newstest(year)]
    found["dev.tgz"] = tar(*dev)
    found["test.tgz"] = tar(*((f"test/{name}", content) for name, content in newstest(2018)))
    return found


def newstest(year: int) -> list[tuple[str, bytes]]:
    """Write the newstest files with the names that WMT used in each year."""
    found = []
    for pair in PAIRS:
        a, b = pair
        middle, ref = {2013: ("", "src"), 2014: (f"-{b}{a}", "ref")}.get(year, (f"-{a}{b}", "ref"))
        names = f"newstest{year}{middle}-src.{a}.sgm", f"newstest{year}{middle}-{ref}.{b}.sgm"
        found += zip(names, (one.encode() for one in sgm_pair(sentences(6, year, pair))), strict=True)
    return found


class Statmt:
    """Serve the published files, and write a list of them for fetch.py."""

    def __init__(self, site: Site, folder: Path) -> None:
        self.site, self.list, self.folder = site, folder / "sources.tsv", folder
        self.files = published()
        self.write()

    def write(self, **hashes_: str) -> None:
        rows = ["\t".join(sources.COLUMNS)]
        for name, content in self.files.items():
            known = hashes_.get(name.split(".")[0].replace("-", "_"), hashlib.sha256(content).hexdigest())
            rows.append("\t".join(["wmt18", name, self.site.put(name, content), known, "", "see source", ""]))
        self.list.write_text("\n".join(rows) + "\n")

    def run(self, *words: object, pair: str = "en-de") -> subprocess.CompletedProcess[str]:
        return script("wmt18", "--pair", pair, "--sources", self.list, *words, folder=self.folder)


@pytest.fixture
def statmt(site: Site, tmp_path: Path) -> Statmt:
    return Statmt(site, tmp_path)


def test_from_the_archives_to_the_folder_over_a_line_that_is_cut(statmt: Statmt) -> None:
    page = statmt.site.pages["/training-parallel-europarl-v7.tgz"]
    page.cuts.append(len(page.content) // 2)
    told = statmt.run()
    assert told.returncode == 0, told.stderr
    assert "training-parallel-europarl-v7.tgz: the connection was lost" in told.stderr
    assert f"bytes={len(page.content) // 2}-" in statmt.site.ranges()  # the download continued from there
    output = statmt.folder / "data" / "wmt18.en-de"
    wanted = [line for number in range(3) for line in corpus(number, PAIRS[0])[0][:37]]
    assert lines(output / "train.en") == [*wanted[:37], "Same again.", *wanted[37:]]
    assert lines(output / "valid.de") == [line for year in YEARS for line in sentences(6, year, PAIRS[0])[1]]
    assert (lines(output / "test.en"), lines(output / "test.de")) == sentences(6, 2018, PAIRS[0])
    record = json.loads((output / "corpus.json").read_text())
    assert record["pair"] == "en-de"
    assert record["counts"]["train"] | {"words": None} == {
        "pairs": 3 * 37 + 1,
        "read": 120,
        "left out": {"encoding": 0, "empty": 3, "long": 3, "ratio": 0, "duplicate": 2},
        "words": None,
    }
    assert [one["name"] for one in record["sources"]] == [
        *("europarl-v7.de-en", "commoncrawl.de-en", "news-commentary-v13.de-en"),
        *(f"newstest{year}" for year in range(2013, 2019)),
    ]
    again = statmt.run("--workers", 2)
    assert again.stdout.splitlines()[-2:] == [f"{output} is already complete", "data/wmt18.en-de is complete"]
    assert len(statmt.site.asked) == 6  # five files, one of them in two parts


def test_the_recipe_takes_the_folder(parallel: Parallel, monkeypatch: pytest.MonkeyPatch) -> None:
    assert parallel.run(*parallel.words(parallel.write("mine", *sentences(30, 1)))).status == 0
    words = ["parallel", "--folder", parallel.output, "--output", parallel.folder / "raw"]
    words += ["--source-lang", "de", "--target-lang", "en", *(w for s in recipe.SPLITS for w in (f"--{s}-set", s))]
    monkeypatch.setattr(sys, "argv", [*map(str, words)])
    recipe.main()
    counts = json.loads((parallel.folder / "raw" / recipe.COUNTS).read_text())
    assert {split: one["pairs"] for split, one in counts.items()} == {"train": 30, "valid": 4, "test": 4}
    assert (parallel.folder / "raw" / "train.de").read_bytes() == (parallel.output / "train.de").read_bytes()


def test_a_corpus_of_the_other_pair_and_a_part_of_it(statmt: Statmt) -> None:
    told = statmt.run("--corpus", "news-commentary-v13", "--limit", 5, "--output", "trial", pair="en-cs")
    assert told.returncode == 0, told.stderr
    assert lines(statmt.folder / "trial" / "train.cs") == corpus(2, PAIRS[1])[1][:5]
    assert len(lines(statmt.folder / "trial" / "valid.cs")) == 30
    assert [path for path, _ in statmt.site.asked] == ["/training-parallel-nc-v13.tgz", "/dev.tgz", "/test.tgz"]


@NEEDS_FASTBPE
@pytest.mark.long
def test_from_the_archives_to_what_fairseq_reads(statmt: Statmt) -> None:
    told = statmt.run("--data-bin=bin", "--subwords=fastbpe", "--separate", "--vocabulary", 60)
    assert told.returncode == 0, told.stderr
    record = json.loads((statmt.folder / "bin" / "corpus.json").read_text())
    pairs = {split: record["counts"][split]["pairs"] for split in ("train", "valid", "test")}
    assert pairs == {"train": 3 * 37 + 1, "valid": 30, "test": 6}
    assert record["identity"]["options"]["separate"]
    assert (statmt.folder / "bin" / "codes.de").is_file()
    assert all((statmt.folder / "bin" / f"{split}.en-de.de.bin").stat().st_size for split in pairs)


def left(statmt: Statmt) -> list[str]:
    """Return the files that a refused run left behind and that look finished."""
    raw = statmt.folder / "data" / "raw"
    found = [path for path in statmt.folder.rglob("*") if path.is_file() and path.parent not in (raw, statmt.folder)]
    return sorted(path.relative_to(statmt.folder).as_posix() for path in found)


def test_a_corrupt_file_is_refused_and_nothing_is_left_of_it(statmt: Statmt) -> None:
    statmt.write(training_parallel_nc_v13=hashlib.sha256(b"as it was published").hexdigest())
    told = statmt.run("--corpus", "news-commentary-v13")
    assert told.returncode == 1
    assert "training-parallel-nc-v13.tgz: " in told.stderr
    assert "the content is wrong: its sha256" in told.stderr
    assert not any("nc-v13" in name for name in left(statmt))
    assert not (statmt.folder / "data" / "wmt18.en-de").exists()


def test_what_is_wrong_is_said_before_anything_is_fetched(statmt: Statmt) -> None:
    for words, message in (
        (["--newstest", "nowhere"], "--newstest nowhere: newstest2013 ("),
        (["--language-id"], "--language-id: the package py3langid is not installed"),
        (["--val", "newstest2013"], "unrecognized arguments: --val"),
        (["--ratio=0.5"], "argument --ratio: 0.5 is not allowed"),
    ):
        if words != ["--language-id"] or find_spec("py3langid") is None:
            assert message in statmt.run(*words).stderr
    assert not statmt.site.asked


def test_an_archive_that_leads_out_of_its_folder_is_refused(statmt: Statmt) -> None:
    evil = tar(("training-parallel-nc-v13/news-commentary-v13.de-en.de", b"x\n"), ("../../../evil", b"y\n"))
    statmt.files["training-parallel-nc-v13.tgz"] = evil
    statmt.write()
    told = statmt.run("--corpus", "news-commentary-v13")
    assert told.returncode == 1
    assert "'../../../evil' leads out of the folder of the archive" in told.stderr
    assert [name for name in left(statmt) if "nc-v13" in name] == ["data/raw/wmt18/training-parallel-nc-v13.tgz"]
    assert not [*statmt.folder.rglob("evil"), *statmt.folder.parent.glob("evil")]
    assert not (statmt.folder / "data" / "wmt18.en-de").exists()


# --- the same bytes


@pytest.fixture
def asked(parallel: Parallel, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Return the parts of three corpora, eighteen in total."""
    monkeypatch.setattr(parts, "CHUNK", 7)
    return parallel.words(*(parallel.write(f"c{number}", *corpus(number, PAIRS[0])) for number in range(3)))


def test_the_number_of_processes_and_the_cut_into_parts_change_no_byte(
    parallel: Parallel, asked: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert parallel.run(*asked).status == 0
    wanted = hashes(parallel.output)
    assert {"train.en", "train.de", "valid.en", "test.de", "corpus.json", "report.json", "report.md"} <= set(wanted)
    assert parallel.run(*asked, "--workers", 2, output=parallel.folder / "two").status == 0
    assert hashes(parallel.folder / "two") == wanted
    monkeypatch.setattr(parts, "CHUNK", 1000)
    elsewhere = parallel.folder / "elsewhere"
    elsewhere.mkdir()
    for path in (*parallel.folder.glob("*.en"), *parallel.folder.glob("*.de")):
        path.rename(elsewhere / path.name)
    moved = [str(word).replace(str(parallel.folder), str(elsewhere)) for word in asked]
    assert parallel.run(*moved, output=parallel.folder / "three").status == 0
    assert hashes(parallel.folder / "three") == wanted


def test_a_killed_run_goes_on_and_gives_the_same(
    parallel: Parallel, asked: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert parallel.run(*asked, output=parallel.folder / "whole").status == 0
    slow = parts.clean

    def clean(folder: Path, cleaner: object, chunk: parts.Chunk) -> int:
        if chunk.part == parts.name(1, 2):
            time.sleep(60)
        return slow(folder, cleaner, chunk)  # type: ignore[arg-type]

    monkeypatch.setattr(parts, "clean", clean)
    words = [*map(str, asked), "--workers", "2", "--output", str(parallel.output)]
    process = get_context("fork").Process(target=prepare_parallel.main, args=(words,))
    process.start()
    folder = parallel.folder / "out.partial" / "parts"
    end = time.monotonic() + 60
    while len([*folder.glob("0*.json")]) < 8:
        assert time.monotonic() < end
        time.sleep(0.02)
    os.kill(process.pid or 0, signal.SIGKILL)
    process.join()
    monkeypatch.setattr(parts, "clean", slow)
    done = {path: path.stat().st_mtime_ns for path in folder.glob("0*")}
    (folder / f".{parts.name(1, 2)}.a.99").write_text("half")
    assert not parallel.output.exists()
    renamed: dict[Path, int] = {}
    merge = prepare_parallel.prepare.__globals__["merge"]

    def look(*given: object, **more: object) -> object:
        renamed.update({path: path.stat().st_mtime_ns for path in folder.glob("0*")})
        return merge(*given, **more)

    monkeypatch.setitem(prepare_parallel.prepare.__globals__, "merge", look)
    ended = parallel.run(*asked)
    assert ended.status == 0, ended.error
    assert "continuing the interrupted run" in ended.out
    assert {path: renamed[path] for path in done} == done  # finished parts are not repeated
    assert hashes(parallel.output) == hashes(parallel.folder / "whole")
    assert not (parallel.folder / "out.partial").exists()


def test_other_options_or_text_begin_anew_and_never_overwrite(parallel: Parallel, asked: list[object]) -> None:
    assert parallel.run(*asked).status == 0
    ended = parallel.run(*asked, "--ratio", 3)
    assert ended.status == 1
    assert f"{parallel.output} exists, but was made from other text or options" in ended.error
    with (parallel.folder / "c0.en").open("a") as one, (parallel.folder / "c0.de").open("a") as other:
        one.write("More.\n")
        other.write("Mehr.\n")
    assert "Move it, or choose another --output" in parallel.run(*asked).error


# --- the command


def test_help_and_dry_runs_need_nothing(tmp_path: Path) -> None:
    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return script("wmt18", *words, folder=tmp_path)

    told = run("--help")
    assert told.returncode == 0
    assert "--newstest DIR" in told.stdout
    told = run(
        "--pair", "en-cs", "--dry-run", "--data-bin", "bin", "--subwords", "fastbpe", "--separate", "--workers", "3"
    )
    assert told.returncode == 0, told.stderr
    fetch, prepare, binarise = told.stdout.splitlines()
    assert "wmt18/training-parallel-europarl-v7.tgz" in fetch
    assert fetch.endswith("wmt18/dev.tgz wmt18/test.tgz --output data/raw ")
    assert "data/raw/wmt18/training-parallel-nc-v13/news-commentary-v13.cs-en" in prepare
    assert "--newstest data/raw/wmt18 --workers 3 --valid newstest2013 newstest2014" in prepare
    assert binarise.endswith("--text data/wmt18.en-cs --output bin --subwords fastbpe --separate --workers 3 ")
    told = run(
        "--pair", "en-de", "--dry-run", "--text", "a", "--text", "b", "--newstest", "own", "--test", "newstest2017"
    )
    assert told.stdout.count("\n") == 1
    assert told.stdout == run(*JOINED).stdout
    (prepare,) = told.stdout.splitlines()
    assert "--train a b --newstest own --test newstest2017 --valid newstest2013" in prepare
    assert not [*tmp_path.iterdir()]
    for words, message in REFUSED:
        told = run(*words)
        assert (told.returncode, told.stdout) == (1, "")
        assert message in told.stderr


JOINED = ["--pair=en-de", "--dry-run", "--text=a", "--text", "b", "--newstest=own", "--test", "newstest2017"]
REFUSED: list[tuple[list[str], str]] = [
    ([], "--pair is missing: give en-de or en-cs"),
    (["--pair", "en-fr"], "--pair en-fr: give en-de or en-cs"),
    (["--pair"], "--pair needs a value"),
    (["--pair", "en-de", "--corpus", "europarl"], "--corpus europarl: give europarl-v7, commoncrawl or"),
    (["--pair", "en-de", "--corpus", "europarl-v7", "--text", "x"], "--corpus has no effect with --text"),
    (["--pair", "en-de", "--fetch-limit", "2"], "--fetch-limit: archives are fetched whole"),
    (["--pair", "en-de", "--subwords", "fastbpe"], "--subwords needs --data-bin"),
]


# --- real text


@pytest.mark.skipif("POSENC_DATA" not in os.environ, reason="POSENC_DATA names the folder of real text")
def test_multi30k_and_the_real_newstests(parallel: Parallel) -> None:
    data = Path(os.environ["POSENC_DATA"])
    asked = ["--pair", "en-de", "--train", data / "multi30k" / "train", "--newstest", data / "wmt-newstest"]
    ended = parallel.run(
        *asked, "--valid", *(f"newstest{year}" for year in range(2013, 2017)), "--test", "newstest2017"
    )
    assert ended.status == 0, ended.error
    counts = parallel.record()["counts"]
    assert counts["train"]["read"] == 29_000
    assert (counts["valid"]["pairs"], counts["test"]["pairs"]) == (3000 + 3003 + 2169 + 2999, 3004)
    with gzip.open(data / "wmt-newstest" / "eng-deu" / "newstest2017.deu.gz", "rt", encoding="utf-8") as file:
        assert lines(parallel.output / "test.de") == [" ".join(line.split()) for line in file.read().split("\n")[:-1]]
