"""Test that training runs that diverge are found, that their models are skipped, and that the others continue."""

from __future__ import annotations

import json
from math import log as log_of
from pathlib import Path

import pytest

from recipes.lib import divergence
from recipes.lib.encodings import parse
from recipes.lib.finetuning.models import Model
from recipes.lib.finetuning.sentences.compare import Results
from recipes.lib.finetuning.trials import Grid, Variant
from recipes.lib.package import Divergence, read_divergence
from recipes.lib.runner import Failed, Runner
from recipes.lib.screen import Screen
from recipes.lib.seeds import Seeds
from recipes.lib.stages import Ledger, Stage
from recipes.pretrain_mlm.compare import row as pretraining_row

ERROR = "Traceback (most recent call last):\nFloatingPointError: gradients are Nan/Inf\n"


def log(*losses: float | str, end: str = "") -> str:
    lines = [
        f"x | train_inner | {json.dumps({'num_updates': 20 * n, 'loss': str(loss), 'wps': '9'})}\n"
        for n, loss in enumerate(losses, 1)
    ]
    return "$ fairseq-train\n" + "".join(lines) + end


LINE = "fairseq-train: error: The training with --pos-enc shaw diverged in update 47: gradients are Nan/Inf.\n"
EXACT = 'x | ERROR | diverged | {"num_updates": 47, "loss": 8.5}\n'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (log(7, 5, end=ERROR), Divergence(40, 5, finite=False)),
        (log(7, 5, end=EXACT + ERROR), Divergence(47, 8.5, finite=False)),
        (log(7, 5, end=EXACT + LINE), Divergence(47, 8.5, finite=False)),
        (log(end=ERROR), Divergence(0, None, finite=False)),
        (log(7, 5, "nan"), Divergence(40, 5, finite=False)),
        (log(7, 5, 6, 8, 9), Divergence(80, 9, finite=True)),
        (log(7, 5, 6, 6.9), None),
        (log(7, 6.9, 7.0, 7.1), None),  # it learned nothing, but lost nothing either
        (log(7, 5, end=ERROR) + log(7, 5, 4), None),  # the error of an earlier attempt
        (log(7, 5, end=EXACT + LINE) + log(7, 5, 4), None),
        (log(7, 5, end="RuntimeError: out of memory\n"), None),
    ],
)
def test_a_log_tells_whether_its_training_diverged(text: str, expected: Divergence | None, tmp_path: Path) -> None:
    (tmp_path / "log").write_text(text)
    assert read_divergence(tmp_path / "log") == expected


def test_a_training_without_a_log_did_not_diverge(tmp_path: Path) -> None:
    assert read_divergence(tmp_path / "log") is None


def test_a_row_says_which_seed_diverged_and_where(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "m4.train.log").write_text(log(7, 5))
    (tmp_path / "logs" / "m4.seed=2.train.log").write_text(log(7, 5, end=EXACT + ERROR))
    runs = divergence.runs(tmp_path, {"m4": 1, "m4.seed=2": 2})
    assert runs == (["m4"], "seed 2: update 47, loss 8.5 (then not finite)")
    assert divergence.runs(tmp_path, {"m4": 1}) == (["m4"], None)


def test_the_training_loss_of_a_masked_language_model_leaves_out_runs_that_diverged(tmp_path: Path) -> None:
    for folder in ("logs", "scores"):
        (tmp_path / folder).mkdir()
    (tmp_path / "logs" / "m4.train.log").write_text(log(7, 5))
    (tmp_path / "logs" / "m4.seed=2.train.log").write_text(log(7, 6, end=EXACT + ERROR))
    scores = {"bits": 5.0, "nats": 3.5, "perplexity": 32.0, "accuracy": 0.4, "updates": 40, "parameters": 9}
    (tmp_path / "scores" / "m4.json").write_text(json.dumps(scores))
    row = pretraining_row(parse("m4"), Seeds((1, 2), 1), 9.0, tmp_path)
    assert row["training loss, nats"] == pytest.approx(5 * log_of(2), abs=1e-3)
    assert row["checkpoints"] == ["m4"]


def shell(folder: Path, name: str, script: str, *after: Stage) -> Stage:
    path = folder / name.replace(":", ".")
    return Stage(name, ("sh", "-euc", script, "sh", str(path)), (path,), after, resumes=name.startswith("train"))


def chains(folder: Path, bad: str) -> list[list[Stage]]:
    scripts = {"good": 'mkdir -p "$1"', "bad": bad}
    trainings = [shell(folder, f"train:{name}", script) for name, script in scripts.items()]
    return [[train, shell(folder, f"score:{train.variant}", 'echo 1 > "$1"', train)] for train in trainings]


def run(folder: Path, bad: str) -> tuple[Ledger, list[Stage]]:
    """Run two trainings with their scores, and then a comparison of both."""
    ledger, trained = Ledger(folder / ".stages"), chains(folder, bad)
    compare = shell(folder, "compare", 'echo all > "$1"', *(chain[-1] for chain in trained))
    Runner(folder, ledger, Screen(), 0).run([trained, [[compare]]])
    return ledger, [*(stage for chain in trained for stage in chain), compare]


def test_stages_after_a_training_that_diverged_are_skipped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = f"printf '%s' '{log(7, 5, end=EXACT + ERROR)}'; exit 1"
    ledger, stages = run(tmp_path, script)
    assert [stage.name for stage in stages if not ledger.is_done(stage)] == []
    assert (tmp_path / "score.good").exists()
    assert not (tmp_path / "score.bad").exists()
    shown = capsys.readouterr().out
    assert "train:bad (0s) diverged: update 47, loss 8.5 (then not finite)" in shown
    assert "score:bad is skipped, because the training diverged" in shown
    run(tmp_path, script)
    assert "skipped" not in capsys.readouterr().out  # the second run has nothing to do


def test_scores_of_an_earlier_training_are_removed_if_the_new_one_diverges(tmp_path: Path) -> None:
    run(tmp_path, 'mkdir -p "$1"')
    assert (tmp_path / "score.bad").exists()
    run(tmp_path, f"printf '%s' '{log(end=ERROR)}'; exit 1")
    assert not (tmp_path / "score.bad").exists()


def test_another_failure_is_no_divergence(tmp_path: Path) -> None:
    with pytest.raises(Failed, match="train:bad failed with exit status 1"):
        run(tmp_path, "echo RuntimeError: out of memory; exit 1")


def test_a_learning_rate_that_diverges_is_reported_beside_the_best(tmp_path: Path) -> None:
    variant = Variant("RTE", Model("raffel", Path()), "none")
    results = Results(tmp_path, "m4m", Grid([2.5e-5, 3e-5, 1.0], [3], [1, 2]))
    (tmp_path / "logs").mkdir()
    (tmp_path / "scores").mkdir()
    for trial in results.grid.trials(variant):
        bad = trial.lr == 1.0 or (trial.lr, trial.seed) == (3e-5, 2)
        (tmp_path / "logs" / f"{trial.slug}.train.log").write_text(log(7, 5, end=ERROR if bad else ""))
        if not bad:
            scores = {"scores": {"valid": {"accuracy": 100 * trial.lr}}}
            (tmp_path / "scores" / f"{trial.slug}.json").write_text(json.dumps(scores))
    best, other = results.reported(variant)
    assert ([trial.lr for trial in best.finished], best.diverged) == (
        [3e-5],
        "seed 2: update 40, loss 5 (then not finite)",
    )
    assert ([trial.lr for trial in other.trials], other.finished) == ([1.0, 1.0], [])
