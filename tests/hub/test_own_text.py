"""Test that an imported model can be trained on the user's own text, as docs/hugging-face.md shows."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest
import transformers
from integration import support
from support_exchange import imported, in_transformers, random_model, saved

from fairseq_posenc.__main__ import main

sys.path.append(str(Path(__file__).parents[2] / "data-bin-scripts"))
import prepare_corpus
import support_corpora

TRAIN = "--optimizer adam --lr 0.001 --batch-size 4 --max-update 1 --cpu --num-workers 0 --log-format none".split()
LETTERS = "abcdefghijklmnopqrstuvwxyz."


def source(kind: str, folder: Path) -> Path:
    """Write a random model of Hugging Face with its tokenizer. The BERT has more ids than pieces."""
    if kind == "gpt2":
        support_corpora.gpt2(folder)
        (folder / "encoder.json").rename(folder / "vocab.json")
        (folder / "vocab.bpe").rename(folder / "merges.txt")
        (folder / "dict.txt").unlink()
        size = len(json.loads((folder / "vocab.json").read_text("utf-8")))
        return saved(random_model(kind, "tiny", vocab_size=size, eos_token_id=size - 1), folder)
    pieces = ["[PAD]", *LETTERS, "[UNK]", "[CLS]", "[SEP]", *(f"##{letter}" for letter in LETTERS), "[MASK]"]
    saved(random_model(kind, "tiny", vocab_size=len(pieces) + 3), folder)
    (folder / "vocab.txt").write_text("\n".join(pieces) + "\n", "utf-8")
    return folder


def prepared(folder: Path, scheme: str, tokenizer: Path) -> Path:
    for name, number in (("train", 8), ("valid", 3)):
        (folder / name).write_text(support_corpora.text(support_corpora.documents(number, seed=number)), "utf-8")
    words = ["--train", folder / "train", "--valid", folder / "valid", "--output", folder / "data", "--longest", 16]
    words += ["--tokenizer", scheme, "--tokenizer-path", tokenizer]
    assert prepare_corpus.main([*map(str, words)]) == 0
    return folder / "data"


@pytest.mark.parametrize(("kind", "scheme"), [("gpt2", "gpt2"), ("bert", "wordpiece")])
def test_import_prepare_train_generate_export(
    kind: str, scheme: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = imported(source(kind, tmp_path / "hf"), tmp_path / "new", "--pos-enc", "rope")
    command = shlex.split(capsys.readouterr().out.splitlines()[-1])[1:]  # what import-hf prints
    assert command[:3] == ["DATA", "--user-dir", "$(python -m fairseq_posenc path)"]
    data = prepared(tmp_path, scheme, folder if kind == "gpt2" else folder / "tokenizer")
    assert (data / "shard00000" / "dict.txt").read_bytes() == (folder / "dict.txt").read_bytes()
    words = [str(data / "shard00000"), "--user-dir", str(support.PLUGIN), *command[3:]]
    support.trained([*words, "--save-dir", str(tmp_path / "save"), *TRAIN])
    trained = tmp_path / "save" / "checkpoint_best.pt"
    assert main(["export-hf", str(trained), "--output", str(tmp_path / "model")]) == 0
    assert "wrote the tokenizer of" in capsys.readouterr().out
    places = (tmp_path / "model", folder / "tokenizer")
    ids, known = (transformers.AutoTokenizer.from_pretrained(p)("Kalo mine.", return_tensors="pt") for p in places)
    assert ids.input_ids.equal(known.input_ids)
    assert not ids.input_ids.eq(3).any()
    if kind == "gpt2":
        in_transformers(tmp_path / "model")(**ids)
        generate = ["generate-text", "--checkpoint", str(trained), "--prompt", "Kalo mine", "--length", "3"]
        printed = []
        for more in ([], ["--data", str(folder), "--tokenizer", str(folder / "tokenizer")]):
            assert main([*generate, *more]) == 0
            printed.append(capsys.readouterr())
        assert printed[0].out == printed[1].out
        assert printed[0].out.startswith("Kalo mine")
        assert "no tokenizer" not in printed[0].err
