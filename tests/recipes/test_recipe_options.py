"""Check what holds for every recipe: its help, the commands of its presets, and the options that it refuses."""

from __future__ import annotations

import os
import re
import shlex
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from support_recipes import GOLDEN, RECIPES, ROOT, planned, presets, ran, refused, run, stored, text, values

from fairseq_posenc.core.refusal import InputError
from recipes.lib import settings

REFUSED = tomllib.loads(Path(__file__).with_name("refused.toml").read_text("utf-8"))
COMMANDS = tomllib.loads(Path(__file__).with_name("commands.toml").read_text("utf-8"))["case"]


@pytest.fixture
def bare(tmp_path: Path) -> dict[str, str]:
    """Return variables with which there is no environment, and Python has only its standard library."""
    for name in ("python", "python3"):
        (tmp_path / name).write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
        (tmp_path / name).chmod(0o755)
    return {"PATH": f"{tmp_path}:/usr/bin:/bin", "VIRTUAL_ENV": str(tmp_path), "PYTHONPATH": ""}


@pytest.mark.parametrize("name", RECIPES)
def test_help_needs_only_python_and_explains_every_setting(name: str, bare: dict[str, str]) -> None:
    process = run(RECIPES[name], "--help", **bare)
    assert process.returncode == 0, process.stderr
    options = re.findall(r"^  --(\S+) +(.*) \(.*\)$", process.stdout, re.MULTILINE)
    assert {"preset", "pos-enc", "output", "seeds", "jobs", "train.FLAG"} <= {option for option, _ in options}
    assert all(len(about) > 10 for _, about in options)
    assert set(presets(RECIPES[name])) <= set(process.stdout.split())
    assert not re.search("[A-Z]:.*Error", process.stderr)


@pytest.mark.parametrize("name", RECIPES)
def test_wrong_options_are_refused_before_anything_is_written(name: str, tmp_path: Path) -> None:
    recipe, output = RECIPES[name], ("--output", tmp_path / "out")
    assert "there is no position encoding 'shw'; did you mean shaw?" in refused(recipe, *output, "--pos-enc", "shw")
    assert "--until trian: there is no such step; did you mean train?" in refused(recipe, *output, "--until", "trian")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", RECIPES)
def test_every_preset_runs_the_commands_of_its_golden_text(name: str) -> None:
    recipe = RECIPES[name]
    known = {path.stem for path in (GOLDEN / name).glob("*.txt")}
    assert set(presets(recipe)) == known, "run: python tests/support_recipes.py --write"
    changed = [preset for preset in presets(recipe) if text(recipe, preset) != stored(recipe, preset).read_text()]
    assert not changed, f"run: python tests/support_recipes.py --write {name}, and read what changed"


def write(path: Path, content: str | int) -> None:
    """Write a file with a text, or a sparse file of some bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    if isinstance(content, int):
        os.truncate(path, content)
    else:
        path.write_text(content)


@pytest.mark.parametrize("case", COMMANDS, ids=lambda case: case["name"])
def test_options_and_files_change_the_commands(case: dict[str, Any], tmp_path: Path) -> None:
    for name, content in case.get("files", {}).items():
        write(tmp_path / name, content)
    options = shlex.split(case["options"].replace("{folder}", str(tmp_path)))
    process = run(RECIPES[case["recipe"]], *options, "--output", "OUT", "--dry-run", cwd=tmp_path)
    assert (process.returncode, case.get("refused", "") in process.stderr) == ("refused" in case, True), process.stderr
    assert case.get("says", "") in process.stdout
    assert "unsaid" not in case or case["unsaid"] not in process.stdout
    commands = planned(process.stdout)
    for step, flags in case.get("commands", {}).items():
        for words in flags:
            flag, *expected = words.replace("{folder}", str(tmp_path)).split()
            assert values(commands[step], flag) == expected
    for step, flags in case.get("lacks", {}).items():
        assert not {*flags} & {*commands[step]}
    assert not {*case.get("absent", [])} & {*commands}


@pytest.mark.parametrize(("name", "words"), [(name, words) for name, table in REFUSED.items() for words in table])
def test_what_cannot_be_is_refused_before_the_first_step(name: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "corpus").mkdir()
    texts = [f"corpus/{split}.{code}" for split in ("train", "val", "test") for code in ("en", "xx")]
    for file in ("model.pt", *texts):
        (tmp_path / file).write_text("text\n")
    given = [word.replace("{root}", str(ROOT)) for word in shlex.split(words)]
    process = run(RECIPES[name], "--output", "out", "--device", "cpu", *given, cwd=tmp_path)
    assert process.returncode == 1
    assert REFUSED[name][words].replace("{root}", str(ROOT)) in process.stderr.splitlines()[-1]
    assert ran(process.stdout) == []
    assert process.stdout or not (tmp_path / "out").exists()  # most are refused before the folder is made


@pytest.mark.parametrize("name", RECIPES)
def test_an_option_that_a_value_makes_useless_is_refused(name: str) -> None:
    known = settings.declared(RECIPES[name] / "run.sh")
    for option, setting in known.items():
        other, _, wanted = setting.condition.partition("=")
        if not other:
            continue
        choices = known[other].kind.removeprefix("list ").split("|")
        assert set(wanted.split(",")) <= set(choices), f"{option}: --{other} has no such value"
        if useless := next((value for value in choices if value not in {*wanted.split(","), *settings.EXISTS}), None):
            with pytest.raises(InputError, match=f"has no effect with --{other} {useless}"):
                settings.check_effect(option, setting.condition, known, {other: useless})
