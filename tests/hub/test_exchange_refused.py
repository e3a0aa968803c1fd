"""Test that import-hf and export-hf refuse bad files with a clear error, and leave no incomplete folder."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch
from integration import support
from support_exchange import BERT_WORDS, REFUSED, WORDS, imported, in_fairseq, random_model, saved

import fairseq_posenc
from fairseq_posenc.__main__ import main
from fairseq_posenc.compat import CheckpointError, safe_load
from fairseq_posenc.hub.export_hf import export
from fairseq_posenc.hub.folder import SAFE
from fairseq_posenc.hub.pretrained import read


def test_unusual_vocabularies_become_dictionaries(tmp_path: Path) -> None:
    """The vocabulary has a duplicate piece, and pieces that equal fairseq's special symbols."""
    folder = saved(random_model("bert"), tmp_path / "hf")
    words = [*BERT_WORDS[:-4], "<mask>", "<s>", "twice", "twice"]
    (folder / "vocab.txt").write_text("\n".join(words) + "\n", "utf-8")
    out = imported(folder, tmp_path / "out", "--pos-enc", "learned")
    assert in_fairseq(out).encoder.dictionary.symbols[-2:] == [f"madeupword{WORDS - 1}", "<mask>"]
    assert fairseq_posenc.load(out / "checkpoint.pt").config.mask == WORDS - 1


def test_a_model_without_its_head_is_not_loaded_but_imported(tmp_path: Path) -> None:
    folder = saved(random_model("bert"), tmp_path / "hf")
    random_model("bert").bert.save_pretrained(folder)
    with pytest.raises(CheckpointError, match="not a complete model"):
        fairseq_posenc.load(folder)
    report = json.loads((imported(folder, tmp_path / "out", "--pos-enc", "m4") / "report.json").read_text("utf-8"))
    assert "lm_head.dense.weight" in report["new"]


@pytest.mark.parametrize("case", REFUSED["folders"], ids=lambda case: case["says"])
def test_bad_folders_and_words_are_named_and_nothing_is_left(
    case: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = saved(random_model(case["kind"]), tmp_path / "hf")
    for name, change in case.items():
        path = folder / name
        if isinstance(change, dict):
            known = json.loads(path.read_text("utf-8")) if path.exists() else {}
            path.write_text(json.dumps(known | change), "utf-8")
        elif change is False:
            path.unlink()
        elif "." in name:
            path.write_text(change, "utf-8")
    places = {"HF": str(folder), "OUT": str(tmp_path / "out")}
    words = case.get("words", "HF --pos-enc rope --output OUT").split()
    assert main(["import-hf", *(places.get(word, word) for word in words)]) == 1
    error = capsys.readouterr().err
    assert re.search(case["says"], error)
    assert str(folder) in error or "words" in case
    assert error.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["hf"]


def test_a_damaged_export_is_noticed(tmp_path: Path) -> None:
    """Safetensors has no checksums: without SHA256SUMS, the flipped bit loads as another weight."""
    out = tmp_path / "out"
    export(read(saved(random_model("bert"), tmp_path / "hf")), out)
    subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=out, check=True)
    for name, before in (("config.json", b'"vocab_size": '), ("vocab.txt", b"[MA"), (SAFE, b"")):
        whole = (out / name).read_bytes()
        at = whole.index(before) + len(before) if before else len(whole) - 30
        (out / name).write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(CheckpointError, match=rf"{name} is damaged .* differs from the one in .*SHA256SUMS"):
            read(out)
        if name != SAFE:
            (out / name).write_bytes(whole)
    (out / "SHA256SUMS").unlink()
    read(out)


@pytest.mark.parametrize(("settings", "message"), REFUSED["settings"])
def test_models_that_cannot_be_exported_are_refused(
    settings: dict[str, Any], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state, path = safe_load(support.ROOT / "tests" / "kept" / "checkpoint.pt"), tmp_path / "changed.pt"
    state["cfg"]["model"] |= settings
    torch.save(state, path)
    assert main(["export-hf", str(path), "--output", str(tmp_path / "out")]) == 1
    error = capsys.readouterr().err
    assert message in error
    assert str(path) in error
    assert not (tmp_path / "out").exists()
