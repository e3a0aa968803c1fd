"""Test the results of the translation recipe: counts, scores, BLEU by length, comparison and report."""

from __future__ import annotations

import json
import os
import re
import signal
from dataclasses import asdict
from mmap import MAP_ANONYMOUS, MAP_PRIVATE, mmap
from pathlib import Path
from typing import Any, ClassVar

import pytest

from recipes.lib.recipe import ROOT
from recipes.lib.report import results
from recipes.lib.settings import load
from recipes.lib.values import Refused
from recipes.translation_wmt18.__main__ import TRANSLATION, hints, remarks
from recipes.translation_wmt18.layout import Direction, Place


def test_counts_of_pairs_that_are_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from recipes.lib.translation import parallel

    for name in ("train", "val", "test"):
        (tmp_path / f"{name}.en").write_text("a b c\na b\nc\na\n")
        (tmp_path / f"{name}.de").write_text("x\nx y z\ny z\nx\n")
    command = ["parallel", "--folder", str(tmp_path), "--output", str(tmp_path / "raw"), "--longest-words", "2"]
    command += "--source-lang en --target-lang de --train-set train --valid-set val --test-set test".split()
    monkeypatch.setattr("sys.argv", command)
    parallel.main()
    counts = json.loads((tmp_path / "raw" / "counts.json").read_text())
    assert counts["train"] == {"pairs": 2, "left out": 0, "because": "", "longer": 2, "longest": 2}
    assert counts["valid"]["pairs"] == 2
    assert counts["test"] == {"pairs": 4, "left out": 0, "because": ""}
    assert (tmp_path / "raw" / "train.de").read_text() == "y z\nx\n"


def test_refused_sentences_leave_no_score(tmp_path: Path) -> None:
    score = pytest.importorskip("recipes.lib.translation.score")
    (tmp_path / "out").write_text("D-2\t-1\tc d e f\nH-2\t-1\tx\nD-0\t-1\ta b\n")
    hypotheses = score.hypotheses(tmp_path / "out")
    assert hypotheses == {0: "a b", 2: "c d e f"}
    references = ["a b", "b", "c d e f"]
    assert score.score(hypotheses, references, "de", may_refuse=True)["refused"] == [1]
    assert score.score(hypotheses, references, "de", may_refuse=True)["bleu"] is None
    with pytest.raises(SystemExit, match="2 sentences were translated, but the test set has 3"):
        score.score(hypotheses, references, "de")
    assert "refused" not in score.score({**hypotheses, 1: "b"}, references, "de", may_refuse=True)


def test_bleu_by_length_and_who_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lengths = pytest.importorskip("recipes.lib.translation.lengths")
    assert [one.label for one in lengths.buckets([2, 3, 6])] == ["1-2", "3", "4-6", "7+"]
    sources = ["a", "a b c d", "a b c d e f g h", "a b c"]
    references = ["x", "a b c d", "a b c d e f g h", "a b c x"]
    for name, text in (
        ("src", sources),
        ("ref", references),
        ("rope.de", references),
        ("abs.de", [*references[:2], "", "a"]),
    ):
        (tmp_path / name).write_text("".join(line + "\n" for line in text))
    (tmp_path / "rope.json").write_text("{}")
    (tmp_path / "abs.json").write_text(json.dumps({"refused": [2]}))
    (tmp_path / "measured.json").write_text(json.dumps({"abs": {"positions": [5, None]}}))
    command = (
        f"lengths --source {tmp_path}/src --reference {tmp_path}/ref --language de --bound 4 --bound 7 --trained 4"
    )
    command += f" --translations {tmp_path} --scores {tmp_path} --measured {tmp_path}/measured.json"
    command += f" --system rope:rope --system rope:rope --system abs:abs --output {tmp_path}/lengths"
    monkeypatch.setattr("sys.argv", command.split())
    lengths.main()
    found = json.loads((tmp_path / "lengths.json").read_text())
    rope, learned = found["systems"]["rope"], found["systems"]["abs"]
    assert [(row["words"], row["sentences"], round(row["bleu"])) for row in rope] == [("1-4", 3, 100), ("8+", 1, 100)]
    assert learned[0]["bleu"] < 100
    assert learned[1] == {"words": "8+", "sentences": 1, "bleu": None, "±": None, "refused": 1}
    assert [row["±"] is None for row in rope] == [False, True]  # one sentence has no interval
    assert found["reasons"]["abs"].startswith("has positions for 5 source pieces and any number of target pieces")
    assert lengths.reasons(found["systems"], {}) == {"abs": "does not have enough positions for long sentences"}
    assert (tmp_path / "lengths.png").read_bytes().startswith(b"\x89PNG")


def test_the_interval_is_that_of_the_paired_test() -> None:
    score = pytest.importorskip("recipes.lib.translation.score")
    bootstrap = pytest.importorskip("recipes.translation_wmt18.compare").bootstrap
    references = [f"the cat number {number} sat on the old mat" for number in range(30)]
    lines = [line.replace("old", "new") if number % 3 else line for number, line in enumerate(references)]
    metric = score.bleu_of("en")
    found, within = score.with_interval(metric, lines, references)
    expected = bootstrap({"first": references, "other": lines}, references, "en")["other"]["BLEU"]
    assert (found, within) == (pytest.approx(expected["score"]), pytest.approx(expected["ci"], rel=1e-4))
    assert within > 1


class Run:
    """Write invented output of the stages before `compare`."""

    references: ClassVar = [f"the cat number {n} sat on the old mat" for n in range(20)]
    cost: ClassVar[dict[str, Any]] = {
        **dict.fromkeys(("training_words_per_second", "translation_words_per_second"), 10.0),
        **dict.fromkeys(("training_time_ratio", "translation_time_ratio", "translation_memory_ratio"), 1.0),
        **dict.fromkeys(("translation_peak_mb", "translation_extra_mb"), 400.0),
        "parameters": 7,
        "positions": [None, None],
    }

    def __init__(self, output: Path) -> None:
        self.output = output

    def text(self, inner: str, language: str) -> None:
        self.write(self.output / inner / "raw" / f"test.{language}", self.references)

    def model(self, inner: str, slug: str, language: str, wrong: int, refused: tuple[int, ...] = ()) -> None:
        lines = [
            ("no idea" if n < wrong else line) if n not in refused else "" for n, line in enumerate(self.references)
        ]
        self.write(self.output / inner / "translations" / f"{slug}.{language}", lines)
        self.write(
            self.output / inner / "scores" / f"{slug}.json", [json.dumps({"refused": refused} if refused else {})]
        )
        name = f"train.{inner}.{slug}.done" if inner else f"train.{slug}.done"
        facts = {"command": f"fairseq-train {slug}", "commit": "c", "seconds": 120.0}
        self.write(self.output / ".stages" / name, [json.dumps(facts)])

    def finished(self, *labels: str, **options: str) -> None:
        """Return the settings and results of a finished run of preset `short`."""
        options = {"direction": "en-de", "pos_enc": ",".join(labels), "corpus": "x", "device": "cpu", **options}
        facts = {"recipe": "translation_wmt18", "settings": asdict(load(TRANSLATION, "short", texts=options))}
        self.write(self.output / "result.json", [json.dumps(facts)])

    def measured(self, inner: str, *labels: str) -> None:
        self.write(self.output / inner / "measured.json", [json.dumps(dict.fromkeys(labels, self.cost))])

    @staticmethod
    def write(path: Path, lines: list[str]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(line + "\n" for line in lines))


def compared(run: Run, monkeypatch: pytest.MonkeyPatch, *options: str) -> list[dict[str, Any]]:
    compare = pytest.importorskip("recipes.translation_wmt18.compare")
    monkeypatch.setattr("sys.argv", ["compare", "--output", str(run.output), "--seed", "1", *options])
    compare.main()
    assert (run.output / "bleu.png").read_bytes().startswith(b"\x89PNG")
    table: list[dict[str, Any]] = json.loads((run.output / "comparison.json").read_text())
    return table


def test_scores_of_seeds_are_means_and_p_is_the_largest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(tmp_path)
    run.text("", "de")
    run.measured("", "sinusoidal", "diet-rel")
    for slug, wrong in (("sinusoidal", 10), ("diet-rel", 1), ("sinusoidal.seed=2", 9), ("diet-rel.seed=2", 9)):
        run.model("", slug, "de", wrong)
    options = "--direction en de --trained-seed 1 --trained-seed 2 --pos-enc sinusoidal --pos-enc diet-rel".split()
    first, second = compared(run, monkeypatch, *options, "--differs", "updates", "--differs", "model")
    assert second["BLEU"] == pytest.approx(sum(second["BLEU of seeds"]) / 2, abs=0.01)
    assert first["p"] is None
    assert second["p of seeds"][0] < 0.05 < second["p of seeds"][1] == second["p"]
    assert (first["paper"], second["paper"], first["differs from the paper"]) == (39.00, 39.47, ["updates", "model"])
    other_text = compared(run, monkeypatch, *options, "--differs", "text", "--differs", "model")
    assert [row["paper"] for row in other_text] == [None, None]
    assert (second["parameters"], second["time of a step"]) == (7, 1)
    unmeasured = compared(run, monkeypatch, *options, "--unmeasured")
    assert [(row["parameters"], row["time of a step"]) for row in unmeasured] == [(None, None)] * 2
    assert unmeasured[0].keys() == first.keys()
    assert second["sd"] > first["sd"] > 0
    assert (second["seeds"], second["diverged"], second["checkpoint"]) == (2, None, "diet-rel")
    assert second["minutes"] == 2.0
    assert second["command"] == "fairseq-train diet-rel"


def test_directions_and_earlier_runs_stand_in_one_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, run = Run(tmp_path / "old"), Run(tmp_path / "new")
    old.text("", "de")
    old.measured("", "none")
    old.model("", "none", "de", 3)
    options = ["--trained-seed", "1", "--pos-enc", "none"]
    compared(old, monkeypatch, *options, "--direction", "en", "de")
    old.finished("none")
    for earlier, inner in ((old, ""), (run, "de-en")):  # the same pair of languages
        earlier.text(inner, "en")
        earlier.text(inner, "de")
    for inner, language in (("de-en", "en"), ("en-cs", "cs")):
        run.text("de-en" if language == "en" else inner, language)
        run.measured(inner, "none", "learned")
        run.model(inner, "none", language, 5)
        run.model(inner, "learned", language, 0, refused=(0, 3))
    both = [*options, "--pos-enc", "learned", "--direction", "de", "en", "--direction", "en", "cs"]
    table = compared(run, monkeypatch, *both, "--beside", str(old.output))
    names = [(row["direction"], row["encoding"]) for row in table]
    assert names == [
        ("de-en", "none"),
        ("de-en", "learned"),
        ("en-cs", "none"),
        ("en-cs", "learned"),
        ("en-de", "none"),
    ]
    assert table[1]["BLEU"] is None
    assert table[1]["signature of BLEU"] is None
    assert table[4]["BLEU"] > table[0]["BLEU"]
    with pytest.raises(SystemExit, match=r"--beside no: no/comparison.json does not exist"):
        compared(old, monkeypatch, *options, "--direction", "en", "de", "--beside", "no")


def test_rows_of_earlier_runs_are_of_the_same_text_and_compared_with_the_same_model(tmp_path: Path) -> None:
    compare = pytest.importorskip("recipes.translation_wmt18.compare")
    old, new = Run(tmp_path / "old"), Run(tmp_path / "new")
    for run in (old, new):
        run.text("", "de")
        run.model("", "none", "de", 3)
    direction, place = Direction("en", "de"), Place(new.output, "")
    own = compare.Own({direction.pair: place}, {direction: [place.path("translations", "none.de")]})
    rows = [{"direction": "en-de", "encoding": label} for label in ("none", "t5", "of a run beside it")]
    old.write(old.output / "comparison.json", [json.dumps(rows)])
    old.finished("none", "t5")
    assert compare.beside([old.output], rows[:1], own) == [rows[1]]
    with pytest.raises(SystemExit, match="the row en-de t5 is already in the table"):
        compare.beside([old.output], rows[:2], own)
    old.finished("t5", "none")
    with pytest.raises(SystemExit, match="for en-de, the first encoding is t5 in the earlier run, but none in"):
        compare.beside([old.output], rows[:1], own)
    old.finished("none", "t5")
    old.model("", "none", "de", 4)
    with pytest.raises(SystemExit, match="the translations of the encoding none for en-de differ"):
        compare.beside([old.output], rows[:1], own)
    old.write(old.output / "raw" / "train.en", ["a"])
    with pytest.raises(SystemExit, match=r"text raw/train.en differs"):
        compare.beside([old.output], rows[:1], own)


def test_rows_of_earlier_runs_are_of_models_that_were_trained_alike(tmp_path: Path) -> None:
    Run(tmp_path).finished("rope", seeds="4,5", direction="de-en", **{"train.max-update": "7"})
    options = {"beside": str(tmp_path), "corpus": "x", "device": "cpu"}
    alike = {**options, "train.max-update": "7"}
    TRANSLATION.plan(load(TRANSLATION, "short", texts=alike), tmp_path, "x")
    updates = "the earlier run has --train.max-update 7, but this run has 600"
    for other, differs in ((options, updates), ({**alike, "batches": "2"}, "batches")):
        with pytest.raises(Refused, match=differs):
            TRANSLATION.plan(load(TRANSLATION, "short", texts=other), tmp_path, "x")


@pytest.mark.skipif(not os.access("/proc/self/clear_refs", os.W_OK), reason="this system does not say")
def test_memory_is_that_of_a_fork() -> None:
    memory = pytest.importorskip("recipes.lib.translation.memory")

    def step() -> None:
        with mmap(-1, 64 << 20, MAP_PRIVATE | MAP_ANONYMOUS) as pages:  # the heap may have free memory
            pages[::4096] = bytes(len(pages) // 4096)

    measured = memory.forked(memory.of_process, step)
    assert 60 < measured.extra < 90
    assert measured.peak > measured.extra
    assert memory.forked(lambda: os.kill(os.getpid(), signal.SIGKILL)) is None


# --- the report


def test_the_report_tells_text_lengths_and_models_of_each_direction(tmp_path: Path) -> None:
    options = {"direction": "en-de,de-en", "train_longest_words": "12", "corpus": "x", "pos_enc": "rope,learned"}
    loaded = load(TRANSLATION, "lengths", texts=options)
    split = {"pairs": 5, "left out": 0, "because": ""}
    raw = {"train": {**split, "longer": 1200, "longest": 12}, "valid": {**split, "longer": 0}, "test": split}
    Run.write(tmp_path / "en-de" / "raw" / "counts.json", [json.dumps(raw)])
    pieces = {"train": {"pairs": 4, "left out": 1}, "valid": split, "test": split}
    Run.write(tmp_path / "en-de" / "subwords" / "counts.json", [json.dumps(pieces)])
    rows = [
        {"words": "1-12", "sentences": 1633, "bleu": 20.04, "±": 1.36, "refused": 0},
        {"words": "13+", "sentences": 9, "bleu": None, "±": None, "refused": 7},
    ]
    lengths = {"trained": 12, "systems": {"learned": rows}, "reasons": {"learned": "has positions for 20 pieces"}}
    for direction in ("en-de", "de-en"):
        Run.write(tmp_path / direction / "lengths.json", [json.dumps(lengths)])
    report = unaligned("\n".join(remarks(loaded, tmp_path)))
    assert "Text (en-de): pairs: train 5, valid 5, test 5; 1,200 train pairs longer than 12 words. After" in report
    assert "train 4, valid 5, test 5; 1 training pairs left out (too long or without a piece)" in report
    assert "it differs in: text, model, updates, training, decoding" not in report
    assert "it differs in: text, model, updates, training." in report
    assert "| learned | 20.0 ± 1.4 | 7 refused |" in report
    assert "| BLEU by source length in words | 1-12 (n = 1,633) | 13+ (n = 9) |" in report
    assert "`learned` refused sentences, because it has positions for 20 pieces." in report
    assert "(de-en/lengths.png)" in report
    scores = [("en-de", "rope", 9.0), ("en-de", "learned", None), ("de-en", "learned", 8.0)]
    comparison = [
        dict(zip(("direction", "encoding", "BLEU"), one, strict=True)) | {"checkpoint": one[1]} for one in scores
    ]
    Run.write(tmp_path / "comparison.json", [json.dumps(comparison)])
    script = f"{ROOT}/recipes/translation_wmt18/translate.sh --run {tmp_path}"
    assert list(hints(loaded, tmp_path).values()) == [
        f"{script} --direction en-de --pos-enc rope < FILE",
        f"{script} --direction de-en --pos-enc learned < FILE",
    ]


def test_scores_have_two_decimals() -> None:
    row = {"encoding": "shaw", "paper": 40.1, "BLEU": 39.0, "p": 0.001}
    assert unaligned(results([row], (), TRANSLATION.forms)).endswith("| shaw | 40.10 | 39.00 | 0.001 |")


def unaligned(table: str) -> str:
    """Return the table without the spaces that align its columns."""
    return re.sub(" +", " ", table)
