"""Test runs of a toy recipe: resuming, two runs at the same time, chosen stages, result.json."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import filelock
import pytest
from support_processes import wait_for
from support_readonly import read_only

from recipes.lib import run, runner
from recipes.lib.command import main
from recipes.lib.stages import Ledger, Stage
from tests.toy_recipe import TOY, toy

ROOT = Path(__file__).resolve().parents[3]
NAMES = ["data", "train:left", "score:left", "train:right", "score:right", "table"]


def begin(output: Path, slow: str, *options: str) -> subprocess.Popen[str]:
    command = [sys.executable, "tests/toy_recipe.py", "--output", str(output), *options]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TOY_SLOW": slow}
    return subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def done(output: Path) -> list[str]:
    return [name for name in NAMES if (output / ".stages" / f"{name.replace(':', '.')}.done").exists()]


def markers(output: Path) -> dict[str, float]:
    return {path.stem: path.stat().st_mtime_ns for path in (output / ".stages").glob("*.done")}


def files(output: Path) -> dict[str, str]:
    return {name: (output / name.replace(":", ".")).read_text() for name in NAMES}


@pytest.fixture
def finished(tmp_path: Path) -> Path:
    assert toy(tmp_path / "out") == 0
    return tmp_path / "out"


# --- resuming


@pytest.mark.parametrize("stage", ["data", "train:left", "score:left", "table"])
def test_a_run_killed_in_any_stage_continues_to_the_same_result(stage, tmp_path, finished):
    """The command ends soon after its run is killed; until then the next run waits."""
    output = tmp_path / "a b"
    with begin(output, stage, "--jobs", "2") as process:
        wait_for(lambda: (output / stage.replace(":", ".")).exists() and stage not in done(output), process)
        process.send_signal(signal.SIGKILL)
    assert stage not in done(output)
    assert not (output / "result.json").exists()
    before = markers(output)
    assert toy(output, "--jobs", "2") == 0
    assert files(output) == files(finished)
    assert before.items() <= markers(output).items()  # finished stages were not repeated
    assert result(output)["results"] == result(finished)["results"]


def test_a_terminated_run_says_that_it_can_continue(tmp_path):
    with begin(tmp_path, "data") as process:
        wait_for(lambda: (tmp_path / "data").exists(), process)
        process.terminate()
        _, errors = process.communicate()
    assert process.returncode == 128 + signal.SIGTERM
    assert errors == "ended by the signal SIGTERM. Run the same command again to continue from here.\n"
    assert toy(tmp_path) == 0


def test_a_finished_run_does_nothing(finished, capsys):
    before = markers(finished)
    capsys.readouterr()
    assert toy(finished) == 0
    assert "All stages are already done" in capsys.readouterr().out
    assert markers(finished) == before


def test_a_second_run_in_the_same_folder_is_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(run, "PATIENCE", 0.2)
    with begin(tmp_path / "out", "data") as process:
        wait_for(lambda: (tmp_path / "out" / "data").exists(), process)
        assert toy(tmp_path / "out") == 2
        assert f"--output {tmp_path / 'out'}: another run is using this folder" in capsys.readouterr().err
        assert process.wait(timeout=20) == 0


def test_a_changed_option_repeats_the_stages_that_depend_on_it(finished):
    before = markers(finished)
    assert toy(finished, "--train.rate", "0.1") == 0
    after = markers(finished)
    assert {name for name in after if after[name] == before[name]} == {"data"}
    assert "rate=0.1" in (finished / "table").read_text()
    assert toy(finished, "--train.rate", "0.1", "--word", "bye") == 0
    assert not {name for name, made in markers(finished).items() if made in after.values()}


def test_repeated_stages_and_the_renamed_report_are_printed(finished, capsys):
    report = (finished / "report.md").read_text()
    capsys.readouterr()
    assert toy(finished, "--train.rate", "0.1", "--stop-stage", "train:left") == 0
    shown = capsys.readouterr().out
    assert "repeating stages whose settings, files or code changed: train:left\n" in shown
    assert f"renamed the earlier report.md to {os.path.relpath(finished / 'report.md.old')}" in shown
    assert (finished / "report.md.old").read_text() == report
    assert json.loads((finished / "result.json.old").read_text())["recipe"] == "toy"
    assert not (finished / "result.json").exists()
    assert toy(finished, "--train.rate", "0.1") == 0
    assert "changed: score:left, train:right, score:right, table\n" in capsys.readouterr().out
    assert (finished / "report.md").exists()


def other(output: Path) -> int:
    return main(replace(TOY, name="other"), ["--output", str(output)])


@pytest.mark.parametrize("old", [False, True], ids=["marked", "of before folders were marked"])
def test_the_folder_of_another_recipe_is_refused(finished, old, capsys):
    if old:
        (finished / ".stages" / "recipe").unlink()
    before = markers(finished), (finished / "result.json").read_text()
    assert other(finished) == 2
    assert "has a run of recipes/toy. Choose another folder" in capsys.readouterr().err
    assert (markers(finished), (finished / "result.json").read_text()) == before


def test_the_folder_of_an_unfinished_run_is_refused_too(tmp_path, capsys):
    assert toy(tmp_path / "out", "--stop-stage", "data") == 0
    assert other(tmp_path / "out") == 2
    assert "has a run of recipes/toy" in capsys.readouterr().err


@pytest.mark.parametrize("options", [[], ["--list"]], ids=["run", "list"])
@pytest.mark.parametrize("below", ["", "below"])
def test_an_output_that_is_a_file_is_refused(below, options, tmp_path, capsys):
    (tmp_path / "file").write_text("mine")
    assert toy(tmp_path / "file" / below, *options) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"error: --output {tmp_path / 'file' / below}")
    assert error.endswith("is a file. Give the path of a folder.\n")


def test_an_output_that_cannot_be_created_is_refused(capsys):
    assert toy(Path("/proc/no-such")) == 2
    assert "--output /proc/no-such: the folder cannot be created" in capsys.readouterr().err


def test_a_read_only_output_fails_in_one_line(tmp_path, capsys):
    (tmp_path / "out").mkdir()
    with read_only(tmp_path / "out"):
        assert toy(tmp_path / "out") in (1, 2)
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert error.count("\n") == 1
    assert str(tmp_path / "out") in error
    assert toy(tmp_path / "out") == 0


def test_an_output_that_disappears_during_a_run_is_named(tmp_path, monkeypatch, capsys):
    """Nothing is written to a folder that somebody has removed, and a later run begins anew."""
    real = Ledger.is_done

    def vanishing(ledger, stage):
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
        return real(ledger, stage)

    monkeypatch.setattr(Ledger, "is_done", vanishing)
    status = toy(tmp_path / "out")
    monkeypatch.undo()
    assert "Traceback" not in capsys.readouterr().err
    assert status in (0, 1)
    assert toy(tmp_path / "out") == 0
    assert (tmp_path / "out" / "result.json").exists()


def test_a_full_disk_fails_in_one_line_and_the_run_continues_later(tmp_path, monkeypatch, capsys):
    def full(lock, timeout):
        raise OSError(28, "No space left on device", lock.lock_file)

    monkeypatch.setattr(filelock.FileLock, "acquire", full)
    assert toy(tmp_path / "out") == 1
    assert "error: " in (shown := capsys.readouterr().err)
    assert "No space left on device" in shown
    monkeypatch.undo()
    assert toy(tmp_path / "out") == 0


# --- choosing stages


def test_stage_and_stop_stage(tmp_path, capsys):
    output = tmp_path / "out"
    assert toy(output, "--stage", "train") == 2
    assert "train:left needs the stage data, which is not done" in capsys.readouterr().err
    assert toy(output, "--stop-stage", "data") == 0
    assert done(output) == ["data"]
    capsys.readouterr()
    assert toy(output, "--stop-stage", "data") == 0
    assert "The chosen stages were already done. Other stages are not done yet" in capsys.readouterr().out
    assert toy(output, "--stage", "train:right", "--stop-stage", "score:right") == 0
    assert done(output) == ["data", "train:right", "score:right"]
    assert not (output / "result.json").exists()
    assert toy(output, "--stage", "train") == 0
    assert done(output) == NAMES
    assert (output / "result.json").exists()


def test_force_repeats_the_chosen_stages_and_later_the_stages_that_read_them(finished):
    before = markers(finished)
    assert toy(finished, "--force", "--stage", "train:left", "--stop-stage", "train:left") == 0
    assert done(finished) == ["data", "train:left", "train:right", "score:right"]
    assert not (finished / "result.json").exists()
    assert toy(finished) == 0
    after = markers(finished)
    assert {name for name in after if after[name] == before[name]} == {"data", "train.right", "score.right"}


def test_force_forgets_nothing_when_it_is_refused(finished):
    (finished / ".stages" / "data.done").unlink()
    assert toy(finished, "--force", "--stage", "train") == 2
    assert done(finished) == NAMES[1:]


def test_an_unknown_stage_and_a_wrong_order_are_refused(tmp_path, capsys):
    assert toy(tmp_path, "--stage", "trian") == 2
    assert "no stage 'trian'; did you mean train?" in capsys.readouterr().err
    assert toy(tmp_path, "--stage", "table", "--stop-stage", "data") == 2
    assert "comes after" in capsys.readouterr().err


# --- what is left at the end


def result(output: Path) -> dict:
    return json.loads((output / "result.json").read_text())


def test_result_json_and_the_report_say_how_results_were_computed(finished):
    facts = result(finished)
    assert facts["command"] == f"recipes/toy/run.sh --output {finished}"
    assert (facts["recipe"], facts["seed"], facts["settings"]["word"]) == ("toy", 1, "hello")
    assert set(facts["versions"]) >= {"python"}
    assert set(facts["machine"]) == {"cores", "memory_gib", "gpus"}
    assert list(facts["minutes"]) == NAMES
    assert facts["commit"]
    assert facts["results"][0] == {"line": "hello 3"}
    report = (finished / "report.md").read_text()
    assert "| hello 3" in report
    assert facts["command"] in report


def test_a_long_line_of_a_log_does_not_hide_the_error(tmp_path):
    log = tmp_path / "log"
    log.write_text("{'_name': None, " * 1000 + "}\nfairseq-train: error: --pos-enc is wrong.\n")
    message = runner.explain(Stage("train:left", ("fairseq-train",), ()), "failed", log)
    start, error = message.splitlines()[-2:]
    assert start.endswith(" [...]")
    assert len(start) < 500
    assert error == "fairseq-train: error: --pos-enc is wrong."
    log.write_text("first\n" + "x " * 1000 + "No space left on device")
    assert f"{'x ' * 1000}No space left on device" in runner.explain(Stage("a", ("b",), ()), "failed", log)
    assert "The disk is full" in runner.explain(Stage("train:left", ("fairseq-train",), ()), "failed", log)


def test_a_failed_stage_is_named_with_its_command_and_log(tmp_path, capsys):
    assert toy(tmp_path / "out", "--train.rate", "1; no-such-command;") == 1
    shown = capsys.readouterr()
    lines = shown.err.splitlines()
    assert lines[0] == "error: train:left failed with exit status 127"
    assert [line for line in lines if "command: sh -euc" in line] == [line for line in lines if "rate=1;" in line]
    for part in ("left.train.log, which ends with:", "no-such-command: not found"):
        assert part in shown.err
    assert "no-such-command" not in shown.out.replace("train:left failed with exit status 127; the other", "")
    assert done(tmp_path / "out") == ["data"]
    assert toy(tmp_path / "out") == 0
