"""Test that import-hf and export-hf refuse bad files with a clear error, and leave no incomplete folder."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("fairseq")
pytest.importorskip("transformers")

from integration import support
from support_exchange import BERT_WORDS, WORDS, imported, in_fairseq, random_model, saved

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


CLIMBING = {"weight_map": {"x": "../secret.safetensors"}}
OTHER_WORDS = "\n".join(f"w{i}" for i in range(WORDS))


@pytest.mark.parametrize(
    ("kind", "changes", "message"),
    [
        ("bert", {SAFE: b"\x10\0\0\0\0\0\0\0{}"}, "model.safetensors cannot be read"),
        ("bert", {SAFE: None}, "has no weights"),
        ("bert", {SAFE: None, f"{SAFE}.index.json": CLIMBING}, "which is outside of the folder"),
        ("bert", {SAFE: None, f"{SAFE}.index.json": b"\xff"}, "index.json is not valid JSON"),
        ("bert", {"config.json": None}, "no config.json"),
        ("bert", {"config.json": b"{"}, "is not valid JSON"),
        ("bert", {"config.json": {"intermediate_size": 7}}, r"fc1.weight has the shape \[96, 48\] in the source"),
        ("bert", {"config.json": {"num_hidden_layers": 1}}, r"encoder.layers.1.\S+, which does not fit its settings"),
        ("bert", {"config.json": {"num_hidden_layers": 3}}, r"no encoder.layers.2.\S+, which its settings require"),
        ("bert", {"config.json": {"hidden_size": None}}, "hidden_size must be a number"),
        ("bert", {"config.json": {"model_type": "llama"}}, "model_type is llama, but only bert, roberta, gpt2 can be"),
        ("bert", {"config.json": {"fairseq_posenc": {"layers": 1, "new": 2}}}, "argument 'new'.*newer fairseq_posenc"),
        ("bert", {"vocab.txt": OTHER_WORDS.encode()}, r"has no \[CLS\]. Use the model's vocabulary"),
        ("bert", {"vocab.txt": "\n".join([*BERT_WORDS, "x"]).encode()}, "vocab_size is 40, but the vocabulary .* 41"),
        ("roberta", {"config.json": {"pad_token_id": "0"}}, "hf: config.json and the weights do not fit each other"),
        ("gpt2", {"config.json": {"scale_attn_by_inverse_layer_idx": True}}, "layer_idx is True, but only False"),
        ("gpt2", {"config.json": {"layer_norm_epsilon": 1e-6}}, "layer_norm_epsilon is 1e-06, but only 1e-05"),
        ("gpt2", {"config.json": {"activation_function": "silu"}}, "activation_function 'silu' is not supported"),
        ("gpt2", {"config.json": {"eos_token_id": 99}}, "eos_token_id must be the id of the end of text, not 99"),
    ],
)
def test_bad_folders_are_named_and_nothing_is_left(
    kind: str, changes: dict[str, Any], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = saved(random_model(kind), tmp_path / "hf")
    for name, content in changes.items():
        path = folder / name
        if isinstance(content, dict):
            known = json.loads(path.read_text("utf-8")) if path.exists() else {}
            content = json.dumps(known | content).encode()
        path.unlink() if content is None else path.write_bytes(content)
    assert main(["import-hf", str(folder), "--pos-enc", "rope", "--output", str(tmp_path / "out")]) == 1
    error = capsys.readouterr().err
    assert re.search(message, error)
    assert str(folder) in error
    assert error.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["hf"]


@pytest.mark.parametrize(
    ("source", "words", "message"),
    [
        ("{hf}", ["--pos-enc", "m5", "--output", "{out}"], "--pos-enc: unknown position encoding"),
        ("{hf}", ["--pos-enc", "m4", "--output", "{hf}"], "hf already exists"),
        ("google-bert/x", ["--pos-enc", "m4", "--output", "{out}"], "huggingface-cli download google-bert/x --local-d"),
        ("/no/where", ["--pos-enc", "m4", "--output", "{out}"], "/no/where does not exist"),
    ],
)
def test_bad_words_leave_nothing(
    source: str, words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    places = {"hf": saved(random_model("bert"), tmp_path / "hf"), "out": tmp_path / "out"}
    assert main([word.format(**places) for word in ("import-hf", source, *words)]) == 1
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


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


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"_name": "posenc_transformer"},
            "posenc_transformer, but only BERT and RoBERTa and language models",
        ),
        ({"pos_enc_random": 32}, "--pos-enc-random 32"),
        ({"decoder_normalize_before": True, "no_decoder_final_norm": True}, "--no-decoder-final-norm, which cannot"),
        ({"activation_fn": "tanh"}, "activation function 'tanh' is not supported"),
    ],
)
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
