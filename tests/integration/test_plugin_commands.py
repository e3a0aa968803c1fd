"""Test the standard output and the exit status of `python -m fairseq_posenc`."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Sequence

import pytest

import fairseq_posenc
from fairseq_posenc.__main__ import COMMANDS, main
from fairseq_posenc.encodings import names

from . import support
from .support import PLUGIN

PROGRAM = [sys.executable, "-m", "fairseq_posenc"]


def test_list_prints_one_list_and_nothing_else() -> None:
    rows = json.loads(support.run([*PROGRAM, "list", "--json"], forked=True).stdout)
    assert [row["name"] for row in rows] == names()
    for row in rows:
        assert all(row[key] for key in ("paper", "equation", "capabilities")), row["name"]
        assert all({"name", "default", "help"} <= option.keys() for option in row["options"])
        assert all(option["help"] for option in row["options"])
    shaw = next(row for row in rows if row["name"] == "shaw")
    assert {option["name"] for option in shaw["options"]} >= {"clip", "share", "values"}


def test_path_is_the_user_dir(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["path"]) == 0
    assert capsys.readouterr().out == f"{PLUGIN}\n"


def test_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"fairseq_posenc {fairseq_posenc.__version__}\n"


def test_a_reader_that_has_seen_enough_ends_the_command_quietly(monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(argv: Sequence[str]) -> int:
        raise BrokenPipeError

    redirected: list[int] = []
    monkeypatch.setattr("fairseq_posenc.commands.path.main", closed)
    monkeypatch.setattr(os, "dup2", lambda _, target: redirected.append(target))
    monkeypatch.setattr(sys, "stdout", open(os.devnull, "w"))  # noqa: SIM115
    assert main(["path"]) == 141
    assert redirected == [sys.stdout.fileno()]


def test_an_unknown_command_is_refused_with_the_known_ones() -> None:
    done = support.run([*PROGRAM, "lisst"], check=False, forked=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert "unknown command 'lisst'" in done.stderr
    assert all(command in done.stderr for command in COMMANDS)


def test_without_a_command_it_says_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "no command given" in capsys.readouterr().err


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help(capsys: pytest.CaptureFixture[str], flag: str) -> None:
    assert main([flag]) == 0
    out = capsys.readouterr().out
    assert all(f"  {command}" in out for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(capsys: pytest.CaptureFixture[str], command: str) -> None:
    with pytest.raises(SystemExit) as stop:
        main([command, "--help"])
    assert stop.value.code == 0
    assert f"python -m fairseq_posenc {command}" in capsys.readouterr().out


def test_list_takes_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "shaw", "rope"]) == 0
    out = capsys.readouterr().out
    assert "shaw: " in out
    assert "rope: " in out
    assert "alibi: " not in out
    assert max(map(len, out.splitlines())) <= shutil.get_terminal_size().columns
    with pytest.raises(SystemExit) as stop:
        main(["list", "shawl"])
    assert stop.value.code == 2
    assert "known names: none, learned" in capsys.readouterr().err
