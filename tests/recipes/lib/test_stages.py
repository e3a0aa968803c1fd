"""Test stages that are done, begun, changed or failed, and their logs and progress."""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support_processes import wait_for

from recipes.lib.logs import progress, tail
from recipes.lib.package import write_whole
from recipes.lib.runner import Failed, Runner
from recipes.lib.screen import Screen
from recipes.lib.stages import Ledger, Stage

ROOT = Path(__file__).resolve().parents[3]


def a_stage(folder: Path, text: str = "one", code: str | None = None, **options: object) -> Stage:
    """Return a stage that appends `text` to its output, so that its runs can be counted."""
    code = code or f"open({str(folder / 'out')!r}, 'a').write({text!r})"
    return Stage("one", ("python", "-c", code), (folder / "out",), **options)  # type: ignore[arg-type]


def run(folder: Path, *stages: Stage) -> None:
    with (folder / "lock").open("w") as lock:
        Runner(folder, Ledger(folder / ".stages"), Screen(), lock.fileno(), ({}, {})).run([[list(stages)]])


def test_a_done_stage_is_not_run_again_and_a_changed_stage_is(tmp_path):
    for _ in range(2):
        run(tmp_path, a_stage(tmp_path))
        assert (tmp_path / "out").read_text() == "one"
    run(tmp_path, a_stage(tmp_path, "two"))
    assert (tmp_path / "out").read_text() == "two"


def test_changed_input_files_and_earlier_stages_count(tmp_path):
    source = tmp_path / "source"
    source.write_text("a")
    first = a_stage(tmp_path, inputs=(source,))
    second = Stage("second", ("true",), (), after=(first,))
    keys = first.key(), second.key()
    source.write_text("b")
    assert first.key() != keys[0]
    assert second.key() != keys[1]


def test_a_folder_may_be_an_input(tmp_path):
    stage = a_stage(tmp_path, inputs=(tmp_path / "corpus",))
    keys = [stage.key()]
    for name, text in (("train.en", "a"), ("train.de", "a"), ("train.de", "b")):
        (tmp_path / "corpus").mkdir(exist_ok=True)
        (tmp_path / "corpus" / name).write_text(text)
        keys.append(stage.key())
    assert len(set(keys)) == 4


def test_a_stage_with_a_lost_output_or_an_unfinished_marker_runs_again(tmp_path):
    stage, ledger = a_stage(tmp_path), Ledger(tmp_path / ".stages")
    run(tmp_path, stage)
    (tmp_path / "out").unlink()
    assert not ledger.is_done(stage)
    ledger.start(stage)  # killed while it was writing
    (tmp_path / "out").write_text("half")
    assert not ledger.is_done(stage)
    run(tmp_path, stage)
    assert (tmp_path / "out").read_text() == "one"


def test_a_marker_that_a_crash_emptied_counts_as_missing(tmp_path):
    run(tmp_path, a_stage(tmp_path))
    (tmp_path / ".stages" / "one.done").write_text("")
    assert not Ledger(tmp_path / ".stages").is_done(a_stage(tmp_path))


def test_a_stage_that_resumes_keeps_its_own_leftovers_only(tmp_path, capsys):
    ledger = Ledger(tmp_path / ".stages")
    run(tmp_path, a_stage(tmp_path, "zero", resumes=True))
    capsys.readouterr()
    for text, left in (("one", "half" + "one"), ("two", "two")):
        ledger.start(a_stage(tmp_path, "one", resumes=True))
        (tmp_path / "out").write_text("half")
        run(tmp_path, a_stage(tmp_path, text, resumes=True))
        assert (tmp_path / "out").read_text() == left
    assert re.search(r"one \(\d+s in all\)\n", capsys.readouterr().out)  # the time of both attempts


def test_a_failure_shows_the_end_of_the_log_and_its_name(tmp_path):
    stage = a_stage(tmp_path, code="raise SystemExit('what went wrong')")
    with pytest.raises(Failed, match="what went wrong") as failure:
        run(tmp_path, stage)
    assert "one.log" in str(failure.value)
    assert not Ledger(tmp_path / ".stages").is_done(stage)
    assert "$ python -c" in tail(tmp_path / "logs" / "one.log")


def test_progress_is_read_from_the_log_of_this_attempt(tmp_path):
    stage = Stage("train:shaw", ("fairseq-train", "--max-update", "900"), ())
    log = tmp_path / "shaw.train.log"
    line = '2026 | INFO | train_inner | {{"epoch": 1, "loss": "1.2", "num_updates": "{}"}}\n'
    log.write_text("$ fairseq-train\n" + line.format(300) + "$ fairseq-train\n")
    assert progress(stage, log) == "train:shaw starting"
    log.write_text(log.read_text() + line.format(320))
    assert progress(stage, log) == "train:shaw 320/900 loss 1.2"


def test_a_terminated_run_ends_its_commands(tmp_path):
    script = f"""
from pathlib import Path
from tests.recipes.lib import test_stages
folder = Path({str(tmp_path)!r})
code = f"import os, time; open({{str(folder / 'pid')!r}}, 'w').write(str(os.getpid())); time.sleep(60)"
test_stages.run(folder, test_stages.a_stage(folder, code=code))
"""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"}
    with subprocess.Popen([sys.executable, "-c", script], env=environment, stdout=subprocess.PIPE) as process:
        wait_for(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text())
        pid = int((tmp_path / "pid").read_text())
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=20) == 143
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_failure_names_its_command_and_its_log(tmp_path):
    with pytest.raises(Failed, match="command: python -c 'raise") as failure:
        run(tmp_path, a_stage(tmp_path, code="raise SystemExit(3)"))
    assert "one failed with exit status 3" in str(failure.value)
    assert "one.log" in str(failure.value)


def test_a_missing_command_and_a_missing_output_fail(tmp_path):
    with pytest.raises(Failed, match=r"(?s)exit status 127\n.*\nerror: no-such-command: No such file"):
        run(tmp_path, Stage("one", ("no-such-command",), ()))
    with pytest.raises(Failed, match=r"did not write .*out"):
        run(tmp_path, Stage("one", ("true",), (tmp_path / "out",)))
    with pytest.raises(Failed, match=r"cannot start: this input is missing: .*corpus"):
        run(tmp_path, Stage("one", ("true",), (), inputs=(tmp_path / "corpus",)))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux has it")
def test_a_full_disk_under_a_stage_leaves_no_marker(tmp_path):
    code = f"open({str(tmp_path / 'out')!r}, 'w').close(); print('text', file=open('/dev/full', 'w'), flush=True)"
    stage = a_stage(tmp_path, code=code)
    with pytest.raises(Failed, match="The disk is full"):
        run(tmp_path, stage)
    assert not Ledger(tmp_path / ".stages").is_done(stage)


def test_a_disk_that_fills_while_the_marker_is_written_leaves_none(tmp_path, monkeypatch):
    written = Path.write_text

    def fill(path: Path, text: str, **options: str) -> int:
        if path.name.endswith(".done.partial"):
            written(path, text[:5], **options)
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        return written(path, text, **options)

    monkeypatch.setattr(Path, "write_text", fill)
    with pytest.raises(Failed, match=r"one failed: .*No space left"):
        run(tmp_path, a_stage(tmp_path))
    monkeypatch.undo()
    assert [path.name for path in (tmp_path / ".stages").iterdir()] == ["one.begun"]
    run(tmp_path, a_stage(tmp_path))
    assert (tmp_path / "out").read_text() == "one"


def test_a_file_survives_a_failed_write(tmp_path, monkeypatch):
    write_whole(tmp_path / "file", "old")
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError(errno.ENOSPC, "full")))
    with pytest.raises(OSError, match="full"):
        write_whole(tmp_path / "file", "new")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"file": "old"}


# --- what must not be lost


def test_files_that_no_run_wrote_are_not_removed(tmp_path):
    (tmp_path / "out").write_text("mine")
    with pytest.raises(Failed, match="out: this output of the stage already exists"):
        run(tmp_path, a_stage(tmp_path))
    assert (tmp_path / "out").read_text() == "mine"


def test_an_earlier_training_is_renamed_not_deleted(tmp_path, capsys):
    run(tmp_path, a_stage(tmp_path, "one", resumes=True))
    run(tmp_path, a_stage(tmp_path, "two", resumes=True))
    (aside,) = tmp_path.glob("out.old-*")
    assert (aside.read_text(), (tmp_path / "out").read_text()) == ("one", "two")
    shown = capsys.readouterr().out
    assert f"one starts again, because its settings changed. Earlier output: {aside}" in shown
    log = tmp_path / "logs" / "one.log"  # curves are read from the log, which would contain those of another training
    assert log.read_text().count("$ ") == log.with_name("one.log.old").read_text().count("$ ") == 1


def test_a_training_with_an_emptied_marker_is_renamed_and_a_forgotten_training_is_not(tmp_path):
    stage, ledger = a_stage(tmp_path, resumes=True), Ledger(tmp_path / ".stages")
    ledger.start(stage)
    (tmp_path / "out").write_text("days of work")
    (tmp_path / ".stages" / "one.begun").write_text("")
    run(tmp_path, stage)
    assert (tmp_path / "out.old-unknown").read_text() == "days of work"
    ledger.forget([stage], [stage])  # --force
    run(tmp_path, stage)
    assert sorted(path.name for path in tmp_path.glob("out*")) == ["out", "out.old-unknown"]


def test_the_time_of_all_attempts_counts_and_no_pause(tmp_path):
    stage, ledger = a_stage(tmp_path, resumes=True), Ledger(tmp_path / ".stages")
    ledger.start(stage, "abc")
    begun = tmp_path / ".stages" / "one.begun"
    facts = json.loads(begun.read_text())
    facts["attempts"][0]["started"] -= 1000
    begun.write_text(json.dumps(facts))
    ledger.start(stage, "def", seen=facts["attempts"][0]["started"] + 60)  # the stage was killed after a minute
    ledger.finish(stage)
    marker = ledger.read(stage)
    assert marker["seconds"] == pytest.approx(60, abs=5)
    assert (marker["commit"], marker["attempts"]) == ("abc then def", 2)


def test_a_job_that_a_stage_submits_to_slurm_has_the_name_of_the_stage(tmp_path):
    code = f"import os; open({str(tmp_path / 'out')!r}, 'w').write(os.environ['SLURM_JOB_NAME'])"
    run(tmp_path, a_stage(tmp_path, code=code))
    assert (tmp_path / "out").read_text() == "one"


def test_a_failed_chain_does_not_stop_the_other_chains(tmp_path):
    bad = Stage("bad", ("python", "-c", "raise SystemExit('no')"), ())
    slow = a_stage(tmp_path, code=f"import time; time.sleep(1); open({str(tmp_path / 'out')!r}, 'w').write('done')")
    later = Stage("later", ("true",), (), after=(slow,))
    with (tmp_path / "lock").open("w") as lock:
        runner = Runner(tmp_path, Ledger(tmp_path / ".stages"), Screen(), lock.fileno(), ({}, {}))
        with pytest.raises(Failed, match="bad failed with exit status 1"):
            runner.run([[[bad], [slow]], [[later]]])
    assert (tmp_path / "out").read_text() == "done"
    assert not Ledger(tmp_path / ".stages").is_done(later)


def test_a_log_line_of_two_processes_is_skipped(tmp_path):
    log = tmp_path / "log"
    log.write_text('$ x\n2026 | train_inner | {"epoch": 1, "loss": WARNING x}\n')
    assert progress(Stage("train:shaw", ("fairseq-train",), ()), log) == "train:shaw"
