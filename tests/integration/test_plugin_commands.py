"""Test the standard output and the exit status of `python -m fairseq_posenc`."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Sequence

import pytest

import fairseq_posenc
from fairseq_posenc.__main__ import COMMANDS, main
from fairseq_posenc.encodings import names

from . import support
from .support import PLUGIN


def test_list_prints_one_list_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "--json", *names(), "m4[clip=64]+t5"]) == 0
    *rows, several = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in rows] == names()
    assert {row["name"]: row["value"] for row in several["options"] if "value" in row} == {"m4.clip": "64"}
    for row in rows:
        assert all(row[key] for key in ("paper", "equation", "capabilities")), row["name"]
        assert all({"name", "default", "help"} <= option.keys() for option in row["options"])
        assert all(option["help"] for option in row["options"])


def test_the_user_dir_and_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["path"]) == main(["--version"]) == 0
    assert capsys.readouterr().out == f"{PLUGIN}\nfairseq_posenc {fairseq_posenc.__version__}\n"


def test_a_reader_that_has_seen_enough_ends_the_command_quietly(monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(argv: Sequence[str]) -> int:
        raise BrokenPipeError

    redirected: list[int] = []
    monkeypatch.setattr("fairseq_posenc.commands.path.main", closed)
    monkeypatch.setattr(os, "dup2", lambda _, target: redirected.append(target))
    monkeypatch.setattr(sys, "stdout", open(os.devnull, "w"))  # noqa: SIM115
    assert main(["path"]) == 141
    assert redirected == [sys.stdout.fileno()]


@pytest.mark.parametrize(("line", "message"), support.table("refused.toml", "python -m fairseq_posenc").items())
def test_an_error_names_what_the_user_gave_and_what_is_near(
    line: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The status is 2 if argparse refuses the command line, and 1 if the command does."""
    try:
        status = main(line.split())
    except SystemExit as stop:
        status = int(str(stop.code))
    captured = capsys.readouterr()
    assert re.search(message, captured.err)
    assert (status, captured.out) == (2 if "usage: " in captured.err else 1, "")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_listed_and_has_help(capsys: pytest.CaptureFixture[str], command: str) -> None:
    assert main([]) == 2
    assert f"  {command}" in capsys.readouterr().err
    with pytest.raises(SystemExit) as stop:
        main([command, "--help"])
    assert stop.value.code == 0
    assert f"python -m fairseq_posenc {command}" in capsys.readouterr().out
