"""Test prepare_glue.py: the published files of every task, rows with problems, and any number of processes."""

from __future__ import annotations

from pathlib import Path

import prepare_glue
import prepared as shared
import pytest
from support_exchange import random_model, saved
from support_glue import FILES, items, prepare, record, task_files, write
from support_scripts import hashes


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a Hugging Face BERT whose words are w0 to w32."""
    return saved(random_model("bert", "tiny"), tmp_path_factory.mktemp("model") / "bert")


# --- the published files


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("task", FILES)
def test_a_task_as_it_is_published(task: str, packed: bool, model: Path, tmp_path: Path) -> None:
    folder = task_files(tmp_path / "glue" / task, task, packed=packed)
    data = folder if packed else folder.parent
    assert prepare(task, data, model, tmp_path / "out") == 0
    facts = record(tmp_path / "out")["splits"]
    expected = {name: len(rows) - (task != "CoLA" or name == "test.tsv") for name, rows in FILES[task].items()}
    assert {counts["file"].removesuffix(".gz"): counts["items"] for counts in facts.values()} == expected
    assert not facts["test"]["labelled"]


def test_pieces_of_a_pair_and_scores_and_ids_of_rows(model: Path, tmp_path: Path) -> None:
    for task in ("MRPC", "STS-B", "MNLI"):
        task_files(tmp_path / task, task)
        assert prepare(task, tmp_path, model, tmp_path / f"out-{task}") == 0
    assert items(tmp_path / "out-MRPC", "input0", "train")[1] == ["w1", "<unk>", "w2", "</s>"]  # a quote is text
    assert items(tmp_path / "out-MRPC", "input1", "train")[0] == ["w1", "w2", "w3", "</s>"]
    assert record(tmp_path / "out-MRPC")["splits"]["train"]["unknown"] == 1
    assert (tmp_path / "out-STS-B" / "label" / "train.label").read_text() == "5.000\n0.250\n"
    labels = [label for label, _ in items(tmp_path / "out-MNLI", "label", "train")]
    assert labels == ["neutral", "entailment", "contradiction"]
    assert (tmp_path / "out-MNLI" / "test-mismatched.ids").read_text() == "9847\n"
    assert (tmp_path / "out-MNLI" / "test-ax.ids").read_text() == "0\n1\n"


def test_mrpc_as_microsoft_published_it(model: Path, tmp_path: Path) -> None:
    """MRPC's development set is a part of its training file, and its test file has labels."""
    header = ("\ufeffQuality", "#1 ID", "#2 ID", "#1 String", "#2 String")
    rows = [header, ("1", "7", "8", "w1", "w2"), ("0", "1", "2", "w3", "w4"), ("1", "5", "6", "w5", "w6")]
    write(tmp_path, "msr_paraphrase_train.txt", rows)
    write(tmp_path, "msr_paraphrase_test.txt", [header, ("7", "3", "4", "w7", "w8"), ("1", "3", "4", "w7", "w7")])
    assert prepare("MRPC", tmp_path, model, tmp_path / "out") == 1
    write(tmp_path, "mrpc_dev_ids.tsv", [("#1 ID", "#2 ID"), ("1", "2")])
    assert prepare("MRPC", tmp_path, model, tmp_path / "out", "--bad", "skip") == 0
    assert [facts["items"] for facts in record(tmp_path / "out")["splits"].values()] == [2, 1, 2]
    assert [item[0] for item in items(tmp_path / "out", "input0", "valid")] == ["w3"]
    assert record(tmp_path / "out")["problems"] == {"label": {"kept": 1}}
    assert not record(tmp_path / "out")["splits"]["test"]["labelled"]  # a score would ignore the row without a label


def test_long_items_are_cut_where_the_longer_sentence_ends(model: Path, tmp_path: Path) -> None:
    train = [FILES["RTE"]["train.tsv"][0], ("0", " ".join(["w1"] * 20), "w2 w3", "entailment")]
    task_files(tmp_path, "RTE", train=train)
    for separators, first in ((1, 11), (2, 10)):  # 16 pieces, including <s>, the last </s> and the separators
        out = tmp_path / f"out{separators}"
        assert prepare("RTE", tmp_path, model, out, "--separators", str(separators)) == 0
        assert len(items(out, "input0", "train")[0]) == first + 1
        assert items(out, "input1", "train")[0] == ["w2", "w3", "</s>"]
        assert record(out)["splits"]["train"]["cut"] == 1
    assert prepare("RTE", tmp_path, model, tmp_path / "long", "--length", "40") == 0
    assert record(tmp_path / "long")["splits"]["train"]["longest"] == 26  # the task checks the model's limit
    equal = [[1, 2, 3], [4, 5, 6]]
    prepare_glue.cut(equal, 5)
    assert equal == [[1, 2, 3], [4, 5]]


def test_processes_change_no_byte(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "CHUNK", 1)
    task_files(tmp_path, "MNLI")
    (tmp_path / "1.partial" / "left").mkdir(parents=True)  # by a run that was killed
    for workers in ("1", "3"):
        assert prepare("MNLI", tmp_path, model, tmp_path / workers, "--workers", workers) == 0
    assert hashes(tmp_path / "1") == hashes(tmp_path / "3")


# --- XNLI

ROWS = [("w1 w2", f"w{number}", label) for number, label in enumerate(("neutral", "entailment", "contradiction"), 3)]


def test_xnli_as_xtreme_has_it(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """XTREME has one file per language, without a header, and test sets without labels. Train on development rows."""
    for name in ("dev-en.tsv", "dev-de.tsv.gz"):
        write(tmp_path, name, ROWS)
    write(tmp_path, "test-zh.tsv", [row[:2] for row in ROWS])
    assert prepare("XNLI", tmp_path, model, tmp_path / "out") == 1
    assert "or give --train-rows N" in capsys.readouterr().err
    assert prepare("XNLI", tmp_path, model, tmp_path / "out", "--train-rows", "2") == 0
    facts = record(tmp_path / "out")["splits"]
    items_of = {split: counts["items"] for split, counts in facts.items()}
    assert items_of == {"train": 2, "valid": 1, "valid-de": 1, "test-zh": 3}
    assert [split for split, counts in facts.items() if not counts["labelled"]] == ["test-zh"]
    assert [item[0] for item in items(tmp_path / "out", "input1", "valid-de")] == ["w5"]
    assert prepare("XNLI", tmp_path, model, tmp_path / "zh", "--train-rows", "2", "--languages", "zh") == 0
    assert list(record(tmp_path / "zh")["splits"]) == ["train", "valid", "test-zh"]
    assert prepare("XNLI", tmp_path, model, tmp_path / "no", "--train-rows", "2", "--languages", "fr") == 1
    write(tmp_path, "dev-de.tsv.gz", ROWS[:2])  # row numbers would no longer be those of the translations
    assert prepare("XNLI", tmp_path, model, tmp_path / "no", "--train-rows", "1") == 1
    assert "they have these: en 2, de 1." in capsys.readouterr().err


def test_xnli_as_it_was_published(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One file has all languages. MNLI's training rows have other names of the columns, and of one label."""
    header = ("language", "gold_label", "genre", "sentence1", "sentence2")
    rows = [header, ("de", "neutral", "x", "w1", "w2"), ("en", "entailment", "x", "w1", "w3")]
    folder = tmp_path / "xnli" / "XNLI-1.0"
    write(folder, "xnli.dev.tsv", rows)
    multinli = tmp_path / "xnli" / "XNLI-MT-1.0" / "multinli"
    write(multinli, "multinli.train.en.tsv", [("premise", "hypo", "label"), ("w1", "w4", "contradictory")])
    assert prepare("XNLI", tmp_path, model, tmp_path / "out") == 0
    assert items(tmp_path / "out", "label", "train") == [["contradiction", "</s>"]]
    assert items(tmp_path / "out", "input1", "valid") == [["w3", "</s>"]]
    assert items(tmp_path / "out", "input1", "valid-de") == [["w2", "</s>"]]
    write(folder, "xnli.dev.tsv", [*rows, ("dee", *rows[1][1:])])
    assert prepare("XNLI", tmp_path, model, tmp_path / "no", "--bad", "skip") == 1
    assert "xnli.dev.tsv:4: unknown language 'dee'" in capsys.readouterr().err
    assert prepare("XNLI", tmp_path, model, tmp_path / "no", "--train-rows", "1") == 1
    assert "--train-rows is only for a folder without a training file" in capsys.readouterr().err


# --- what is wrong


@pytest.mark.parametrize(
    ("task", "split", "row", "kind"),
    [
        ("SST-2", "train", ("w1", "2"), "label"),
        ("SST-2", "train", ("w1",), "fields"),
        ("SST-2", "dev", ("  ", "1"), "empty sentence"),
        ("STS-B", "dev", ("0", "w1", "w2", "5.1"), "label"),
        ("STS-B", "dev", ("0", "w1", "w2", "nan"), "label"),
        ("MRPC", "test", ("0", "3", "4", "w1", ""), "empty sentence"),
    ],
)
def test_a_bad_row_is_named_and_refused_unless_it_is_to_be_skipped(
    task: str,
    split: str,
    row: tuple[str, ...],
    kind: str,
    model: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = [*FILES[task][f"{split}.tsv"], row]
    task_files(tmp_path, task, **{split: rows})
    assert prepare(task, tmp_path, model, tmp_path / "out") == 1
    error = capsys.readouterr().err
    assert f"{split}.tsv:{len(rows)}: " in error
    assert f"1 x {kind}, refused" in error
    assert (tmp_path / "out.problems.jsonl").exists()
    assert not (tmp_path / "out").exists()
    assert prepare(task, tmp_path, model, tmp_path / "out", "--bad", "skip") == 0
    assert record(tmp_path / "out")["problems"] == {kind: {"kept" if split == "test" else "left out": 1}}
    facts = record(tmp_path / "out")["splits"]["valid" if split == "dev" else split]
    assert facts["given"] - facts["items"] == (split != "test")


def test_files_that_do_not_fit_are_refused(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    header = FILES["RTE"]["train.tsv"][0]
    for rows, message in (
        ([header[:2]], "train.tsv:1: the header lacks the column 'sentence2'"),
        ([header], "train.tsv: 0 rows in the file, 0 for train, none of them usable"),
        ([header, ("0", "tout", "autre", "entailment")], "are not in the model's dictionary"),
    ):
        task_files(tmp_path, "RTE", train=rows)
        assert prepare("RTE", tmp_path, model, tmp_path / "out") == 1
        assert message in capsys.readouterr().err
        assert not [path for path in tmp_path.iterdir() if path.name.startswith("out")]
