"""Test prepare_glue.py: the published files of every task, rows with problems, and the scores of the recipe."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from support_exchange import random_model, saved
from support_glue import FILES, items, prepare, record, task_files, write

from fairseq_posenc.metrics import classification


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a Hugging Face BERT whose words are w0 to w32."""
    return saved(random_model("bert", "tiny"), tmp_path_factory.mktemp("model") / "bert")


# --- the published files

LABELS = {
    "CoLA": (["1", "0", "1"], ["1", "0"]),
    "SST-2": (["0", "1"], ["1"]),
    "MRPC": (["1", "0"], ["1"]),
    "QQP": (["0", "1"], ["1"]),
    "MNLI": (["neutral", "entailment", "contradiction"], ["neutral"]),
    "QNLI": (["entailment", "not_entailment"], ["not_entailment"]),
    "RTE": (["not_entailment", "entailment"], ["entailment"]),
}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("task", FILES)
def test_a_task_as_it_is_published(task: str, packed: bool, model: Path, tmp_path: Path) -> None:
    folder = task_files(tmp_path / "glue" / task, task, packed=packed)
    data = folder if packed else folder.parent
    assert prepare(task, data, model, tmp_path / "out") == 0
    prepared = record(tmp_path / "out")
    expected = {name: len(rows) - (task != "CoLA" or name == "test.tsv") for name, rows in FILES[task].items()}
    assert {facts["file"].removesuffix(".gz"): facts["items"] for facts in prepared["splits"].values()} == expected
    if task != "STS-B":
        labels = [[label[0] for label in items(tmp_path / "out", "label", split)] for split in ("train", "valid")]
        assert tuple(labels) == LABELS[task]
    assert not prepared["splits"]["test"]["labelled"]


def test_pieces_of_a_pair(model: Path, tmp_path: Path) -> None:
    task_files(tmp_path / "MRPC", "MRPC")
    assert prepare("MRPC", tmp_path, model, tmp_path / "out") == 0
    assert items(tmp_path / "out", "input0", "train")[0] == ["w1", "w2", "</s>"]
    assert items(tmp_path / "out", "input1", "train")[0] == ["w1", "w2", "w3", "</s>"]
    assert items(tmp_path / "out", "input0", "train")[1] == ["w1", "<unk>", "w2", "</s>"]  # a quote is text
    assert record(tmp_path / "out")["splits"]["train"]["unknown"] == 1


def test_numbers_of_sts_b_and_what_rows_are_called(model: Path, tmp_path: Path) -> None:
    task_files(tmp_path / "STS-B", "STS-B")
    assert prepare("STS-B", tmp_path, model, tmp_path / "out") == 0
    assert (tmp_path / "out" / "label" / "train.label").read_text() == "5.000\n0.250\n"
    task_files(tmp_path / "MNLI", "MNLI")
    assert prepare("MNLI", tmp_path, model, tmp_path / "mnli") == 0
    assert (tmp_path / "mnli" / "test-mismatched.ids").read_text() == "9847\n"
    assert (tmp_path / "mnli" / "test-ax.ids").read_text() == "0\n1\n"


def test_mrpc_as_microsoft_published_it(model: Path, tmp_path: Path) -> None:
    """MRPC's development set is a part of its training file, and its test file has labels."""
    header = ("\ufeffQuality", "#1 ID", "#2 ID", "#1 String", "#2 String")
    rows = [header, ("1", "7", "8", "w1", "w2"), ("0", "1", "2", "w3", "w4"), ("1", "5", "6", "w5", "w6")]
    write(tmp_path, "msr_paraphrase_train.txt", rows)
    write(tmp_path, "msr_paraphrase_test.txt", [header, ("0", "3", "4", "w7", "w8")])
    assert prepare("MRPC", tmp_path, model, tmp_path / "out") == 1
    write(tmp_path, "mrpc_dev_ids.tsv", [("#1 ID", "#2 ID"), ("1", "2")])
    assert prepare("MRPC", tmp_path, model, tmp_path / "out") == 0
    assert [facts["items"] for facts in record(tmp_path / "out")["splits"].values()] == [2, 1, 1]
    assert [item[0] for item in items(tmp_path / "out", "input0", "valid")] == ["w3"]
    assert items(tmp_path / "out", "label", "test") == [["0", "</s>"]]
    write(tmp_path, "msr_paraphrase_test.txt", [header, ("7", "3", "4", "w7", "w8"), ("1", "3", "4", "w7", "w7")])
    assert prepare("MRPC", tmp_path, model, tmp_path / "bad", "--bad", "skip") == 0
    assert record(tmp_path / "bad")["problems"] == {"label": {"kept": 1}}
    assert not record(tmp_path / "bad")["splits"]["test"]["labelled"]  # a score would ignore the rows that are left out


def test_long_items_are_cut_where_the_longer_sentence_ends(model: Path, tmp_path: Path) -> None:
    train = [FILES["RTE"]["train.tsv"][0], ("0", " ".join(["w1"] * 20), "w2 w3", "entailment")]
    task_files(tmp_path, "RTE", train=train)
    for separators, first in ((1, 11), (2, 10)):  # 16 pieces, including <s>, the last </s> and the separators
        out = tmp_path / f"out{separators}"
        assert prepare("RTE", tmp_path, model, out, "--separators", str(separators)) == 0
        assert len(items(out, "input0", "train")[0]) == first + 1
        assert items(out, "input1", "train")[0] == ["w2", "w3", "</s>"]
        assert record(out)["splits"]["train"]["cut"] == 1


# --- XNLI

ROWS = [("w1 w2", f"w{number}", label) for number, label in enumerate(("neutral", "entailment", "contradiction"), 3)]


def test_xnli_as_xtreme_has_it(model: Path, tmp_path: Path) -> None:
    """XTREME has one file per language, without a header, and test sets without labels. Train on development rows."""
    for name in ("dev-en.tsv", "dev-de.tsv.gz"):
        write(tmp_path, name, ROWS)
    write(tmp_path, "test-zh.tsv", [row[:2] for row in ROWS])
    assert prepare("XNLI", tmp_path, model, tmp_path / "out") == 1
    assert prepare("XNLI", tmp_path, model, tmp_path / "out", "--train-rows", "2") == 0
    facts = record(tmp_path / "out")["splits"]
    assert {split: counts["items"] for split, counts in facts.items()} == {
        "train": 2,
        "valid": 1,
        "valid-de": 1,
        "test-zh": 3,
    }
    assert [split for split, counts in facts.items() if not counts["labelled"]] == ["test-zh"]
    assert [item[0] for item in items(tmp_path / "out", "input1", "valid-de")] == ["w5"]
    assert prepare("XNLI", tmp_path, model, tmp_path / "zh", "--train-rows", "2", "--languages", "zh") == 0
    assert list(record(tmp_path / "zh")["splits"]) == ["train", "valid", "test-zh"]
    assert prepare("XNLI", tmp_path, model, tmp_path / "no", "--train-rows", "2", "--languages", "fr") == 1


def test_xnli_as_it_was_published(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One file has all languages. MNLI's training rows have other names of the columns, and of one label."""
    header = ("language", "gold_label", "genre", "sentence1", "sentence2")
    rows = [header, ("de", "neutral", "x", "w1", "w2"), ("en", "entailment", "x", "w1", "w3")]
    write(tmp_path / "xnli" / "XNLI-1.0", "xnli.dev.tsv", rows)
    multinli = tmp_path / "xnli" / "XNLI-MT-1.0" / "multinli"
    write(multinli, "multinli.train.en.tsv", [("premise", "hypo", "label"), ("w1", "w4", "contradictory")])
    assert prepare("XNLI", tmp_path, model, tmp_path / "out") == 0
    assert items(tmp_path / "out", "label", "train") == [["contradiction", "</s>"]]
    assert items(tmp_path / "out", "input1", "valid") == [["w3", "</s>"]]
    assert items(tmp_path / "out", "input1", "valid-de") == [["w2", "</s>"]]
    assert prepare("XNLI", tmp_path, model, tmp_path / "more", "--train-rows", "1") == 1
    assert "--train-rows is only for a folder without a training file" in capsys.readouterr().err


def test_glues_mnli_trains_xnli(model: Path, tmp_path: Path) -> None:
    """Train on GLUE's MNLI/train.tsv next to a folder of XNLI, and ignore the other files of MNLI."""
    task_files(tmp_path / "MNLI", "MNLI")
    for code in ("en", "de"):
        write(tmp_path / "xnli", f"dev-{code}.tsv.gz", ROWS)
    assert prepare("XNLI", tmp_path, model, tmp_path / "out") == 0
    facts = record(tmp_path / "out")["splits"]
    assert {split: counts["items"] for split, counts in facts.items()} == {"train": 3, "valid": 3, "valid-de": 3}
    labels = [label[0] for label in items(tmp_path / "out", "label", "train")]
    assert labels == ["neutral", "entailment", "contradiction"]


def test_a_row_of_no_language_is_named(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Such a row would shift the row numbers, by which translations of training rows are left out."""
    header = ("language", "gold_label", "sentence1", "sentence2")
    rows = [(code, "neutral", "w1", f"w{number}") for number in (2, 3) for code in ("en", "de")]
    write(tmp_path, "xnli.dev.tsv", [header, rows[0], ("dee", *rows[1][1:]), *rows[2:]])
    assert prepare("XNLI", tmp_path, model, tmp_path / "out", "--train-rows", "1") == 1
    assert "1 x language, refused: xnli.dev.tsv:3" in capsys.readouterr().err
    assert prepare("XNLI", tmp_path, model, tmp_path / "out", "--train-rows", "1", "--bad", "skip") == 1
    assert "these numbers of rows: en 1, de 0." in capsys.readouterr().err
    write(tmp_path, "train-en.tsv", ROWS)
    assert prepare("XNLI", tmp_path, model, tmp_path / "out", "--bad", "skip") == 0
    assert record(tmp_path / "out")["problems"] == {"language": {"left out": 1}}


def test_a_bad_row_of_a_language_does_not_take_its_labels(model: Path, tmp_path: Path) -> None:
    """Bad rows of XNLI's test sets are left out, because these sets are scored and not submitted."""
    for name in ("train-en.tsv", "dev-en.tsv"):
        write(tmp_path, name, ROWS)
    write(tmp_path, "test-de.tsv", [*ROWS, ("w1", "", "neutral")])
    assert prepare("XNLI", tmp_path, model, tmp_path / "out", "--bad", "skip") == 0
    facts = record(tmp_path / "out")["splits"]["test-de"]
    assert (facts["given"], facts["items"], facts["labelled"]) == (4, 3, True)


def test_translations_of_a_wrong_row_are_left_out(model: Path, tmp_path: Path) -> None:
    """Leave the same rows out in all languages, so that their scores are of the same rows."""
    for code in ("en", "de", "zh"):
        rows = [("w1", f"w{number}", "neutral" if code != "de" or number != 4 else "x") for number in range(2, 7)]
        write(tmp_path, f"dev-{code}.tsv", rows)
    assert prepare("XNLI", tmp_path, model, tmp_path / "out", "--train-rows", "1", "--bad", "skip") == 0
    prepared = record(tmp_path / "out")
    for split in ("valid", "valid-de", "valid-zh"):
        assert [item[0] for item in items(tmp_path / "out", "input1", split)] == ["w3", "w5", "w6"]
        assert (prepared["splits"][split]["given"], prepared["splits"][split]["items"]) == (4, 3)
    assert prepared["problems"] == {"label": {"left out": 1}, "translation of a wrong row": {"left out": 2}}
    problems_file = (tmp_path / "out" / "problems.jsonl").read_text()
    assert '"where": "dev-zh.tsv:3", "id": "2"' in problems_file
    assert "it is left out of valid-de: label" in problems_file


def test_files_of_other_lengths_are_no_translations(model: Path, tmp_path: Path) -> None:
    for name in ("train-en.tsv", "dev-en.tsv"):
        write(tmp_path, name, ROWS)
    write(tmp_path, "dev-de.tsv", [("w1", "w2", "x"), *ROWS])
    assert prepare("XNLI", tmp_path, model, tmp_path / "out", "--bad", "skip") == 0
    assert [facts["items"] for facts in record(tmp_path / "out")["splits"].values()] == [3, 3, 3]


def test_rows_for_training_leave_mnlis_other_set_alone(model: Path, tmp_path: Path) -> None:
    header, row = FILES["MNLI"]["dev_matched.tsv"]
    (task_files(tmp_path, "MNLI", dev_matched=[header, row, row]) / "train.tsv").unlink()
    assert prepare("MNLI", tmp_path, model, tmp_path / "out", "--train-rows", "1") == 0
    splits = record(tmp_path / "out")["splits"]
    assert [splits[split]["items"] for split in ("train", "valid", "valid-mismatched")] == [1, 1, 1]


def test_a_row_that_is_named_by_a_number_does_not_read_as_a_count() -> None:
    from questions import problems

    bad_rows = [problems.Problem("train", "train.tsv:9", name, "fields", "", "refused") for name in ("8", "q9")]
    assert problems.summary(bad_rows) == ["train: 2 x fields, refused: id 8, q9"]


def test_without_a_training_file_its_cure_is_told(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (task_files(tmp_path, "RTE") / "train.tsv").unlink()
    assert prepare("RTE", tmp_path, model, tmp_path / "out") == 1
    message = (
        "neither the folder nor its subfolder RTE holds train.tsv (plain or .gz). Add the file, or give --train-rows N"
    )
    assert message in capsys.readouterr().err
    (tmp_path / "dev.tsv").unlink()
    assert prepare("RTE", tmp_path, model, tmp_path / "out") == 1
    assert "--train-rows" not in capsys.readouterr().err  # they come from the development set


def test_a_split_without_rows_is_told_with_its_file(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def error(*more: str) -> str:
        assert prepare("RTE", tmp_path, model, tmp_path / "out", *more) == 1
        return capsys.readouterr().err

    header, row = FILES["RTE"]["dev.tsv"]
    (task_files(tmp_path, "RTE") / "train.tsv").unlink()
    assert f"{tmp_path}/dev.tsv: the file has 1 rows, so --train-rows 500 leaves no row for valid" in error(
        "--train-rows", "500"
    )
    task_files(tmp_path, "RTE", dev=[header])
    assert f"{tmp_path}/dev.tsv: the file has no rows for valid" in error()
    task_files(tmp_path, "RTE", dev=[header, (*row[:-1], "x")])
    assert f"{tmp_path}/dev.tsv: --bad skip leaves out all 1 rows of valid" in error("--bad", "skip")


@pytest.mark.parametrize(
    ("words", "least"), [(("--limit", "-30"), 0), (("--train-rows", "-5"), 0), (("--longest", "7"), 8)]
)
def test_numbers_that_are_too_small_are_refused(
    words: tuple[str, str], least: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        prepare("RTE", task_files(tmp_path, "RTE"), tmp_path, tmp_path / "out", *words)
    assert f"argument {words[0]}: {words[1]} is not allowed. Give at least {least}." in capsys.readouterr().err


# --- what is wrong with rows


@pytest.mark.parametrize(
    ("task", "split", "row", "kind"),
    [
        ("SST-2", "train", ("w1", "2"), "label"),
        ("SST-2", "train", ("w1",), "fields"),
        ("SST-2", "dev", ("  ", "1"), "empty sentence"),
        ("RTE", "train", ("0", "w1", "w2", "neutral"), "label"),
        ("RTE", "train", ("0", "w1", "", "entailment"), "empty sentence"),
        ("RTE", "train", ("0", "w1", "w2", "x", "entailment"), "fields"),
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
    assert not (tmp_path / "out").exists()
    assert prepare(task, tmp_path, model, tmp_path / "out", "--bad", "skip") == 0
    done = "kept" if split == "test" else "left out"
    assert record(tmp_path / "out")["problems"] == {kind: {done: 1}}
    facts = record(tmp_path / "out")["splits"]["valid" if split == "dev" else split]
    assert facts["given"] - facts["items"] == (split != "test")


def test_a_missing_column_or_file_is_refused(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    task_files(tmp_path, "RTE", train=[("index", "sentence1", "label"), ("0", "w1", "entailment")])
    assert prepare("RTE", tmp_path, model, tmp_path / "out", "--bad", "skip") == 1
    assert "train.tsv:1: the header lacks the column 'sentence2'; it has index, sentence1" in capsys.readouterr().err
    (tmp_path / "dev.tsv").unlink()
    assert prepare("RTE", tmp_path, model, tmp_path / "out") == 1
    assert "holds dev.tsv (plain or .gz)" in capsys.readouterr().err


def test_text_of_another_kind_is_refused(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    task_files(tmp_path, "SST-2", train=[("sentence", "label"), ("tout autre chose", "1")])
    assert prepare("SST-2", tmp_path, model, tmp_path / "out") == 1
    assert "of the training pieces are not in the model's dictionary" in capsys.readouterr().err


# --- scores


def test_scores_by_hand() -> None:
    # 2 true positives, 1 false positive, 1 false negative and 1 true negative
    predictions, labels = [1, 1, 0, 0, 1], [1, 0, 0, 1, 1]
    scores = {name: classification.METRICS[name](predictions, labels) for name in ("accuracy", "f1", "matthews")}
    assert scores == pytest.approx({"accuracy": 3 / 5, "f1": 4 / 6, "matthews": (2 * 1 - 1 * 1) / 6})
    numbers, rank = [1.0, 2.0, 4.0, 3.0], [1.0, 3.0, 9.0, 4.0]
    x, y = np.array(numbers) - 2.5, np.array(rank) - 4.25
    assert classification.pearson(numbers, rank) == pytest.approx((x @ y) / np.sqrt((x @ x) * (y @ y)))
    assert classification.spearman(numbers, rank) == pytest.approx(1.0)


def test_a_constant_has_no_correlation() -> None:
    assert classification.pearson([2.0, 2.0], [1.0, 3.0]) == 0.0
    assert classification.spearman([1.0, 2.0], [3.0, 3.0]) == 0.0
    assert classification.matthews([1, 1], [0, 1]) == 0.0


def test_the_constant_that_a_score_likes_best() -> None:
    train, labels = [0, 0, 0, 1], [0, 1, 1]
    assert classification.constants("accuracy", train, labels) == (0, pytest.approx(1 / 3))
    assert classification.constants("f1", train, labels) == (1, pytest.approx(0.8))
    assert classification.constants("matthews", train, labels) == (0, 0.0)
    assert classification.constants("spearman", [1.0, 4.0], [2.0, 3.0]) == (2.5, 0.0)


def test_the_margin_is_two_standard_errors_of_answers_in_any_order() -> None:
    labels = [0.0, 0.0, 1.0, 1.0, 1.0]
    correlations = [classification.pearson(order, labels) for order in permutations([1.0, 2.0, 4.0, 8.0, 9.0])]
    assert classification.margin("pearson", 5, 0.0) == pytest.approx(2 * np.std(correlations))
    assert classification.margin("matthews", 5, 0.0) == classification.margin("spearman", 5, 0.0) > 0


@pytest.mark.parametrize("part", [0.4, 0.7])
@pytest.mark.parametrize("name", ["accuracy", "f1"])
def test_the_margin_is_two_standard_errors_of_the_constants_score(name: str, part: float) -> None:
    """Compare with the spread of a classifier that always answers 1, on rows of which a part is of class 1."""
    rows = 400
    positives = np.random.default_rng(1).binomial(rows, part, 1500)  # rows of class 1, in each of 1500 sets
    scores = positives / rows if name == "accuracy" else 2 * positives / (rows + positives)
    labels = [1] * positives[0] + [0] * (rows - positives[0])
    assert classification.METRICS[name]([1] * rows, labels) == pytest.approx(scores[0])
    assert classification.margin(name, rows, float(np.mean(scores))) == pytest.approx(2 * np.std(scores), rel=0.06)


def test_scores_of_the_other_kind_are_refused() -> None:
    with pytest.raises(ValueError, match=r"--metrics spearman: .* Choose from accuracy, f1, matthews"):
        classification.named(["spearman"], regression=False)
