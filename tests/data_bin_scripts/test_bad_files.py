"""Test that the data scripts name what is wrong with files and options, and write nothing."""

from __future__ import annotations

import importlib
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
from support_scripts import Runs, hashes

PROGRAMS = tomllib.loads(Path(__file__).with_name("refused.toml").read_text("utf-8"))
CASES = [
    pytest.param(name, case, id=f"{name}: {case['says']}") for name in PROGRAMS for case in PROGRAMS[name]["cases"]
]


@pytest.mark.parametrize(("name", "case"), CASES)
def test_what_is_wrong_is_named_and_nothing_is_written(
    name: str,
    case: dict[str, Any],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    for file, text in {**PROGRAMS[name]["files"], **case.get("files", {})}.items():
        if text != "-":
            Path(file).parent.mkdir(exist_ok=True)
            Path(file).write_bytes(text.encode("latin-1"))
    before = hashes(tmp_path)
    words = shlex.split(f"{PROGRAMS[name]['words']} {case.get('words', '')}")
    ended = Runs(importlib.import_module(name).main, tmp_path, capsys).run(*words)
    assert ended.status in (1, 2)
    assert case["says"] in ended.error
    after = hashes(tmp_path)  # prepare_parallel keeps its work in out.partial, to go on with it
    assert {file: after[file] for file in after if not file.startswith("out.partial/")} == before
