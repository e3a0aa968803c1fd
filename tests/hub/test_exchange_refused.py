"""Test that import-hf and export-hf refuse bad files with a clear error, and leave no incomplete folder."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Sequence
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
from fairseq_posenc.compat import CheckpointError
from fairseq_posenc.hub import folder as folders
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
    model = fairseq_posenc.load(out / "checkpoint.pt")
    assert model.config.mask == WORDS - 1


def test_a_model_without_its_head_is_not_loaded_but_imported(tmp_path: Path) -> None:
    folder = saved(random_model("bert"), tmp_path / "hf")
    random_model("bert").bert.save_pretrained(folder)
    with pytest.raises(CheckpointError, match="not a complete model"):
        fairseq_posenc.load(folder)
    report = json.loads((imported(folder, tmp_path / "out", "--pos-enc", "m4") / "report.json").read_text("utf-8"))
    assert "lm_head.dense.weight" in report["new"]


def settings(**changes: Any) -> Callable[[Path], Any]:
    """Return a function that changes a folder's config.json."""

    def spoil(folder: Path) -> None:
        known = json.loads((folder / "config.json").read_text("utf-8"))
        (folder / "config.json").write_text(json.dumps(known | changes), "utf-8")

    return spoil


def vocabulary(words: Sequence[str]) -> Callable[[Path], Any]:
    """Return a function that replaces a folder's vocabulary."""
    return lambda folder: (folder / "vocab.txt").write_text("\n".join(words), "utf-8")


def truncate(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:200])


def pickled(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    torch.save({"weight": torch.nn.Linear(1, 1)}, folder / "pytorch_model.bin")


def climbing(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    index = {"weight_map": {"x": "../secret.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index), "utf-8")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (truncate, "model.safetensors cannot be read"),
        (settings(intermediate_size=7), r"fc1.weight has the shape \[96, 48\] in the source"),
        (settings(model_type="electra"), "model_type is electra, but only bert, roberta, gpt2"),
        (pickled, "pytorch_model.bin: the file is refused"),
        (climbing, "which is outside of the folder"),
        (settings(num_hidden_layers=1), r"encoder.layers.1.\S+, which does not fit its settings"),
        (settings(num_hidden_layers=3), r"no encoder.layers.2.\S+, which its settings require"),
        (settings(hidden_size=None), "hidden_size must be a number"),
        (settings(model_type="roberta", pad_token_id="0"), "hf: config.json and the weights do not fit each other"),
        (vocabulary([f"w{i}" for i in range(WORDS)]), r"has no \[CLS\]. Use the model's vocabulary"),
        (vocabulary([*BERT_WORDS, "more"]), "vocab_size is 40, but the vocabulary beside it has 41 pieces"),
        (lambda folder: (folder / SAFE).rename(folder / f"{SAFE}.index.json"), "index.json is not valid JSON"),
        (lambda folder: (folder / "config.json").unlink(), "no config.json"),
        (lambda folder: (folder / "config.json").write_text("{"), "is not valid JSON"),
        (lambda folder: (folder / "model.safetensors").unlink(), "has no weights"),
    ],
)
def test_bad_folders_are_named_and_nothing_is_left(
    spoil: Callable[[Path], Any], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = saved(random_model("bert"), tmp_path / "hf")
    spoil(folder)
    assert main(["import-hf", str(folder), "--pos-enc", "m4", "--output", str(tmp_path / "out")]) == 1
    error = capsys.readouterr().err
    assert re.search(message, error)
    assert str(folder) in error
    assert error.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["hf"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--pos-enc", "m5"], "--pos-enc: unknown position encoding"),
        (["--pos-enc", "m4", "--pos-enc-args", "klip=3"], "--pos-enc-args: there is no option klip"),
        (["--pos-enc", "m4[clip=3]", "--pos-enc-args", "clip=3"], "--pos-enc and --pos-enc-args both set the option"),
        (["--pos-enc", "xpos"], "xpos"),
    ],
)
def test_bad_options_leave_nothing(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = saved(random_model("bert"), tmp_path / "hf")
    assert main(["import-hf", str(folder), "--output", str(tmp_path / "out"), *words]) == 1
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("name", "told"), [("google-bert/bert-base-uncased", True), ("/no/where", False)])
def test_a_name_of_the_hub_must_be_downloaded_first(
    name: str, told: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["import-hf", name, "--pos-enc", "m4", "--output", str(tmp_path / "out")]) == 1
    error = capsys.readouterr().err
    assert f"{name} does not exist" in error
    assert (f"huggingface-cli download {name} --local-dir bert-base-uncased" in error) == told


def test_existing_files_are_not_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = saved(random_model("bert"), tmp_path / "hf")
    assert main(["import-hf", str(folder), "--pos-enc", "m4", "--output", str(folder)]) == 1
    assert "already exists" in capsys.readouterr().err


def test_an_interrupted_export_leaves_nothing(tmp_path: Path) -> None:
    def interrupted() -> None:
        with folders.new_folder(tmp_path / "out") as folder:
            (folder / "half").write_text("x")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert not list(tmp_path.iterdir())


def test_a_damaged_export_is_noticed(tmp_path: Path) -> None:
    """Safetensors has no checksums: without SHA256SUMS, the flipped bit loads as another weight."""
    pretrained = read(saved(random_model("bert"), tmp_path / "hf"))
    out = tmp_path / "out"
    export(pretrained, out)
    subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=out, check=True)
    read(out)
    for name in (SAFE, "config.json", "vocab.txt"):
        whole = (out / name).read_bytes()
        at = len(whole) - 30 if name == SAFE else whole.index(b"1" if name == "config.json" else b"[MASK]") + 3
        (out / name).write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(
            CheckpointError, match=rf"{name} .*(its sha256 differs from the one in .*SHA256SUMS|not valid)"
        ):
            read(out)
        (out / name).write_bytes(whole)
    weights = (out / SAFE).read_bytes()
    (out / SAFE).write_bytes(weights[:-30] + bytes([weights[-30] ^ 1]) + weights[-29:])
    (out / "SHA256SUMS").unlink()
    read(out)


def test_checkpoints_of_other_models_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = support.write_corpus(tmp_path / "data-bin")
    support.train(data, "--max-update", 1, "--save-dir", tmp_path / "save")
    path = str(tmp_path / "save" / "checkpoint_last.pt")
    assert main(["export-hf", path, "--output", str(tmp_path / "out")]) == 1
    assert "BERT and RoBERTa" in capsys.readouterr().err
