"""Check what the engine of the recipes promises, with the toy recipe that trains in milliseconds."""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import shutil
import signal
import subprocess
import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import support_curves
from support_recipes import RECIPES, ROOT, TOY, WITH_GPU, environment, ran, refused, run

PLACES = {"words.txt", "none.s1@1", "none.s1@3", "none.s1.json", "shaw.s2@4", "shaw.s2.json"}
LAUNCHED = tomllib.loads(Path(__file__).with_name("launch.toml").read_text("utf-8"))
TWO_SEEDS = ("--seeds", "1,2", "--until", "score")


def finish(output: Path, *words: object, **variables: str) -> str:
    """Run the toy recipe to its end, and return what it printed."""
    process = run(TOY, "--output", output, *words, **variables)
    assert process.returncode == 0, process.stdout + process.stderr
    return process.stdout


def scores(output: Path) -> dict[str, str]:
    """Return the scores of a run, which finetuning has in a folder of its evaluation, and of runs inside of it."""
    return {str(path.relative_to(output)): path.read_text() for path in sorted(output.glob("**/scores/*.json"))}


def holders(output: Path) -> set[int]:
    """Return the processes that have the lock of an output folder, or of a run inside of it."""
    locks = [os.stat(lock) for lock in output.rglob(".lock")]
    found = set()
    for file in Path("/proc").glob("[0-9]*/fd/*"):
        with contextlib.suppress(OSError):  # it has just been closed
            if any(os.path.samestat(os.stat(file), lock) for lock in locks):
                found.add(int(file.parts[2]))
    return found


def start(places: str, output: Path, *words: object, recipe: Path = TOY, **variables: str) -> subprocess.Popen[str]:
    """Start the toy recipe, or one that runs it, and return as soon as a command waits at one of the places.

    No command goes on behind one of them. The file `place` beside the output then names where it waits.
    """
    pipe = output.with_name("pipe")
    pipe.unlink(missing_ok=True)
    os.mkfifo(pipe)
    command = [str(recipe / "run.sh"), "--output", str(output), *map(str, words)]
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment(TOY_STOP=places, TOY_PIPE=str(pipe), **variables),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    output.with_name("place").write_text(pipe.read_text())
    return process


def cut_power(process: subprocess.Popen[str], output: Path) -> None:
    """Kill a run and everything that it started, also what it starts meanwhile."""
    while numbers := holders(output):
        for number in numbers:
            with contextlib.suppress(ProcessLookupError):  # it has just ended
                os.kill(number, signal.SIGKILL)
    process.wait()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the output folder of a run that was never interrupted."""
    output = tmp_path_factory.mktemp("whole") / "out"
    finish(output, *TWO_SEEDS)
    return output


@pytest.fixture
def moved(whole: Path, tmp_path: Path) -> Path:
    """Return the run in another folder."""
    return shutil.copytree(whole, tmp_path / "moved")


# --- interrupted runs


@pytest.mark.parametrize("jobs", [pytest.param(1, marks=pytest.mark.long), 2])
def test_a_run_killed_at_any_place_ends_with_the_same_scores(jobs: int, tmp_path: Path, whole: Path) -> None:
    output, left = tmp_path / "out", {*PLACES}
    while left:
        cut_power(start(" ".join(left), output, *TWO_SEEDS, "--jobs", jobs), output)
        left -= {*(tmp_path / "place").read_text().split()}
    finish(output, *TWO_SEEDS)
    assert scores(output) == scores(whole)
    logs = [path.read_text() for path in (output / "logs").glob("*.train.log")]
    assert any("starts at update 2" in log for log in logs)  # a training goes on, it does not begin again


def test_a_run_that_is_stopped_leaves_no_process(tmp_path: Path, whole: Path) -> None:
    output = tmp_path / "out"
    for update, number in enumerate((signal.SIGTERM, signal.SIGINT, signal.SIGHUP), 1):
        process = start(f"none.s1@{update}", output, *TWO_SEEDS, "--jobs", 2)
        process.send_signal(number)
        assert process.wait() == 143
        assert not holders(output)
        assert not list((output / "scores").glob("*.failed"))
    finish(output, *TWO_SEEDS)
    assert scores(output) == scores(whole)


def test_a_run_that_is_stopped_waits_for_what_bash_does_not_list_among_its_jobs(tmp_path: Path) -> None:
    """Each step asks git for the commit in a command substitution, which inherits the lock."""
    (tmp_path / "git").write_text('#!/bin/sh\nprintf git >"$TOY_PIPE"\nread -r line <"$TOY_PIPE"\n')
    (tmp_path / "git").chmod(0o755)
    process = start("git", tmp_path / "out", PATH=f"{tmp_path}:{os.environ['PATH']}")
    process.terminate()
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.3)
    (tmp_path / "pipe").write_text("end\n")
    assert process.wait() == 143
    assert not holders(tmp_path / "out")


def test_a_second_run_is_refused_while_a_command_of_the_first_lives(tmp_path: Path) -> None:
    output = tmp_path / "out"
    process = start("none.s1@2", output)
    process.kill()
    process.wait()
    left = holders(output)
    before = (output / "settings.sh").read_text()
    message = refused(TOY, "--output", output, "--word", "other")
    assert {*map(int, re.findall(r"\d+", message.partition("processes: ")[2]))} == left
    assert (output / "settings.sh").read_text() == before
    cut_power(process, output)


def test_a_finished_run_starts_no_python_wherever_it_is_moved(moved: Path, tmp_path: Path) -> None:
    for name in ("python", "python3"):
        (tmp_path / name).write_text("#!/bin/sh\nexit 9\n")
        (tmp_path / name).chmod(0o755)
    assert ran(finish(moved, *TWO_SEEDS)) == []  # it notes the new folder
    assert ran(finish(moved, *TWO_SEEDS, PATH=f"{tmp_path}:{os.environ['PATH']}")) == []


# --- changed words and inputs


def test_changed_words_run_again_what_depends_on_them_and_only_that(tmp_path: Path) -> None:
    output = tmp_path / "out"
    words = ("--until", "score", "--pos-enc", "none")
    models = ["train:none.s1", "score:none.s1"]
    assert ran(finish(output, *words)) == ["words", *models]
    assert ran(finish(output, *words, "--share", 0.4)) == ["score:none.s1"]
    more = ("--until", "score", "--pos-enc", "none,rope")
    assert ran(finish(output, *more, "--share", 0.4)) == ["train:rope.s1", "score:rope.s1"]
    assert ran(finish(output, *words, "--share", 0.4, "--train.lr", 0.1)) == models
    assert (output / "checkpoints" / "none.s1.old" / "checkpoint_last.json").exists()
    assert (output / "logs" / "none.s1.train.log").read_text().count("starts at update") == 1
    assert ran(finish(output, *words, "--word", "other")) == ["words", *models]
    assert ran(finish(output, *words, "--word", "other", "--jobs", 2, "--device", "auto")) == []


def test_words_that_return_after_a_kill_run_again(tmp_path: Path) -> None:
    """The output of the other words must not count as that of the first, although the first were done."""
    output, one = tmp_path / "out", ("--pos-enc", "none")

    def files() -> dict[str, str]:
        checkpoints = {str(path): path.read_text() for path in output.glob("checkpoints/*.s1/*.json")}
        return {**scores(output), **checkpoints, "text": (output / "words.txt").read_text()}

    finish(output, *one, "--until", "score")
    before = files()
    for place in ("words.txt", "none.s1@2"):
        cut_power(start(place, output, *one, "--word", "other"), output)
        finish(output, *one, "--until", "score")
        assert files() == before


def test_a_changed_input_runs_again_what_reads_it(tmp_path: Path) -> None:
    text = tmp_path / "words.txt"
    text.write_text("one\n")
    words = ("--corpus", tmp_path, "--pos-enc", "none", "--until", "score")
    finish(tmp_path / "out", *words)
    assert ran(finish(tmp_path / "out", *words)) == []
    text.write_text("two\n")
    assert ran(finish(tmp_path / "out", *words)) == ["train:none.s1", "score:none.s1"]
    text.unlink()
    assert "words.txt does not exist" in run(TOY, "--output", tmp_path / "out", *words).stderr


@pytest.fixture
def small(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes a recipe with the two steps `first` and `second`, and further lines."""

    def write(*further: str) -> Path:
        recipe = tmp_path / "small"
        (recipe / "conf").mkdir(parents=True, exist_ok=True)
        (recipe / "conf" / "smoke.sh").touch()
        head = f"#!/usr/bin/env bash\n# A.\nsource {ROOT}/recipes/lib/recipe.sh\npreset=smoke  # settings in conf\n"
        head += 'first=1  # text of the first step\nsecond=1  # text of the second step\noptions "$@"\nmark start\n'
        steps = [f'step {name} "$output/{name}" mkdir "$output/{name}" -m "70${name}"' for name in ("first", "second")]
        (recipe / "run.sh").write_text(head + "\n".join([*steps, *further]) + "\n")
        (recipe / "run.sh").chmod(0o755)
        return recipe

    return write


def test_steps_may_depend_on_some_earlier_steps_only(small: Callable[..., Path], tmp_path: Path) -> None:
    recipe = small("after start first", 'step third "$output/third" touch "$output/third"', "after absent")
    words = ("--output", tmp_path / "out")
    assert "after absent: there is no such step or mark" in run(recipe, *words).stderr
    assert ran(run(recipe, *words, "--second", 2).stdout) == ["second"]
    assert ran(run(recipe, *words, "--second", 2, "--first", 2).stdout) == ["first", "second", "third"]


def test_a_step_after_the_models_depends_on_each_of_them(small: Callable[..., Path], tmp_path: Path) -> None:
    mode = "model() { local mode=700; [[ $2 == none ]] || mode=70$second"
    model = f'{mode}; step "make:$1" "$output/$1" mkdir "$output/$1" -m $mode; }}'
    recipe = small(model, "after start", "models model", 'step third "$output/third" touch "$output/third"')
    words = ("--output", tmp_path / "out")
    assert ran(run(recipe, *words).stdout) == ["first", "second", "make:none.s1", "make:shaw.s1", "third"]
    assert ran(run(recipe, *words, "--second", 2).stdout) == ["second", "make:shaw.s1", "third"]


def test_a_run_is_refused_while_a_recipe_inside_of_an_earlier_one_lives(
    small: Callable[..., Path], tmp_path: Path
) -> None:
    recipe, output = small(f'step inner - {TOY}/run.sh --output "$output/inner" --until words'), tmp_path / "out"
    process = start("words.txt", output, recipe=recipe)
    process.kill()
    process.wait()
    assert "another run, or a command that it left behind" in refused(recipe, "--output", output)
    cut_power(process, output)
    assert ran(run(recipe, "--output", output).stdout) == ["inner"]


def test_a_run_does_not_notice_that_its_script_is_edited(small: Callable[..., Path], tmp_path: Path) -> None:
    edit = r'step edit - sh -c "sed 2i#$(printf %0500d 0) \$0 >$output/new && cat $output/new >\$0" "$0"'  # in place
    process = run(small(edit, 'step third "$output/third" touch "$output/third"'), "--output", tmp_path / "out")
    assert (process.returncode, ran(process.stdout)) == (0, ["first", "second", "edit", "third"])


def test_labels_become_parts_of_paths(small: Callable[..., Path], tmp_path: Path) -> None:
    """fairseq splits paths at colons."""
    run(small("mkdir \"$output/$(slug 'a[b=1,c=2]/d:e f')\""), "--output", tmp_path / "out")
    assert (tmp_path / "out" / "a.b=1.c=2--d_e_f").is_dir()


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('step third "$output/third" true', "third ended without an error, but did not write"),
        ('step third /tmp touch "$output/third"', "step third: its output /tmp is not in "),
        ("reads /absent", "/absent does not exist. The recipe reads this file."),
        ("false", ""),
    ],
)
def test_a_wrong_step_ends_the_run(line: str, problem: str, small: Callable[..., Path], tmp_path: Path) -> None:
    process = run(small(line, "echo went on"), "--output", tmp_path / "out")
    assert process.returncode == 1
    assert problem in process.stderr
    assert "went on" not in process.stdout


# --- models that fail


def test_a_diverged_model_is_a_row_with_its_reason(tmp_path: Path) -> None:
    output = tmp_path / "out"
    printed = finish(output, TOY_NAN="none.s1@3")
    assert "| none | – | seed 1: diverged at update 3, loss 1.5 (then not finite) |" in printed
    assert re.search(r"\| shaw \| [\d.]+ \| – \|", printed)
    [none, shaw] = json.loads((output / "results.json").read_text())["results"]
    assert (none["points"], none["failed"]) == (None, "seed 1: diverged at update 3, loss 1.5 (then not finite)")
    assert shaw["points"] > 0
    assert ran(finish(output)) == []  # it would diverge again


def test_a_failed_model_is_tried_again_and_its_output_is_removed(moved: Path, whole: Path) -> None:
    (moved / ".done" / "score:none.s1").unlink()
    finish(moved, *TWO_SEEDS, TOY_FAIL="none.s1.json")
    assert "score:none.s1 failed" in (moved / "scores" / "none.s1.failed").read_text()
    assert len(scores(moved)) == 3
    assert ran(finish(moved, *TWO_SEEDS)) == ["score:none.s1"]
    assert scores(moved) == scores(whole)
    assert not (moved / "scores" / "none.s1.failed").exists()


def test_a_run_whose_models_all_fail_fails(tmp_path: Path) -> None:
    process = run(TOY, "--output", tmp_path / "out", "--pos-enc", "none", TOY_FAIL="none.s1@4", TOY_RISE="yes")
    assert process.returncode == 1
    assert "none.s1@4 fails, as TOY_FAIL says" in process.stderr  # it did not diverge, although its loss has risen
    assert "every model failed" in process.stderr
    assert not (tmp_path / "out" / "results.md").exists()


def test_a_full_disk_is_named(tmp_path: Path) -> None:
    process = run(TOY, "--output", tmp_path / "out", TOY_FULL="words.txt")
    assert process.returncode == 1
    assert "words failed, because the disk is full. Its log: " in process.stderr
    assert not (tmp_path / "out" / "words.txt").exists()


# --- devices and launchers


def visible(output: Path) -> set[str]:
    """Return the values of CUDA_VISIBLE_DEVICES in the trainings."""
    logs = [path.read_text() for path in (output / "logs").glob("*.train.log")]
    return {re.findall("^GPUs: (.*)$", log, re.MULTILINE)[0] for log in logs}


@pytest.mark.parametrize("case", LAUNCHED["gpus"], ids=lambda case: f"{case['options']} {case['variables']}")
def test_parallel_jobs_divide_the_visible_gpus(case: dict[str, Any], tmp_path: Path) -> None:
    words, variables = case["options"].split(), case["variables"]
    printed = finish(tmp_path / "out", *words, "--until", "train", PATH=WITH_GPU, **variables)
    assert visible(tmp_path / "out") == {*case["visible"]}
    assert ("device: gpu" in printed) == (case["visible"] != [""])


@pytest.mark.parametrize(("words", "needed"), [("--jobs 3", 3), ("--jobs 2 --processes 2 --batches 2", 4)])
def test_more_processes_than_gpus_are_refused(words: str, needed: int, tmp_path: Path) -> None:
    line = refused(TOY, "--output", tmp_path, *words.split(), PATH=WITH_GPU, CUDA_VISIBLE_DEVICES="6,7")
    assert f"this needs {needed} GPUs, and there are 2 (6 7)" in line


@pytest.mark.parametrize("case", LAUNCHED["command"], ids=lambda case: case["options"])
def test_the_command_of_a_step(case: dict[str, str]) -> None:
    variables = {"PATH": WITH_GPU, "TOY_CAPABILITY": case["capability"]} if "capability" in case else {}
    printed = run(TOY, "--dry-run", *case["options"].split(), **variables).stdout.splitlines()
    command = printed[printed.index(f"# {case.get('step', 'train:none.s1')}") + 1]
    assert command.startswith(f"{case['begins']} ")
    assert command.endswith(f" {case['ends']}")


def test_the_number_of_processes_does_not_change_what_a_training_is(tmp_path: Path) -> None:
    words = ("--pos-enc", "none", "--until", "train", "--batches", 4)
    finish(tmp_path / "out", *words)
    assert ran(finish(tmp_path / "out", *words, "--launch", "torchrun", "--processes", 2)) == []
    assert ran(finish(tmp_path / "out", *words[:-1], 2)) == ["train:none.s1"]


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", [name for name in RECIPES if name != "toy"])
def test_a_recipe_killed_in_every_kind_of_step_ends_with_the_same_scores(name: str, tmp_path: Path) -> None:
    """The runs start in another folder than the repository, and their losses are those that are kept."""
    command = [str(RECIPES[name] / "run.sh"), "--preset", "smoke", "--output"]
    printed = run(RECIPES[name], "--preset", "smoke", "--dry-run").stdout
    broken, whole = tmp_path / "broken", tmp_path / "whole"
    for kind in dict.fromkeys(re.findall("^# ([^:\n]*)", printed, re.MULTILINE)):
        for mark in (*broken.glob(f".done/{kind}"), *broken.glob(f".done/{kind}:*")):
            mark.unlink()  # this step ended before the last kill
        with subprocess.Popen([*command, broken], cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout
            assert any(re.match(rf"\[.*\] {kind}(:\S+)? \.\.\.$", line) for line in process.stdout), kind
            time.sleep(0.5)  # the command of the step begins after this line
            cut_power(process, broken)
    for output in (broken, whole):
        subprocess.run([*command, output], cwd=tmp_path, check=True)
    assert scores(broken) == scores(whole) != {}
    support_curves.check(name, whole)
    kept = support_curves.stored(name)
    changed = {point: loss * 1.002 + 0.002 for point, loss in kept.items()}
    for other in (changed, dict.fromkeys(kept, math.nan)):
        assert len(support_curves.differences(other, kept)) == len(kept)


# --- settings


def test_a_preset_of_the_user_may_not_set_what_no_setting_reads(tmp_path: Path) -> None:
    preset = tmp_path / "mine.sh"
    preset.write_text('source "$HERE/conf/twice.sh"\nrepeats=7\n')
    assert "--repeats 7" in run(TOY, "--preset", preset, "--dry-run").stdout
    preset.write_text("repeat=7\n")
    assert "there is no setting repeat; did you mean repeats?" in refused(TOY, "--preset", preset)


def test_flags_of_the_command_line_replace_those_of_the_preset() -> None:
    words = ("--train.lr", 3, "--train.share-all-embeddings", "false", "--train.quiet", "true", "--train.lr=4")
    lines = run(TOY, "--settings", "--preset", "twice", *words, "--pos-enc=shaw[clip=4]").stdout.splitlines()
    assert {"train=(--adam-betas '(0.9, 0.98)' --quiet --lr 4)", "pos_enc='shaw[clip=4]'"} <= {*lines}


def test_each_item_encoding_and_seed_is_a_model(small: Callable[..., Path], tmp_path: Path) -> None:
    recipe, words = small("model() { :; }", "models model upper lower"), ("--seeds", "1,2", "--jobs", 2)
    run(recipe, "--output", tmp_path / "out", *words, "--pos-enc", "none,shaw[clip=4,share=none]")
    rows = [line.split("\t") for line in (tmp_path / "out" / "models.tsv").read_text().splitlines()]
    assert len(rows) == len({row[0] for row in rows}) == 8
    assert ["lower.shaw.clip=4.share=none.s2", "shaw[clip=4,share=none]", "2", "lower"] in rows


def test_a_folder_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert "file: the folder cannot be written. Choose" in refused(TOY, "--output", tmp_path / "file")


def test_an_output_folder_belongs_to_one_recipe(tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(TOY, other)
    script = (TOY / "run.sh").read_text().replace('$(dirname "$0")/../../..', str(ROOT))
    (other / "run.sh").write_text(script)
    finish(tmp_path / "out", "--until", "words")
    assert "the folder has a run of recipes/toy" in refused(other, "--output", tmp_path / "out")
