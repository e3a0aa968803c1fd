"""Test that an imported model can be trained on the user's own text, as docs/hugging-face.md shows."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fairseq")
pytest.importorskip("transformers")

import transformers
from integration import support
from support_exchange import imported, in_transformers

from fairseq_posenc.__main__ import main

sys.path.append(str(Path(__file__).parents[2] / "data-bin-scripts"))
import prepare_corpus
import support_corpora

TRAIN = "--optimizer adam --lr 0.001 --batch-size 4 --max-update 1 --cpu --num-workers 0 --log-format none".split()
SMALL = {"num_hidden_layers": 1, "hidden_size": 16, "intermediate_size": 16, "num_attention_heads": 2}


def source(kind: str, folder: Path) -> Path:
    """Write a random model of Hugging Face with its tokenizer."""
    if kind == "gpt2":
        support_corpora.gpt2(folder)
        (folder / "encoder.json").rename(folder / "vocab.json")
        (folder / "vocab.bpe").rename(folder / "merges.txt")
        (folder / "dict.txt").unlink()
        size = len(json.loads((folder / "vocab.json").read_text("utf-8")))
        sizes = {"n_positions": 32, "n_embd": 16, "n_layer": 1, "n_head": 2, "eos_token_id": size - 1}
        model: Any = transformers.GPT2LMHeadModel(transformers.GPT2Config(size, **sizes))
    else:
        folder.mkdir()
        letters = "abcdefghijklmnopqrstuvwxyz."
        pieces = ["[PAD]", *letters, "[UNK]", "[CLS]", "[SEP]", *(f"##{letter}" for letter in letters), "[MASK]"]
        (folder / "vocab.txt").write_text("\n".join(pieces) + "\n", "utf-8")
        config = transformers.BertConfig(vocab_size=len(pieces) + 3, max_position_embeddings=32, **SMALL)  # padded
        model = transformers.BertForMaskedLM(config)
    support.move(model).save_pretrained(folder)
    return folder


def prepared(folder: Path, scheme: str, tokenizer: Path) -> Path:
    folder.mkdir(exist_ok=True)
    for name, number in (("train", 8), ("valid", 3)):
        (folder / name).write_text(support_corpora.text(support_corpora.documents(number, seed=number)), "utf-8")
    words = ["--train", folder / "train", "--valid", folder / "valid", "--output", folder / "data", "--longest", 24]
    words += ["--tokenizer", scheme, "--tokenizer-path", tokenizer]
    assert prepare_corpus.main([*map(str, words)]) == 0
    return folder / "data"


@pytest.mark.parametrize("kind", ["gpt2", "bert"])
def test_import_prepare_train_generate_export(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = imported(source(kind, tmp_path / "hf"), tmp_path / "new", "--pos-enc", "rope")
    command = shlex.split(capsys.readouterr().out.splitlines()[-1])[1:]  # what import-hf prints
    assert command[:3] == ["DATA", "--user-dir", "$(python -m fairseq_posenc path)"]
    is_lm = kind == "gpt2"
    data = prepared(tmp_path, "gpt2" if is_lm else "wordpiece", folder if is_lm else folder / "tokenizer")
    assert (data / "shard00000" / "dict.txt").read_bytes() == (folder / "dict.txt").read_bytes()
    words = [str(data / "shard00000"), "--user-dir", str(support.PLUGIN), *command[3:]]
    support.trained([*words, "--save-dir", str(tmp_path / "save"), *TRAIN])
    trained = tmp_path / "save" / "checkpoint_best.pt"
    assert main(["export-hf", str(trained), "--output", str(tmp_path / "model")]) == 0
    assert "wrote the tokenizer of" in capsys.readouterr().out
    ids = transformers.AutoTokenizer.from_pretrained(tmp_path / "model")("Kalo mine.", return_tensors="pt").input_ids
    known = transformers.AutoTokenizer.from_pretrained(folder / "tokenizer")("Kalo mine.", return_tensors="pt")
    assert ids.equal(known.input_ids)
    assert not ids.eq(3).any()
    if is_lm:
        assert in_transformers(tmp_path / "model")(ids).logits.shape[1] == ids.shape[1]
        generate = ["generate-text", "--checkpoint", str(trained), "--prompt", "Kalo mine", "--length", "3"]
        assert main(generate) == 0
        ended = capsys.readouterr()
        assert ended.out.startswith("Kalo mine")
        assert "no tokenizer" not in ended.err
        assert main([*generate, "--data", str(folder), "--tokenizer", str(folder / "tokenizer")]) == 0
        assert capsys.readouterr().out == ended.out
        monkeypatch.setattr("fairseq_posenc.data.words._MARKED_SHARE", 0)  # few of these pieces begin a word
        (folder / "tokenizer").rename(tmp_path / "elsewhere")
        assert main([*generate, "--data", str(folder)]) == 0
        assert "To split text, give --tokenizer FILE_OR_FOLDER" in capsys.readouterr().err
