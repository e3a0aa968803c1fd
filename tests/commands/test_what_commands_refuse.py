"""Test that each command refuses what it cannot do, says why, and writes nothing."""

from __future__ import annotations

import re
import shlex
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from fairseq.data.indexed_dataset import make_builder

from fairseq_posenc.__main__ import main

CASES: dict[str, list[list[str]]] = tomllib.loads(Path(__file__).with_name("refused.toml").read_text("utf-8"))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working folder, with the files that refused.toml names."""
    monkeypatch.chdir(tmp_path)
    flag = torch.tensor([True])
    more = {"first": {}, "second": {}, "checkpoint3": {"flag": flag}, "checkpoint4": {"flag": ~flag}}
    for name, tensors in more.items():
        torch.save({"model": {"w": torch.ones(2), **tensors}, "cfg": {}, "extra_state": {}}, f"{name}.pt")
    torch.save({"weights": {}}, "other.pt")
    Path("link.pt").symlink_to("first.pt")
    Path("utf-16").write_text("w1\nw2\n", "utf-16")
    builder = make_builder("train.bin", "mmap", 10)
    builder.add_item(torch.tensor([5, 5]))
    builder.finalize("train.idx")
    return tmp_path


@pytest.mark.parametrize(
    ("command", "words", "message"), [(command, *case) for command, cases in CASES.items() for case in cases]
)
def test_a_command_refuses_in_one_line_and_writes_nothing(
    command: str,
    words: str,
    message: str,
    folder: Path,
    checkpoint: Callable[[str], Path],
    capsys: pytest.CaptureFixture[str],
) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    filled = re.sub(r"\{(\w+)\}", lambda name: str(checkpoint(name[1])), words)
    capsys.readouterr()
    with pytest.raises(SystemExit, match=r"^[12]$"):
        sys.exit(main([command, *shlex.split(filled)]))
    *others, error = capsys.readouterr().err.splitlines()
    assert not others or others[0].startswith("usage: "), others
    assert re.search(rf"^(python -m fairseq_posenc )?{command}: .*{message}", error), error
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
