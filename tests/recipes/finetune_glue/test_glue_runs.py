"""Test trainings of the GLUE recipe, from a checkpoint and rows to scores, submissions and a table."""

from __future__ import annotations

import json
import random
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
import support_curves
from integration import support
from support_exchange import imported, random_model, saved
from support_glue import prepare, task_files

from recipes.finetune_glue.__main__ import FINETUNE_GLUE
from recipes.lib import check_pretrained
from recipes.lib.command import main
from recipes.lib.finetuning.sentences import baselines, builtin, compare, evaluate
from recipes.lib.recipe import ROOT, shown
from recipes.lib.settings import load
from recipes.lib.stages import Stage


def run(module: Any, *words: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["x", *map(str, words)])
    module.main()


def toy_mnli(folder: Path) -> Path:
    """Write rows whose second sentence is the word of the first sentence, the word of its class, or another word."""
    rng, word = random.Random(1), ("entailment", "neutral", "contradiction")

    def rows(count: int) -> list[tuple[str, ...]]:
        examples = [(rng.randrange(3), rng.randrange(8, 20)) for _ in range(count)]
        return [(str(n), f"w{noise} w{3 + kind}", f"w{noise}", word[kind]) for n, (kind, noise) in enumerate(examples)]

    header = ("index", "sentence1", "sentence2", "gold_label")
    changed = {"train": 150, "dev_matched": 20, "dev_mismatched": 20}
    return task_files(folder, "MNLI", **{name: [header, *rows(count)] for name, count in changed.items()})


@pytest.fixture(scope="module")
def toy_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Stage]]:
    """Run the stages of the recipe on toy data for MNLI, with the training in this process."""
    folder = tmp_path_factory.mktemp("glue")
    source = saved(random_model("bert", "tiny"), folder / "bert")
    model = imported(source, folder / "shaw", "--pos-enc", "shaw") / "checkpoint.pt"
    data = toy_mnli(folder / "glue_data" / "MNLI").parent
    words = {"checkpoint": str(model), "task": "MNLI", "data": str(data), "lr": "0.01", "epochs": "4"}
    words |= {"longest": "16", "segments": "head", "device": "cpu", "threads": "1"}
    settings = load(FINETUNE_GLUE, "small", texts=words)
    output = folder / "out"
    stages = {stage.name: stage for stage in FINETUNE_GLUE.plan(settings, output, shown(output)).stages()}
    out = output / "data-bin" / "MNLI.shaw"
    out.parent.mkdir(parents=True)
    assert prepare("MNLI", data, model, out, "--separators", "1") == 0
    (train,) = [stage for stage in stages.values() if stage.kind == "train"]
    at = train.command.index("fairseq-train")
    flags = [str(ROOT / word) if word.startswith("..") else word for word in train.command[at + 1 :]]
    support.trained([*flags, "--log-file", str(folder / "log"), "--max-update", "76", "--total-num-update", "76"])
    markers = output / ".stages"
    markers.mkdir()
    done = {"seconds": 6.0, "command": shlex.join(train.command), "commit": "abc"}
    (markers / f"{train.name.replace(':', '.')}.done").write_text(json.dumps(done))
    return output, stages


def arguments_of(stages: dict[str, Stage], kind: str) -> list[str]:
    """Return the arguments in the command of a stage, without Python and the module."""
    (stage,) = [stage for stage in stages.values() if stage.kind == kind]
    return [str(ROOT / word) if word.startswith("..") else word for word in stage.command[3:]]


def test_a_model_becomes_a_row_of_the_table_and_a_submission(
    toy_run: tuple[Path, dict[str, Stage]], monkeypatch: pytest.MonkeyPatch
) -> None:
    output, stages = toy_run
    for module, kind in ((check_pretrained, "check"), (baselines, "baseline"), (evaluate, "evaluate")):
        run(module, *arguments_of(stages, kind), monkeypatch=monkeypatch)
    run(compare, *arguments_of(stages, "compare"), monkeypatch=monkeypatch)
    (row,) = json.loads((output / "comparison.json").read_text())
    assert (row["task"], row["model"], row["of"]) == ("MNLI", "shaw, segments per head", "accuracy")
    assert row["score"] > 90 > row["baseline"]
    assert row["beats baseline"] is True
    assert row["also"].startswith("mismatched ")
    assert row["scores"]["valid-mismatched"]["accuracy"] > 90
    assert row["paper"] is None  # Huang et al. do not have segments per head
    files = {path.name: path.read_text().splitlines() for path in (output / "submission" / "shaw.head").iterdir()}
    assert set(files) == {"MNLI-m.tsv", "MNLI-mm.tsv", "AX.tsv"}
    assert files["AX.tsv"][0] == "index\tprediction"
    assert [line.split("\t")[0] for line in files["AX.tsv"][1:]] == ["0", "1"]
    assert files["MNLI-mm.tsv"][1].split("\t")[0] == "9847"
    assert files["MNLI-m.tsv"][1].split("\t")[1] in ("contradiction", "entailment", "neutral")
    remarks = FINETUNE_GLUE.remarks(load(FINETUNE_GLUE, "smoke"), output)
    assert any(line.startswith("MNLI.shaw: rows used: train 150 of 150, valid 20 of 20") for line in remarks)


def test_numbers_are_answered_within_their_bounds() -> None:
    texts = evaluate.as_text([-0.4, 2.23456, 7.0], {"labels": [], "bounds": [0.0, 5.0]})
    assert texts == ["0.000", "2.235", "5.000"]


def test_a_model_that_is_too_short_or_another_is_refused(
    toy_run: tuple[Path, dict[str, Stage]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = toy_run[0].parent
    words = ["--output", tmp_path / "x.json", "--longest"]
    learned = imported(folder / "bert", tmp_path / "learned", "--pos-enc", "learned") / "checkpoint.pt"
    with pytest.raises(SystemExit) as error:
        run(check_pretrained, "--checkpoint", learned, *words, 64, "--segments", "none", monkeypatch=monkeypatch)
    assert (
        "is defined up to 20 positions. Give --longest 20, or use another encoding. Or extend its table: python -m "
        in str(error.value)
    )
    extended = ("--pos-enc", "learned", "--pos-enc-args", "extend=interpolate,extend_to=64")
    assert f"import-hf {learned} --pos-enc learned --output LONGER --pos-enc-args extend=repeat" in str(error.value)
    longer = imported(learned, tmp_path / "longer", *extended) / "checkpoint.pt"
    tokenizer = ("--tokenizer-path", learned.with_name("tokenizer"))
    run(check_pretrained, "--checkpoint", longer, *words, 64, "--segments", "none", *tokenizer, monkeypatch=monkeypatch)
    with pytest.raises(SystemExit, match=r"has the encoding learned, but --pos-enc asks for shaw\[clip=8\]"):
        run(
            check_pretrained,
            *("--checkpoint", learned, *words, 16, "--pos-enc", "shaw[clip=8]"),
            monkeypatch=monkeypatch,
        )


@pytest.mark.parametrize("task", builtin.COLUMNS)
def test_the_built_in_rows_are_of_every_task(task: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(builtin, "--output", tmp_path / "rows", "--task", task, "--seed", 1, monkeypatch=monkeypatch)
    from glue import checks, formats, reading

    form = formats.TASKS[task]
    for split, path in reading.find(tmp_path / "rows", task, form).items():
        rows = list(reading.read(path, form, split))
        kept, wrong = checks.checked(split, rows, form, "refuse")
        assert len(kept) == len(rows) > 0
        assert not wrong
        if split == "train" and form.labels:
            assert {row.label for row in rows} == set(form.labels)


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.usefixtures("forked_stages")
def test_the_smoke_preset_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--preset", "smoke", "--output", str(tmp_path / "out")]
    assert main(FINETUNE_GLUE, words) == 0
    support_curves.check("finetune_glue", tmp_path / "out")
    (row,) = json.loads((tmp_path / "out" / "result.json").read_text())["results"]
    assert row["beats baseline"]
    capsys.readouterr()
    assert main(FINETUNE_GLUE, words) == 0
    assert capsys.readouterr().out.count("All stages are already done") == 1


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.usefixtures("forked_stages")
def test_a_learning_rate_with_which_training_diverges_becomes_a_row(tmp_path: Path) -> None:
    assert main(FINETUNE_GLUE, ["--preset", "divergence-smoke", "--output", str(tmp_path / "out")]) == 0
    best, other = json.loads((tmp_path / "out" / "result.json").read_text())["results"]
    assert (best["lr"], best["diverged"], best["beats baseline"]) == (0.003, None, True)
    assert other["lr"] == 1e10
    assert re.match(r"seed 1: update \d+, loss [\d.]+", other["diverged"])
