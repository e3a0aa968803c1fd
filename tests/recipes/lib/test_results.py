"""Test the report of a run: scores over seeds, tests, the papers' numbers with what differs, and the three files."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
from scipy import stats
from support_recipes import TOY, called

from recipes.lib import departures, report, runs
from recipes.lib.significance import holm, interval, welch

CASES = tomllib.loads(Path(__file__).with_name("results.toml").read_text("utf-8"))
SETTINGS = "recipe=toy\npreset=small\nprecision=auto\noutput=results/toy\nseeds=1,2\nrepeats=4\nbatches=2\n"
SETTINGS += "train=(--lr 0.5 --max-tokens 8)\n"


class Run:
    """Write the files of a finished run, and report on it."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.lines = folder, list[str]()
        for name in ("scores", "logs", ".done"):
            (folder / name).mkdir()
        (folder / "settings.sh").write_text(SETTINGS)
        (folder / "command.sh").write_text("tests/recipes/toy/run.sh --word '<b>'\n")
        (folder / "steps.txt").write_text("")
        monkeypatch.setenv("HERE", str(TOY))

    def model(self, encoding: str, seed: int, scores: dict[str, Any] | str, item: str = "") -> None:
        name = f"{item}{encoding}.s{seed}"
        self.lines.append(f"{name}\t{encoding}\t{seed}\t{item}\n")
        kind = "failed" if isinstance(scores, str) else "json"
        (self.folder / "scores" / f"{name}.{kind}").write_text(
            scores if isinstance(scores, str) else json.dumps(scores)
        )

    def step(self, name: str, command: str, commit: str = "abc") -> None:
        with (self.folder / "steps.txt").open("a") as file:
            file.write(f"{name}\n")
        (self.folder / ".done" / name).write_text(f"hash\n60\n{commit}\n{command}\n\n")

    def report(self, *words: str) -> list[dict[str, Any]]:
        (self.folder / "models.tsv").write_text("".join(self.lines))
        called(report, "--run", self.folder, *words)
        rows: list[dict[str, Any]] = json.loads((self.folder / "results.json").read_text())["results"]
        return rows

    @property
    def text(self) -> str:
        return (self.folder / "results.md").read_text()


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    return Run(tmp_path, monkeypatch)


ONE, TWO, THREE = [20.0, 22.0, 24.0], [30.0, 31.0, 35.0], [21.0, 22.0, 23.5]


def test_scores_over_seeds_have_an_interval_and_a_corrected_p_value(run: Run) -> None:
    for label, values in {"none": ONE, "shaw": TWO, "rope": THREE}.items():
        for seed, value in enumerate(values, 1):
            run.model(label, seed, {"bleu": value, "ignored": 1})
    none, shaw, rope = run.report("--metric", "BLEU=bleu")
    raw = [stats.ttest_ind(ONE, values, equal_var=False).pvalue for values in (TWO, THREE)]
    assert (none["BLEU"], none["sd"], none["seeds"], none["p"]) == (22.0, 2.0, 3, None)
    assert shaw["p"] == pytest.approx(2 * raw[0], abs=1e-4)  # Holm: the smallest of two p-values counts twice
    assert rope["p"] == pytest.approx(raw[1], abs=1e-4)
    low, high = stats.t.interval(0.95, 2, 22, 2 / 3**0.5)
    assert none["BLEU, 95 % interval"] == [round(low, 2), round(high, 2)]
    assert f"| none | 22.00 [{low:.2f}, {high:.2f}] | – |" in run.text
    assert "p against none (Welch's t-test, Holm's correction)" in run.text
    assert "ignored" not in run.text


@pytest.mark.parametrize("case", CASES["report"], ids=lambda case: case["name"])
def test_a_report_of_a_small_run(case: dict[str, Any], run: Run) -> None:
    (run.folder / "settings.sh").write_text(SETTINGS.replace("1,2", case.get("seeds", "1,2")))
    for model in case["models"]:
        run.model(*model)
    for name, text in case.get("files", {}).items():
        (run.folder / name).write_text(text)
    rows = run.report(*shlex.split(case["words"].replace("{folder}", str(run.folder))))
    shown = [
        {key: "–" if row[key] is None else row[key] for key in wanted}
        for row, wanted in zip(rows, case["rows"], strict=True)
    ]
    assert shown == case["rows"]
    assert [part for part in case.get("text", []) if part not in run.text] == []


def test_an_interval_has_no_upper_end_if_lower_is_better(run: Run) -> None:
    for seed, value in enumerate([1.0, 99.0], 1):
        run.model("none", seed, {"accuracy": value})
    assert run.report("--metric", "accuracy", "--lower")[0]["accuracy, 95 % interval"][1] > 100
    assert interval([1.0, 3.0], 0, float("inf")) == pytest.approx((0, 2 + stats.t.ppf(0.975, 1)))


def test_equal_and_single_scores_are_no_evidence() -> None:
    assert welch([1.0], [2.0, 3.0]) is None
    assert welch([1.0, 1.0], [1.0, 1.0]) == 1
    assert welch([1.0, 1.0], [2.0, 2.0]) is None
    assert holm([0.04, None, 0.01, 0.03]) == [0.06, None, 0.03, 0.06]


PAPER = ["--metric", "BLEU", "--paper", "DIET", "--table", "Table 4", "--column", "ITEM"]


def test_a_papers_number_stands_beside_what_differs(run: Run, tmp_path: Path) -> None:
    run.model("shaw", 1, {"BLEU": 20.0}, "en-de")
    run.model("sinusoidal", 1, {"BLEU": 20.0}, "en-de")
    (tmp_path / "also").write_text("en-de\ttext of 9 pairs\nde-en\tother\n")
    rows = run.report(*PAPER, "--like", "twice", "--differs-also", str(tmp_path / "also"), "--same", "word")
    assert [row["paper"] for row in rows] == [None, 39.0]
    assert "differs from the paper" not in rows[0]
    differs = rows[1]["differs from the paper"]
    assert differs == CASES["differs_from_the_paper"]
    assert "; ".join(differs) in run.text


def test_only_a_run_without_differences_is_comparable(run: Run) -> None:
    settings = report.preset("twice")
    lines = [
        f"{name}=({shlex.join(value)})" if isinstance(value, list) else f"{name}={value}"
        for name, value in settings.items()
    ]
    (run.folder / "settings.sh").write_text("\n".join(lines))
    run.model("sinusoidal", 1, {"BLEU": 20.0}, "en-de")
    assert run.report(*PAPER, "--like", "twice")[0]["differs from the paper"] == []
    assert "| 39 | comparable |" in run.text
    assert run.report(*PAPER, "--like", "de-en=twice")[0]["differs from the paper"] == [
        "no preset reproduces this number"
    ]
    with pytest.raises(SystemExit, match="need --like PRESET"):
        run.report(*PAPER)


@pytest.mark.parametrize("case", CASES["difference"])
def test_what_differs_from_a_preset(case: dict[str, Any]) -> None:
    preset = runs.settings(SETTINGS)
    assert departures.differences({**preset, **case["ours"]}, preset) == case["found"]


def test_the_page_has_everything_to_repeat_the_run_and_loads_nothing(run: Run) -> None:
    run.model("none", 1, {"score": 1.0})
    run.step("train:none.s1", "fairseq-train data --lr 1")
    run.step("report", "python", "def")
    log = 'x | INFO | train_inner | {"num_updates": 1, "loss": 9, "wps": 7}\n'
    log += 'x | INFO | valid | {"valid_num_updates": 1, "valid_loss": 8}\nnum. shared model params: 1,234 (x)\n'
    (run.folder / "logs" / "none.s1.train.log").write_text(log)
    [row] = run.report("--metric", "score")
    assert (row["parameters"], row["minutes"], row["commit"]) == (1234, 1.0, "abc")
    page = (run.folder / "results.html").read_text()
    assert "run.sh --word &#x27;&lt;b&gt;&#x27;" in page
    assert "# train:none.s1, 60 s\nfairseq-train data --lr 1" in page
    assert "data:image/png;base64," in page
    assert not re.search(r"(src|href)=\"(?!data:)", page)
    facts = json.loads((run.folder / "results.json").read_text())
    assert facts["settings"]["train"] == {"lr": 0.5, "max-tokens": 8}
    assert facts["steps"][0] == {"name": "train:none.s1", "seconds": 60, "command": "fairseq-train data --lr 1"}
    assert facts["commit"] == "abc then def"
    names = {"recipe", "command", "commit", "versions", "machine", "seeds", "settings", "steps", "results"}
    assert set(facts) == names  # other programs read these
    assert set(facts["machine"]) == {"cores", "memory_gib", "gpus"}
    assert (run.folder / "curves.csv").read_text().splitlines()[1:] == ["none,1,8.0"]
