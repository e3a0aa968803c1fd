"""Run the data scripts on the small files of runs/*.toml, and compare what they write and refuse.

Each table is named after its script, and holds groups of cases with common `files` and `words` (options). A case may
replace some files ("-" removes one), add words, and say what is expected:

    says: parts of the error; nothing is written then. If the case also expects output, `--bad skip` has to give it.
    written: content of files in the output folder. Of JSON, only the listed entries are compared.
    record: entries of the JSON file in which the script says how it made the folder.
    problems: all problems that this record counts.
    missing: files that are not written.
    prints: parts of what the script prints.
    law: any number of processes must write the same bytes.
"""

from __future__ import annotations

import importlib
import json
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import prepared
import pytest
from safetensors.numpy import load_file
from support_corpora import gpt2
from support_exchange import random_model, saved
from support_glue import FILES, prepare, record, task_files
from support_prepared import items
from support_scripts import Runs, hashes, symbols

RECORDS = ("glue.json", "questions.json", "spans.json", "corpus.json", "counts.json")
Case = dict[str, Any]


def parts_of(text: str | list[str]) -> list[str]:
    return [text] if isinstance(text, str) else text


def cases() -> Iterator[Any]:
    for path in sorted(Path(__file__).with_name("runs").glob("*.toml")):
        for name, group in tomllib.loads(path.read_text("utf-8")).items():
            for case in group["cases"]:
                whole = {**group, **case, "words": f"{group['words']} {case.get('words', '')}"}
                whole["files"] = {**group.get("files", {}), **case.get("files", {})}
                about = case.get("name") or parts_of(case["says"])[0]
                yield pytest.param(path.stem, whole, id=f"{path.stem}, {name}: {about}")


CASES = [*cases()]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a Hugging Face BERT, whose words are w0 to w32, and with a tokenizer in GPT-2's form."""
    folder = tmp_path_factory.mktemp("models")
    saved(random_model("bert", "tiny"), folder / "bert")
    gpt2(folder / "gpt2")
    return folder


class Script(Runs):
    """Run the script of a case in the folder of its files."""

    def __init__(self, name: str, case: Case, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        super().__init__(importlib.import_module(name).main, folder, capsys)
        self.output = Path(case.get("output", "out"))
        if "published" in case:
            task_files(folder, case["published"])
        for file, content in case["files"].items():
            if content != "-":
                self.write(file, content)
        for file, content in case.get("bytes", {}).items():  # each character stands for a byte
            self.write(file, content.encode("latin-1"))


@pytest.fixture
def script(
    name: str, case: Case, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Script:
    monkeypatch.chdir(tmp_path)
    return Script(name, case, tmp_path, capsys)


def content_of(path: Path) -> Any:
    """Return the content of JSON, of a text file (its lines), of word vectors, or of items (their symbols)."""
    if path.suffix == ".json":
        return json.loads(path.read_text("utf-8"))
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    if path.suffix == ".safetensors":
        return load_file(path)["vectors"].tolist()
    if path.is_file():
        return path.read_text("utf-8").split("\n")[:-1]
    if path.suffix in (".source", ".target", ".segments"):  # of questions
        return [" ".join(map(str, item)) for item in getattr(items(path.parent, path.stem), path.suffix[1:])]
    return [" ".join(item) for item in symbols(path, path.with_name("dict.txt"))]


def listed(expected: Any, content: Any) -> Any:
    """Return the content with only those entries of its objects that are expected."""
    if isinstance(expected, dict):
        return {key: listed(value, content.get(key)) for key, value in expected.items()}
    if isinstance(expected, list) and len(expected) == len(content):
        return [listed(*pair) for pair in zip(expected, content, strict=True)]
    return content


@pytest.mark.parametrize(("name", "case"), CASES)
def test_a_script_writes_or_refuses_what_the_table_says(script: Script, case: Case, models: Path) -> None:
    words = shlex.split(case["words"].replace("{models}", str(models)))
    expects_output = case.keys() & {"written", "record", "problems"}
    if "says" in case:
        before = hashes(script.folder)
        ended = script.run(*words)
        assert ended.status in (1, 2)
        for part in parts_of(case["says"]):
            assert part in ended.error
        after = hashes(script.folder)  # prepare_parallel keeps its work in out.partial, to go on with it
        assert bool(after.pop("out.problems.jsonl", None)) == ("out.problems.jsonl lists all of them" in ended.error)
        assert {file: after[file] for file in after if not file.startswith("out.partial/")} == before
        words += ["--bad", "skip"] if expects_output else []
    if "says" in case and not expects_output:
        return
    ended = script.run(*words)
    assert ended.status == 0, ended.error
    for part in parts_of(case.get("prints", [])):
        assert part in ended.out
    (record,) = [content_of(path) for path in script.output.iterdir() if path.name in RECORDS]
    assert listed(case.get("record", {}), record) == case.get("record", {})
    assert record.get("problems", {}) == case.get("problems", {})
    for file, expected in case.get("written", {}).items():
        assert listed(expected, content_of(script.output / file)) == expected, file
    assert not [file for file in case.get("missing", []) if (script.output / file).exists()]
    assert not (script.folder / "out.problems.jsonl").exists()


@pytest.mark.parametrize(("name", "case"), [case for case in CASES if "law" in case.values[1]])
def test_processes_change_no_byte_and_finished_output_is_kept(
    script: Script, case: Case, models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prepared, "CHUNK", 1)
    words = shlex.split(case["words"].replace("{models}", str(models)))
    script.write("one.partial/left", "by a run that was killed")
    one, two = Path("one"), Path("two")
    assert script.run(*words, output=one).status == 0
    expected = hashes(one)
    assert script.run(*words, "--workers", 2, output=two).status == 0
    assert hashes(two) == expected
    assert f"{one} exists. Move it, or choose another --output." in script.run(*words, output=one).error
    assert hashes(one) == expected


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("task", FILES)
def test_a_task_of_glue_as_it_is_published(task: str, packed: bool, models: Path, tmp_path: Path) -> None:
    task_files(tmp_path / "glue" / task, task, packed=packed)
    assert prepare(task, tmp_path / "glue", models / "bert", tmp_path / "out") == 0
    facts = record(tmp_path / "out")["splits"]
    expected = {name: len(rows) - (task != "CoLA" or name == "test.tsv") for name, rows in FILES[task].items()}
    assert {counts["file"].removesuffix(".gz"): counts["items"] for counts in facts.values()} == expected
    assert not facts["test"]["labelled"]
