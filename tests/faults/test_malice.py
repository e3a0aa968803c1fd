"""Folders of the Hub run no code, and names and contents of files do not control the terminal.

test_parsers.py holds the law for readers of files, and tests/integration/test_no_code.py that for checkpoints.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("fairseq")
pytest.importorskip("transformers")

from support_exchange import BERT_WORDS, random_model, saved
from support_payload import malicious

import fairseq_posenc
from fairseq_posenc.__main__ import main
from fairseq_posenc.compat import commands, safe_load
from fairseq_posenc.core.words import visible

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    """Return the file that shows that code has run."""
    return tmp_path / "mark"


def status_of(words: list[str]) -> Any:
    """Return the exit status of a command of the plugin."""
    try:
        return main(words)
    except SystemExit as stop:
        return stop.code


# -- folders of the Hub


#: Names of malicious files, with the file that each one replaces and its form.
HUB = [
    ("pytorch_model.bin", "model.safetensors", "zip"),
    ("pytorch_model.bin", "model.safetensors", "pickle"),
    ("model.safetensors", "model.safetensors", "pickle"),
    ("vocab.txt", "vocab.txt", "pickle"),
    ("sentencepiece.bpe.model", "vocab.txt", "pickle"),
]


@pytest.fixture
def evil(tmp_path: Path) -> Path:
    """Return a folder of transformers with a BERT and its vocabulary."""
    folder = saved(random_model("bert"), tmp_path / "evil")
    (folder / "vocab.txt").write_text("\n".join(BERT_WORDS) + "\n", encoding="utf-8")
    return folder


@pytest.mark.parametrize(("name", "replaced", "form"), HUB)
def test_a_folder_of_the_hub_runs_no_code(
    evil: Path, tmp_path: Path, mark: Path, name: str, replaced: str, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (evil / replaced).unlink()
    (evil / name).write_bytes(malicious(mark)[form])
    assert main(["import-hf", str(evil), "--pos-enc", "learned", "--output", str(tmp_path / "out")]) == 1
    assert capsys.readouterr().err.startswith("import-hf: ")
    assert not mark.exists()
    assert not (tmp_path / "out").exists()


def test_code_in_a_folder_of_the_hub_is_not_imported(evil: Path, tmp_path: Path, mark: Path) -> None:
    """transformers would import these files if it were told to trust them."""
    names = ("modeling_evil", "tokenization_evil", "configuration_evil")
    for name in names:
        (evil / f"{name}.py").write_text(f"open({str(mark)!r}, 'w').close()\n", encoding="utf-8")
    auto = {f"Auto{kind}": f"{name}.Evil" for kind, name in zip(("Model", "Tokenizer", "Config"), names, strict=True)}
    config = json.loads((evil / "config.json").read_text(encoding="utf-8"))
    (evil / "config.json").write_text(json.dumps(config | {"auto_map": auto}), encoding="utf-8")
    tokenizer = {"auto_map": {"AutoTokenizer": ["tokenization_evil.Evil", None]}, "tokenizer_class": "Evil"}
    (evil / "tokenizer_config.json").write_text(json.dumps(tokenizer), encoding="utf-8")
    main(["import-hf", str(evil), "--pos-enc", "learned", "--output", str(tmp_path / "out")])
    fairseq_posenc.load(evil)
    assert not mark.exists()
    assert not [name for name in sys.modules if name.endswith("_evil")]


# -- names and contents that would control the terminal

#: Clears the screen, sets the title of the window, and writes from right to left.
ESCAPES = "\x1b[2J\x1b]0;owned\x07\x9b31m\u202e"


def is_harmless(text: str) -> bool:
    return all(character.isprintable() or character in "\n\t" for character in text)


@given(st.text())
@settings(max_examples=60)
def test_shown_text_has_no_control_characters(text: str) -> None:
    assert is_harmless(visible(text))
    assert visible(text) == text or not is_harmless(text)


@pytest.mark.parametrize(
    "words",
    [
        ["report", "{}", "--output", "page.html"],
        ["export-hf", "{}", "--output", "out"],
        ["generate-text", "--checkpoint", "{}", "--prompt", "x"],
    ],
    ids=lambda words: words[0],
)
def test_names_of_files_cannot_control_the_terminal(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    name = tmp_path / f"x{ESCAPES}"
    name.mkdir()
    assert status_of([word.format(name) for word in words]) not in (0, None)
    printed = capsys.readouterr()
    assert "\\x1b[2J" in printed.err
    assert is_harmless(printed.out + printed.err)


def test_the_error_of_a_command_of_fairseq_cannot_control_the_terminal(tmp_path: Path) -> None:
    path = tmp_path / f"x{ESCAPES}.pt"
    path.write_bytes(b"no checkpoint")
    with pytest.raises(SystemExit) as stop, commands.in_one_line():
        safe_load(path)
    assert "\\x1b[2J" in str(stop.value)
    assert is_harmless(str(stop.value))


def test_the_lines_of_a_recipe_cannot_control_the_terminal(tmp_path: Path) -> None:
    """A failed step shows the end of its log, which may hold text of the data."""
    toy = ROOT / "tests" / "recipes" / "toy" / "run.sh"
    command = [toy, "--output", tmp_path / "out", "--until", "words"]
    done = subprocess.run(command, env={**os.environ, "TOY_SAY": ESCAPES}, capture_output=True, text=True)
    assert "words failed" in done.stderr
    assert "[2J" in done.stderr
    assert is_harmless(done.stderr)
