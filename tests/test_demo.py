"""The demo: its sentences, its plan, and that a run resumes and re-does just what it must."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from recipes.demo import __main__ as demo
from recipes.demo import corpus, report, settings
from recipes.demo.plan import make_plan
from recipes.demo.runner import Failed, Runner, progress, tail
from recipes.demo.screen import Screen
from recipes.demo.stages import Ledger, Stage

ROOT = Path(__file__).resolve().parents[1]
SIZES = {"train": 1500, "valid": 50, "test": 100}


# --- the sentences


@pytest.fixture(scope="module")
def splits() -> dict[str, list[corpus.Pair]]:
    return corpus.generate(SIZES, seed=1)


def test_a_seed_makes_the_same_sentences_and_another_seed_others(splits):
    assert corpus.generate(SIZES, seed=1) == splits
    assert corpus.generate(SIZES, seed=2) != splits


def test_no_sentence_of_one_split_is_in_another(splits):
    sources = [pair.source for pairs in splits.values() for pair in pairs]
    assert len(sources) == len(set(sources)) == sum(SIZES.values())


def test_both_sides_are_text_as_people_write_it(splits):
    for text in itertools.chain.from_iterable(splits["test"]):
        assert text[0].isupper()
        assert text.endswith(".")
        assert "  " not in text


def words(text: str) -> list[str]:
    return text.lower().rstrip(".").split()


def bag(text: str) -> Counter[str]:
    return Counter(words(text))


def test_every_sentence_has_another_with_the_same_words_and_another_translation():
    """Subject and object change places: a model that sees a bag of words cannot tell which of the two it has."""
    lexicon = corpus.Lexicon()
    grammar = corpus.Grammar(random.Random(1), lexicon)
    for _ in range(300):
        subject, verb, object_, adverb = grammar.parts()
        given = corpus.put(lexicon, subject, verb, object_, adverb)
        swapped = corpus.put(lexicon, object_, verb, subject, adverb)
        assert bag(given.source) == bag(swapped.source)
        assert given.target != swapped.target


def test_the_verb_agrees_with_a_subject_that_stands_far_away():
    lexicon = corpus.Lexicon()
    dog, cats, queen = (lexicon.noun(index, plural=index == 1) for index in (0, 1, 10))
    clause = corpus.Clause(1, corpus.Phrase(cats), head_acts=True)
    pair = corpus.put(lexicon, corpus.Phrase(dog, clause=clause), 0, corpus.Phrase(queen), None)
    assert pair.source == "The dog that chased the cats saw the queen."
    assert len({noun.ending for noun in (dog, cats, queen)}) == 3
    assert words(pair.target)[-1] == lexicon.verbs[0] + "t" + dog.ending


def test_the_translation_is_a_function_of_the_ordered_sentence():
    """Different sources may not need different targets, but one source has one: nothing is left to chance."""
    first, second = (corpus.generate({"train": 4000}, seed=seed)["train"] for seed in (1, 2))
    known = dict(first)
    shared = [pair for pair in second if pair.source in known]
    assert shared
    assert all(known[pair.source] == pair.target for pair in shared)


# --- settings and plan


def test_presets_load_and_none_is_always_compared():
    assert {"demo", "smoke"} <= set(settings.presets())
    assert settings.load("demo", encodings="shaw,t5").encodings == ["none", "shaw", "t5"]
    assert len(settings.load("demo").encodings) >= 6


def test_an_unknown_setting_is_refused(tmp_path, monkeypatch):
    text = (settings.CONF / "smoke.toml").read_text()
    (tmp_path / "odd.toml").write_text("sede = 3\n" + text)
    monkeypatch.setattr(settings, "CONF", tmp_path)
    with pytest.raises(SystemExit, match="sede"):
        settings.load("odd")


def test_flags_become_arguments():
    flags: settings.Flags = {"beam": 4, "cpu": True, "fp16": False, "lr": 0.005}
    assert settings.as_arguments(flags) == ["--beam", "4", "--cpu", "--lr", "0.005"]


def test_a_changed_setting_changes_just_the_keys_that_depend_on_it(tmp_path):
    old = settings.load("demo")
    new = replace(old, generate={**old.generate, "beam": 5})
    changed = changed_stages(old, new, tmp_path)
    kinds = {name.partition(":")[0] for name in changed}
    assert kinds == {"generate", "score", "report"}
    assert "corpus" in changed_stages(old, replace(old, seed=2), tmp_path)


def changed_stages(old: settings.Settings, new: settings.Settings, output: Path) -> set[str]:
    plans = [make_plan(one, output, "results/demo").stages() for one in (old, new)]
    return {a.name for a, b in zip(*plans, strict=True) if a.key() != b.key()}


def test_no_sentence_is_lost_to_the_batch_size():
    commands = [s.command for s in make_plan(settings.load("demo"), ROOT, "x").stages()]
    for command in commands:
        if command[0] in ("fairseq-train", "fairseq-generate"):
            assert command[command.index("--required-batch-size-multiple") + 1] == "1"


@pytest.mark.parametrize("option", ["--help", "--list", "--dry-run"])
def test_looking_needs_no_data(option, tmp_path, capsys):
    with contextlib.suppress(SystemExit):  # argparse's way out of --help
        assert demo.main(["--output", str(tmp_path / "new"), option]) == 0
    shown = capsys.readouterr().out
    assert {"--help": "--encodings", "--list": "open  corpus", "--dry-run": "fairseq-train"}[option] in shown
    assert not (tmp_path / "new").exists()


def test_the_dry_run_prints_every_command(tmp_path, capsys):
    demo.main(["--dry-run", "--output", str(tmp_path), "--encodings", "shaw"])
    shown = capsys.readouterr().out
    for stage in make_plan(settings.load("demo", "shaw"), tmp_path, os.path.relpath(tmp_path, ROOT)).stages():
        assert f"# {stage.name}\n{stage.command[0]}" in shown


# --- stages: done, begun, changed


def a_stage(folder: Path, text: str = "one", code: str | None = None, **options: object) -> Stage:
    """A stage that appends `text` to its output, so that the number of its runs can be read."""
    code = code or f"open({str(folder / 'out')!r}, 'a').write({text!r})"
    return Stage("one", ("python", "-c", code), (folder / "out",), **options)  # type: ignore[arg-type]


def run(folder: Path, *stages: Stage) -> None:
    with (folder / "lock").open("w") as lock:
        Runner(ROOT, folder, Ledger(folder / ".stages"), Screen(), 2, lock.fileno()).run([[list(stages)]])


def test_a_done_stage_is_not_run_again_and_a_changed_one_is(tmp_path):
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


def test_a_lost_output_or_an_unfinished_marker_is_made_anew(tmp_path):
    stage, ledger = a_stage(tmp_path), Ledger(tmp_path / ".stages")
    run(tmp_path, stage)
    (tmp_path / "out").unlink()
    assert not ledger.is_done(stage)
    ledger.start(stage)  # ... and killed while it wrote
    (tmp_path / "out").write_text("half")
    assert not ledger.is_done(stage)
    run(tmp_path, stage)
    assert (tmp_path / "out").read_text() == "one"


def test_a_stage_that_resumes_keeps_its_own_leftovers_only(tmp_path):
    ledger = Ledger(tmp_path / ".stages")
    for text, left in (("one", "half" + "one"), ("two", "two")):
        ledger.start(a_stage(tmp_path, "one", resumes=True))
        (tmp_path / "out").write_text("half")
        run(tmp_path, a_stage(tmp_path, text, resumes=True))
        assert (tmp_path / "out").read_text() == left


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
from tests import test_demo
folder = Path({str(tmp_path)!r})
code = f"import os, time; open({{str(folder / 'pid')!r}}, 'w').write(str(os.getpid())); time.sleep(60)"
test_demo.run(folder, test_demo.a_stage(folder, code=code))
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen([sys.executable, "-c", script], env=environment, stdout=subprocess.PIPE) as process:
        pid = wait_for(tmp_path / "pid")
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=20) == 143
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def wait_for(path: Path) -> int:
    for _ in range(200):
        if path.exists() and path.read_text():
            return int(path.read_text())
        time.sleep(0.1)
    raise AssertionError(f"{path} never came")


# --- the report


def test_rows_have_the_promised_keys_and_the_best_comes_first(tmp_path):
    rows = report.collect(finished_run(tmp_path, none=12.0, shaw=90.0), ["none", "shaw"])
    assert [tuple(row) for row in rows] == [report.KEYS] * 2
    assert [row["encoding"] for row in rows] == ["shaw", "none"]
    assert rows[0]["parameters"] == 128


def finished_run(folder: Path, **bleu: float) -> Path:
    (folder / "scores").mkdir()
    (folder / ".stages").mkdir()
    for name, value in bleu.items():
        (folder / "scores" / name).write_text(json.dumps({"bleu": value, "signature": "nrefs:1"}))
        marker = {"command": f"fairseq-train --pos-enc {name}", "commit": "abc", "started": 0, "ended": 60}
        for stage in ("train", "generate"):
            (folder / ".stages" / f"{stage}.{name}.done").write_text(json.dumps(marker))
    measured = {name: {"parameters": 128 * (name != "none"), "speed_ratio": 1.0} for name in bleu}
    (folder / "measured.json").write_text(json.dumps(measured))
    return folder


def test_the_time_counts_what_ran_side_by_side_once_and_no_pause():
    assert report.busy_minutes([(0, 60), (30, 90), (600, 630)]) == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("none", "best", "status"), [(12, 90, 0), (0, 90, 1), (85, 90, 1)], ids=["good", "impossible", "needless"]
)
def test_the_demo_fails_where_its_claim_does(none, best, status, capsys):
    rows = [{"encoding": "none", "bleu": none}, {"encoding": "shaw", "bleu": best}]
    assert demo.check(rows, least_gap=10) == status
    if status:
        assert f"shaw, {best:.1f}" in capsys.readouterr().err
